"""Trains seeds that aren't published, and says whether they land in the published interval."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from models.rl import agents, training
from pipelines.rl import asked
from pipelines.rl.cost import counted
from pipelines.rl.progress import shown
from pipelines.studies.agents import publish, trainings
from pipelines.studies.agents.kept import Published
from pipelines.studies.agents.statistics import COVERAGE


def check(published: Published, count: int, trained: Path) -> dict[str, Any] | None:
    """Train fresh seeds, each after the published ones, and play them in the test episodes.

    Finished ones aren't trained again, and one that was stopped is gone on with.

    Parameters
    ----------
    published : Published
    count : int
        How many seeds.
    trained : Path
        Folder of ``seed-N``.

    Returns
    -------
    dict or None
        ``agent``, ``interval`` (``low``, ``high``, ``coverage``, ``seeds``: how many it is from),
        and ``fresh``: ``seed``, ``return``, ``inside`` of each. None if a training was stopped.
    """
    first = max(map(int, published.seeds)) + 1
    limits = published.statistics.next_seed
    rows: list[dict[str, Any]] = []
    with asked.to_stop() as stop:
        for seed in range(first, first + count):
            if not _trained(published, seed, trained / f"seed-{seed}", stop):
                return None
            one = trainings.read(trained / f"seed-{seed}")
            trainings.alike(published.settings, one.settings, str(trained / f"seed-{seed}"))
            played = publish.play(published.problem, one, published.episodes)
            value = float(np.mean(played.returns))
            inside = limits.low <= value <= limits.high
            rows.append({"seed": seed, "return": value, "inside": inside})
    return {
        "agent": published.agent,
        "interval": {"low": limits.low, "high": limits.high, "coverage": COVERAGE,
                     "seeds": len(published.seeds)},
        "fresh": rows,
    }  # fmt: skip


def _trained(published: Published, seed: int, folder: Path, stop: Any) -> bool:
    """Train one seed to its end; whether it came there."""
    params = agents.settings(published.agent, published.settings | {"seed": seed})
    with ExitStack() as open_:
        show = open_.enter_context(shown(f"{published.agent}, seed {seed}"))
        count = open_.enter_context(counted(folder))

        def watch(progress: training.Progress) -> None:
            show(progress)
            count(progress)

        found = training.train(published.agent, params, folder, resume=True, watch=watch, stop=stop)
    if not found.whole:
        print(f"stopped: the same command goes on ({found.checkpoint})", file=sys.stderr)
    return found.whole


def lines(found: dict[str, Any]) -> list[str]:
    """The verdict in words, a line for each seed."""
    low, high = found["interval"]["low"], found["interval"]["high"]
    words = [
        f"{found['agent']}: by {found['interval']['seeds']} seeds one more lands between "
        f"{low:.4f} and {high:.4f} with {found['interval']['coverage']:.0%}"
    ]
    words += [
        f"seed {one['seed']}: {one['return']:.4f}, {'inside' if one['inside'] else 'outside'}"
        for one in found["fresh"]
    ]
    return words
