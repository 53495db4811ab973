"""Trained agents that a study plays: given by name and place, or those that the zoo holds."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from data.errors import UserError, unknown_name
from models import policies, store

if TYPE_CHECKING:
    from models.closedloop import Player
    from models.policies.policy import Policy

HEADS = ("tcco", "nuwa-rl", "macc")
"""The papers' own agents."""
UNTRAINED = "macc-untrained"
"""MA-CC's network before its training, which plays wherever its trained one does."""
_SEED = 7


def names() -> list[str]:
    """Names under which agents can be given: the papers' own, then what they are compared with."""
    from models.rl.comparisons.lines import COMPARISONS

    return [*HEADS, *COMPARISONS]


def add_argument(parser: argparse.ArgumentParser) -> None:
    """Define ``--agent``."""
    parser.add_argument(
        "--agent",
        action="append",
        default=[],
        metavar="NAME=PLACE",
        help="a trained agent: tcco, nuwa-rl, macc or a comparison, and where it is: a folder that "
        "`cczoo train` wrote, an entry of the zoo, registry:NAME; repeat it (default: the entries "
        "of the zoo)",
    )


def given(texts: Sequence[str]) -> dict[str, Player]:
    """Open agents.

    Parameters
    ----------
    texts : sequence of str
        ``NAME=PLACE``; if there is none, the agents that the zoo holds.

    Raises
    ------
    UserError
        When a name is unknown, with the nearest one, or what is there is another kind of agent.
    """
    places = _places(texts) if texts else {name: name for name in HEADS if _kept(name)}
    if not places:
        return {}
    from pipelines.controllers import player

    found = {}
    for name, place in places.items():
        found[name] = player(place)
        kind, wanted = found[name].policy.environment, name.partition("-")[0]
        if kind != wanted:
            raise UserError(f"--agent {name}={place}: an agent of {kind}: name one of {wanted}")
    return found


def _places(texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, equals, place = text.partition("=")
        if not equals or not place:
            raise UserError(f"--agent {text}: give NAME=PLACE, as macc=reports/rl/macc/seed-7")
        if name not in names():
            raise unknown_name("agent", name, names())
        found[name] = place
    return found


def _kept(name: str) -> bool:
    return set(policies.PAIRS.get(name, (name,))) <= set(policies.kept(store.ZOO))


def with_untrained(agents: Mapping[str, Player]) -> dict[str, Player]:
    """Agents, and MA-CC's network with the weights that a training begins with."""
    from models.closedloop import Player

    found = dict(agents)
    if "macc" in agents:
        found[UNTRAINED] = Player(untrained(agents["macc"].policy))
    return found


def untrained(policy: Policy) -> Policy:
    """A policy with weights drawn anew; its inputs stay standardised as they were."""
    import torch

    from models.policies.policy import SCALES

    torch.manual_seed(_SEED)
    fresh = replace(policy, weights={key: policy.weights[key] for key in SCALES})
    state = fresh.module(policy.layout).state_dict()
    drawn = {key: value.float().numpy() for key, value in state.items() if key.startswith("net.")}
    return replace(fresh, name=UNTRAINED, weights={**drawn, **fresh.weights})


def facts(player: Player) -> dict[str, Any]:
    """What a page says of an agent: nothing of the machine that it lies on.

    Returns
    -------
    dict
        ``agent``, ``steps`` and ``seed`` of its training, the ``training``'s command, ``place``
        where that leaves it, ``weights`` (SHA-256).
    """
    from models.policies.card import training
    from models.policies.identity import weights_digest

    policy = player.policy
    seed = policy.settings.get("seed")
    return {
        "agent": policy.agent,
        "steps": policy.settings.get("steps"),
        "seed": seed,
        "training": training(policy.agent, policy.settings),
        "place": f"reports/rl/{policy.agent}/seed-{seed}",
        "weights": weights_digest(policy),
    }


def line(name: str, player: Player) -> str:
    """An agent in a line of a page."""
    if name == UNTRAINED:
        return f"`{name}`: the network of `macc` before its training"
    found = facts(player)
    return f"`{name}`: `{found['training']}`, weights `{found['weights'][:12]}`"
