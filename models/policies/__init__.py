"""Trained policies as congestion controls: what they are called, and what a name stands for.

Nothing but the standard library is imported here: commands look names up before anything heavy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from data.errors import UserError, unknown_name

ENTRY, WEIGHTS, NODES = "policy.json", "weights.safetensors", "model.json"
"""Files of a zoo entry that make it a policy."""


@dataclass(frozen=True)
class Released:
    """A policy that the zoo may hold.

    Attributes
    ----------
    environment : str
        Key of `models.policies.scenes.ENVIRONMENTS`.
    kinds : tuple of int
        Kinds of parts that it decides for, of those that its environment has.
    summary : str
        What it is, in a few words.
    teacher : str
        Name of the entry that it was distilled from; empty of one that was trained.
    """

    environment: str
    kinds: tuple[int, ...]
    summary: str
    teacher: str = ""


RELEASED: dict[str, Released] = {
    "tcco": Released("tcco", (0,), "windows of all subflows of a connection (TCCO)"),
    "nuwa-rl": Released("nuwa", (0,), "k of a receiver that sets the window (Nuwa-RL)"),
    "macc-tcp": Released("macc", (0,), "windows of senders (MA-CC)"),
    "macc-aqm": Released("macc", (1,), "drops of routers (MA-CC)"),
    "tcco-tree": Released("tcco", (0,), "a tree that windows of subflows come from", "tcco"),
    "nuwa-rl-tree": Released("nuwa", (0,), "a tree that a receiver's k comes from", "nuwa-rl"),
    "macc-tcp-tree": Released("macc", (0,), "a tree that windows of senders come from", "macc-tcp"),
    "macc-aqm-tree": Released("macc", (1,), "a tree that drops of routers come from", "macc-aqm"),
}
"""Name of the entry -> what it is."""

PAIRS: dict[str, tuple[str, str]] = {
    "macc": ("macc-tcp", "macc-aqm"),
    "macc-tree": ("macc-tcp-tree", "macc-aqm-tree"),
}
"""Name of a controller -> entries that play together."""


def acts_by(files: Iterable[str]) -> tuple[str, ...]:
    """Names of the files that decide how an entry acts: a network's weights, or a tree's nodes."""
    return (ENTRY, WEIGHTS if WEIGHTS in files else NODES)


def kept(zoo: Path) -> list[str]:
    """Names of the policies in a zoo, sorted."""
    return sorted(path.parent.name for path in zoo.glob(f"[!._]*/{ENTRY}"))


def is_path(name: str) -> bool:
    """Whether a name is a folder's and not an entry's."""
    return "/" in name or (name not in {"", *RELEASED, *PAIRS} and Path(name).is_dir())


def check_name(name: str, zoo: Path, others: Iterable[str] = ()) -> None:
    """Refuse what no policy is called.

    Parameters
    ----------
    name : str
        An entry of the zoo, a pair of them, a folder, or ``registry:NAME``.
    zoo : Path
    others : iterable of str
        Names that are something else, to find the nearest among them too.

    Raises
    ------
    UserError
        With the nearest name; or, of a policy that could be there, how to release it.
    """
    if name.startswith("registry:") or (is_path(name) and name not in RELEASED):
        return
    there = kept(zoo)
    wanted = PAIRS.get(name, (name,))
    missing = [one for one in wanted if one not in there]
    if not missing:
        return
    if set(missing) <= RELEASED.keys():
        if teacher := RELEASED[missing[0]].teacher:
            raise UserError(
                f"{name}: no entry {missing[0]!r} in {zoo}: distil it (cczoo distill {teacher}) "
                f"and release it (cczoo zoo release {missing[0]})"
            )
        agent = RELEASED[missing[0]].environment
        raise UserError(
            f"{name}: no entry {missing[0]!r} in {zoo}: train it (cczoo train {agent}) and name "
            f"its folder, such as reports/rl/{agent}/seed-7, or release that (cczoo zoo release)"
        )
    raise unknown_name("congestion control", name, [*others, *RELEASED, *PAIRS, *there])
