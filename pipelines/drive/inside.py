"""Policies inside the control: which header a name stands for."""

from __future__ import annotations

from pathlib import Path

from data.errors import UserError
from data.lab.build import NATIVE
from data.lab.follow import Settings
from export.bpf.curve import header
from export.forms.curve import read_curve
from models import store
from models.drive.policies import driving
from pipelines.drive import trees, windows

INSIDE = "cczoo_tree"
"""Name of the control with a policy inside."""
TABLE = "nuwa-tanh"
BY_HAND = {"tracking:1.25": NATIVE / "follow_tracking.h"}


def inside_policy(name: str, work: Path) -> tuple[Settings, Path]:
    """What the control is loaded with, and the header that decides there.

    Parameters
    ----------
    name : str
        A policy by hand of `BY_HAND`, or a tree's bundle with target ``bpf``.
    work : Path
        Folder for what is written.

    Raises
    ------
    UserError
        There is no such policy, or it can't be in the control.
    """
    if name in BY_HAND:
        return driving(name).settings(orders=False), BY_HAND[name]
    if not trees.is_bundle(name):
        raise UserError(
            f"{name}: no policy for inside the control: give {', '.join(BY_HAND)}, or a tree's "
            f"bundle: cczoo export macc-tcp-tree -t bpf --out build/macc-tcp-tree"
        )
    bundle = windows.window_tree(name)
    return windows.tree_settings(bundle), windows.tree_header(bundle, work)


def receiver_table(name: str) -> str:
    """C of the table that Nuwa's receiver looks its step up in.

    Parameters
    ----------
    name : str
        An entry of the zoo that is a table of tanh, ``nuwa-tanh``; that one stands for a bundle
        of a tree that chooses k.

    Raises
    ------
    UserError
        It is none.
    """
    entry = store.load(TABLE if trees.is_bundle(name) else name)
    document = entry.read_json("model.json") if "model.json" in entry.meta.files else {}
    if document.get("kind") != "lut":
        raise UserError(f"{name}: no table for a receiver: drive it with nuwa-tanh")
    return header(read_curve(document["curve"], f"{name}: model.json: curve"), "nuwa_tanh")
