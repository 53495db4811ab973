"""Search an agent's settings with Ray Tune; bad trials end early (ASHA)."""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from data.errors import UserError
from data.files import write_text
from models import parallel
from models.rl import agents, training

FOUND = "tune.json"
GRACE = 4
"""A trial runs for at least one in so many of the steps."""


def best(name: str, fixed: dict[str, Any], trials: int, out: Path) -> dict[str, Any]:
    """Train with many settings; also writes ``tune.json``.

    Parameters
    ----------
    name : str
        Agent.
    fixed : dict
        Settings that aren't searched.
    trials : int
    out : Path

    Returns
    -------
    dict
        ``settings`` of the best, its ``return``, and all ``trials``.

    Raises
    ------
    UserError
        When no trial came to its end of an episode.
    """
    parallel.start(len(os.sched_getaffinity(0)))
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler

    line = agents.agent(name)
    params = agents.settings(name, fixed)
    space: dict[str, Any] = {}
    for key, tried in line.search.items():
        if key not in fixed:
            choice = isinstance(tried, list)
            space[key] = tune.choice(tried) if choice else tune.loguniform(*tried)
    scheduler = ASHAScheduler(
        time_attr="steps", max_t=params.steps, grace_period=max(1, params.steps // GRACE)
    )
    tuner = tune.Tuner(
        tune.with_parameters(trial, name=name, fixed=fixed),
        param_space=space,
        tune_config=tune.TuneConfig(
            metric="reward", mode="max", num_samples=trials, scheduler=scheduler
        ),
        run_config=tune.RunConfig(
            name="tune", storage_path=str(out.resolve()), verbose=0, log_to_file=True
        ),
    )
    # Tune's tables are for people: JSON alone goes to stdout.
    with redirect_stdout(sys.stderr):
        found = tuner.fit()
    rows = [
        {"settings": one.config, **{key: one.metrics[key] for key in ("return", "reward", "steps")}}
        for one in map(found.__getitem__, range(len(found)))
        if one.error is None and one.metrics and "steps" in one.metrics
    ]
    if not rows:
        raise UserError(f"{out}: no trial got to its first episode's end: set more steps")
    # One that was stopped early is no match for one that was trained to its end.
    rows.sort(key=lambda row: (-row["steps"], -row["reward"]))
    best = rows[0]
    result = {"agent": name, "settings": fixed | best["settings"],
              **{key: best[key] for key in ("return", "reward")}}  # fmt: skip
    result["trials"] = rows
    write_text(out / FOUND, json.dumps(result, indent=1) + "\n")
    return result


def trial(config: dict[str, Any], name: str, fixed: dict[str, Any]) -> None:
    """One training, in a process of its own and a folder of Tune's."""
    from ray import tune

    def watch(progress: training.Progress) -> None:
        if progress.returns is not None:
            reward = progress.point["reward"]
            tune.report({"return": progress.returns, "reward": reward, "steps": progress.steps})

    # The search ranks by what training earns: validation would only cost.
    settings = agents.settings(name, {"validate_every": 0} | fixed | config)
    training.train(name, settings, Path("training"), watch=watch)
