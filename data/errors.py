"""The one exception that stands for a user's mistake."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Wrong input from the user: what is wrong, where, and what to do next.

    The command line prints the message alone and exits with status 2.
    """


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UserError:
    """Error for a name that a registry doesn't hold, with the nearest correct one.

    Parameters
    ----------
    kind : str
        What was looked for, for the message ("model", "target").
    name : str
        The name as the user gave it.
    known : iterable of str
        The registry's names.

    Returns
    -------
    UserError
        To be raised by the caller.
    """
    # A name out of an array is numpy's own kind of text, whose repr is np.str_('XX').
    names = sorted(map(str, known))
    near = difflib.get_close_matches(name, names, n=1)
    there = f"known: {', '.join(names)}" if names else "there is none yet"
    hint = f"did you mean {near[0]!r}?" if near else there
    return UserError(f"unknown {kind} {str(name)!r}: {hint}")


def one_line(text: str, most: int = 300) -> str:
    """Text of unknown origin as it may be printed: one line, no control characters, not endless."""
    shown = "".join(c if c.isprintable() else "?" for c in text)
    return shown if len(shown) <= most else shown[: most - 3] + "..."
