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
"""MA-CC's network with weights drawn at random, which plays wherever its trained one does."""
_TRAINED_AS = {"nuwa-rl": "nuwa"}
"""Names of trainings, where an agent's own is another."""
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
        When a name is unknown, with the nearest one, when what is there was trained as another
        agent, or when MA-CC lacks its senders or its routers.
    """
    places = _places(texts) if texts else {name: name for name in HEADS if _kept(name)}
    if not places:
        return {}
    from pipelines.controllers import player

    found = {}
    for name, place in places.items():
        found[name] = player(place)
        policy, wanted = found[name].policy, _TRAINED_AS.get(name, name)
        if policy.agent != wanted:
            raise UserError(
                f"--agent {name}={place}: an agent of {policy.agent}: name one of {wanted}"
            )
        if name == "macc" and set(policy.kinds) != {0, 1}:
            raise UserError(
                f"--agent {name}={place}: {policy.name} has senders or routers alone: give a "
                "team's training, as macc=reports/rl/macc/seed-7"
            )
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
    """Agents, and MA-CC's network with weights drawn at random; see `untrained`."""
    from models.closedloop import Player

    found = dict(agents)
    if "macc" in agents:
        found[UNTRAINED] = Player(untrained(agents["macc"].policy))
    return found


def untrained(policy: Policy) -> Policy:
    """A policy with weights drawn by a seed of ours, which is no training's.

    Its inputs stay standardised as training left them, so it isn't what the training began with.
    """
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
        return (
            f"`{name}`: the network of `macc` with weights drawn at random by a fixed seed; its "
            "inputs stay scaled as the training left them, so it isn't what the training began with"
        )
    found = facts(player)
    return f"`{name}`: `{found['training']}`, weights `{found['weights'][:12]}`"
