"""Open what a command names as a congestion control: a trained policy, wherever it lies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from data.netsim.cc import CONTROLS
from models import policies, store

if TYPE_CHECKING:
    from models.closedloop import Player


def player(name: str, delay_ms: float = 0.0, zoo: Path | None = None) -> Player:
    """The policy that a name stands for.

    Parameters
    ----------
    name : str
        As `models.closedloop.player` takes it, or ``registry:NAME[@ALIAS|/VERSION]``.
    delay_ms : float, optional
        How long after an observation its action takes effect.
    zoo : Path, optional
        Another zoo than the repository's.

    Raises
    ------
    UserError
        When there is none, with the nearest name.
    """
    policies.check_name(name, zoo or store.ZOO, CONTROLS)
    folder = name
    if name.startswith("registry:"):
        from pipelines.registry.entries import fetch_entry

        folder = str(fetch_entry(name))
    from models import closedloop

    return closedloop.player(folder, delay_ms, zoo)


def listed() -> dict[str, str]:
    """Policies that the zoo holds, and pairs of them, each with a line on it."""
    there = policies.kept(store.ZOO)
    found = {name: policies.RELEASED[name].summary if name in policies.RELEASED else "a policy"
             for name in there}  # fmt: skip
    for name, pair in policies.PAIRS.items():
        if set(pair) <= set(there):
            found[name] = f"{' and '.join(pair)} together"
    return found
