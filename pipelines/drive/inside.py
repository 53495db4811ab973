"""Policies inside the control: which header a name stands for."""

from __future__ import annotations

from pathlib import Path

from data.errors import UserError
from data.lab.build import NATIVE

INSIDE = "cczoo_tree"
"""Name of the control with a policy inside."""
BY_HAND = {"tracking:1.25": NATIVE / "follow_tracking.h"}


def inside_policy(name: str, work: Path) -> Path:
    """Header that defines ``follow_action()`` for a policy.

    Parameters
    ----------
    name : str
        A policy by hand of `BY_HAND`, or a folder with a ``follow_policy.h``.
    work : Path
        Folder for what is written.

    Raises
    ------
    UserError
        There is no such header.
    """
    if name in BY_HAND:
        return BY_HAND[name]
    header = Path(name) / "follow_policy.h"
    if header.is_file():
        return header
    raise UserError(
        f"{name}: no policy for inside the control: give {', '.join(BY_HAND)}, or a folder with "
        "a follow_policy.h that defines follow_action()"
    )
