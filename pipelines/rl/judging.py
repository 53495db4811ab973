"""Play a trained agent and all that it is measured by: the same episodes for everybody."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models.envs.samplers import HELD_OUT, VALIDATION, of_split
from models.rl import best as validating
from models.rl.judge import episodes_seed
from pipelines.output import progress
from pipelines.rl.verdict import UNTRAINED, average, best
from pipelines.studies.environments import judge
from pipelines.studies.environments.judge import AGENT, CONSTANT, RANDOM, SCRIPT, Played, Result

if TYPE_CHECKING:
    from models.rl.params import Run

SHARE, KEPT = 2, 3
"""Constants and scripts play one of so many episodes; so many of each kind play them all."""
SEED = 3 << 31
"""Test episodes are drawn from it. Trainings, validations and the page of environments draw theirs
from smaller seeds, and what is published of several seeds from another: these chose no setting."""


def sampler_of(name: str, params: Run) -> str:
    """Name of the scenarios that an agent was trained in."""
    from models.policies.scenes import ENVIRONMENTS

    settings: Any = ENVIRONMENTS[name].settings().parse(params.env, f"train {name}")
    return str(settings.sampler)


def by_hand(name: str, params: Run, part: int = HELD_OUT) -> list[Played]:
    """Policies by hand, on measured traces on those of one part.

    Raises
    ------
    UserError
        When no measured trace is in that part.
    """
    return judge.by_hand(name, of_split(sampler_of(name, params), part))


def play_all(
    name: str, params: Run, folders: Sequence[Path], episodes: int
) -> tuple[list[Result], list[Result]]:
    """Play policies by hand, untrained networks and trained ones in the test episodes.

    Parameters
    ----------
    name : str
        Agent.
    params : Run
        Settings of the first seed's training.
    folders : sequence of Path
        Trainings, a seed each.
    episodes : int

    Returns
    -------
    results : list of Result
        Random actions, untrained, constants, scripts, the agent; networks as the mean over seeds.
        Constants and scripts that are behind in the first half have played no more than that.
    seeds : list of Result
        The agent's own, a seed each.
    """
    hands = by_hand(name, params)
    found = [judge.play(row, episodes, seed=SEED) for row in hands if row[1] == RANDOM]
    found.append(average(_networks(name, params, folders, episodes, True)))
    first = max(2, episodes // SHARE)
    for kind in (CONSTANT, SCRIPT):
        own = [row for row in hands if row[1] == kind]
        played = {
            row[0]: judge.play(row, first, seed=SEED) for row in progress(own, f"{kind}s", len(own))
        }
        order = sorted(played, key=lambda one: -float(played[one].returns.mean()))
        for row in own:
            if row[0] in order[:KEPT]:
                played[row[0]] = judge.play(row, episodes, seed=SEED)
        found += played.values()
    seeds = _networks(name, params, folders, episodes, False)
    return [*found, average(seeds)], seeds


def levels(name: str, params: Run, results: Sequence[Result]) -> dict[str, float]:
    """What the best of each kind gets in the episodes in which the training was validated."""
    hands = {row[0]: row for row in by_hand(name, params, VALIDATION)}
    seed = episodes_seed(validating.VALIDATION + params.seed)
    found = {}
    for kind in (RANDOM, UNTRAINED, CONSTANT, SCRIPT):
        one = best(results, kind)
        if one is not None:
            row = hands.get(one.name) or _untrained(name, params, next(iter(hands.values()))[2])
            played = judge.play(row, params.validation_episodes, seed=seed)
            found[kind] = float(played.returns.mean())
    return found


def _networks(
    name: str, params: Run, folders: Sequence[Path], episodes: int, before: bool
) -> list[Result]:
    """Networks of all seeds, before their training or after it."""
    from models.rl.policy import Greedy, kept

    make = by_hand(name, params)[0][2]
    played = []
    for folder in folders:
        _, own, module = kept(folder)
        row: Played = (name, AGENT, make, partial(Greedy, module))
        shown = _untrained(name, own, make) if before else row
        played.append(judge.play(shown, episodes, seed=SEED))
    return played


def _untrained(name: str, params: Run, make: judge.Maker) -> Played:
    from models.rl.policy import Greedy, untrained

    return (UNTRAINED, UNTRAINED, make, partial(Greedy, untrained(name, params)))


def episode_steps(name: str, params: Run) -> int:
    """Decisions of an episode."""
    return int(by_hand(name, params)[0][2](1).steps)
