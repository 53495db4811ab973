"""The command that a user gave the league, as its page tells it, and the place of that page."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from data.errors import UserError

_USUAL = {"cc": "all", "only": None, "traces": None, "scenario": "", "delay": 0.0, "each": None,
          "seed": None, "out": None}  # fmt: skip
"""Arguments that the figures depend on, with their defaults; and the page's own place."""


def command(args: argparse.Namespace) -> str:
    """The command that makes the same page: what was given, less what changes no figure."""
    words = ["cczoo", "league"]
    for name, usual in _USUAL.items():
        value = getattr(args, name)
        if value != usual:
            words += [f"--{name}", str(value)]
    return shlex.join(words)


def check_out(path: Path) -> None:
    """Refuse a page that could not be written once all runs are done.

    Raises
    ------
    UserError
        When the page and the folder beside it can't both be made.
    """
    if not path.suffix:
        raise UserError(
            f"--out {path}: give a file with an ending, such as {path}.md: the folder of its "
            "figures has the name without it"
        )
    if path.is_dir():
        raise UserError(f"--out {path}: a folder: give the page's own name, such as {path}/page.md")
    folder = path.with_suffix("")
    if folder.exists() and not folder.is_dir():
        raise UserError(f"--out {path}: its figures need the folder {folder}, which is a file: "
                        "give another name")  # fmt: skip
