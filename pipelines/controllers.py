"""Open what a command names as a congestion control: a trained policy, wherever it lies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from data.errors import UserError
from data.netsim.cc import CONTROLS
from models import policies, store

if TYPE_CHECKING:
    from models.closedloop import Player


REGISTRY = "registry:"


def player(name: str, delay_ms: float = 0.0, zoo: Path | None = None) -> Player:
    """The policy that a name stands for.

    Parameters
    ----------
    name : str
        As `models.closedloop.player` takes it, or ``registry:NAME[@ALIAS|/VERSION]``, where NAME
        may be that of a pair, whose two policies then have the alias.
    delay_ms : float, optional
        How long after an observation its action takes effect.
    zoo : Path, optional
        Another zoo than the repository's.

    Raises
    ------
    UserError
        When there is none, with the nearest name.
    """
    return at(places(name, zoo), name, delay_ms, zoo)


def places(name: str, zoo: Path | None = None) -> tuple[str, ...]:
    """Where a policy lies: a name of the zoo or a folder, or two folders that are one together.

    What is in the registry is fetched, so that an alias that moves meanwhile changes nothing.

    Parameters
    ----------
    name, zoo
        As for `player`.

    Raises
    ------
    UserError
        As for `player`.
    """
    policies.check_name(name, zoo or store.ZOO, CONTROLS)
    if not name.startswith(REGISTRY):
        return (name,)
    from pipelines.registry.entries import Address, fetch_entry

    address = Address.parse(name)
    pair = policies.PAIRS.get(address.name)
    if pair is None:
        return (_fetched(name, fetch_entry(name)),)
    if address.version or address.group:
        raise UserError(
            f"{name}: {' and '.join(pair)} together, each with versions of its own: give an "
            f"alias that both have, such as {REGISTRY}{address.name}@champion"
        )
    both = [f"{REGISTRY}{one}@{address.alias}" for one in pair]
    return tuple(_fetched(one, fetch_entry(one)) for one in both)


def at(found: tuple[str, ...], name: str, delay_ms: float = 0.0, zoo: Path | None = None) -> Player:
    """The policy that lies where `places` says.

    Parameters
    ----------
    found : tuple of str
    name : str
        What messages call it.
    delay_ms, zoo
        As for `player`.
    """
    from models import closedloop

    if len(found) == 1:
        return closedloop.player(found[0], delay_ms, zoo)
    from models.policies.entry import of_entry

    one, other = (of_entry(store.load(Path(folder))) for folder in found)
    return closedloop.Player(one.joined(other, name), delay_ms)


def _fetched(name: str, folder: str) -> str:
    if not (Path(folder) / policies.ENTRY).is_file():
        raise UserError(f"{name}: a model, but no policy that sets windows: name one of a policy")
    return folder


def listed() -> dict[str, str]:
    """Policies that the zoo holds, and pairs of them, each with a line on it."""
    there = policies.kept(store.ZOO)
    found = {name: policies.RELEASED[name].summary if name in policies.RELEASED else "a policy"
             for name in there}  # fmt: skip
    for name, pair in policies.PAIRS.items():
        if set(pair) <= set(there):
            found[name] = f"{' and '.join(pair)} together"
    return found
