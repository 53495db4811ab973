"""Policies inside the control: which header a name stands for."""

from __future__ import annotations

from pathlib import Path

from data.errors import UserError
from data.lab.build import NATIVE
from export.bpf.curve import header
from export.forms.curve import read_curve
from models import store

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


def receiver_table(name: str) -> str:
    """C of the table that Nuwa's receiver looks its step up in.

    Parameters
    ----------
    name : str
        An entry of the zoo that is a table of tanh: ``nuwa-tanh``.

    Raises
    ------
    UserError
        It is none.
    """
    entry = store.load(name)
    document = entry.read_json("model.json") if "model.json" in entry.meta.files else {}
    if document.get("kind") != "lut":
        raise UserError(f"{name}: no table for a receiver: drive it with nuwa-tanh")
    return header(read_curve(document["curve"], f"{name}: model.json: curve"), "nuwa_tanh")
