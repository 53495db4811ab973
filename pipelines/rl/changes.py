"""Read settings from the command line: ``rate=1e-3 env.delay=4``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from data.errors import UserError


def changes(words: Sequence[str]) -> dict[str, Any]:
    """A tree of settings.

    Parameters
    ----------
    words : sequence of str
        ``KEY=VALUE`` each; dots go into a tree, the value is YAML.

    Raises
    ------
    UserError
        When a word isn't of this form, or a key is both a setting and a tree.
    """
    tree: dict[str, Any] = {}
    for word in words:
        key, found, text = word.partition("=")
        if not (found and key.strip()):
            raise UserError(f"--set {word}: KEY=VALUE expected, as in rate=0.001")
        *path, last = key.strip().split(".")
        here = tree
        for part in path:
            here = here.setdefault(part, {})
            if not isinstance(here, dict):
                raise UserError(f"--set {word}: {part} has a value already")
        here[last] = _value(word, text)
    return tree


def _value(word: str, text: str) -> Any:
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise UserError(f"--set {word}: the value isn't YAML: put text into quotes") from None
    if isinstance(value, str):
        try:
            # YAML takes 1e-3 for text, as it has no point.
            return float(value)
        except ValueError:
            return value
    return value
