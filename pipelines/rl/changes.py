"""Read settings from the command line: ``rate=1e-3 env.delay=4``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from data import yaml_text
from data.errors import UserError


def changes(words: Sequence[str]) -> dict[str, Any]:
    """A tree of settings.

    Parameters
    ----------
    words : sequence of str
        As for `data.yaml_text.assigned`; dots go into a tree.

    Raises
    ------
    UserError
        When a word isn't of this form, or a key is both a setting and a tree.
    """
    tree: dict[str, Any] = {}
    for key, value in yaml_text.assigned(words).items():
        *path, last = key.split(".")
        here = tree
        for part in path:
            here = here.setdefault(part, {})
            if not isinstance(here, dict):
                raise UserError(f"--set {key}: {part} has a value already")
        here[last] = _number(value)
    return tree


def _number(value: Any) -> Any:
    """YAML takes 1e-3 for text, as it has no point."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value
