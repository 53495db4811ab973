"""Kill trainings with SIGKILL at random moments, go on, and compare with one that wasn't killed.

The curve and every value of the last checkpoint (weights, moments, ring, generators, environments)
have to be the same, bit for bit, on one thread. Ends with 1 where they aren't.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import shutil
import signal
import sys
import tempfile
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np

from models.rl import agents, checkpoint, training
from models.rl.params import Run
from pipelines.rl.changes import changes

SMALL: dict[str, dict[str, Any]] = {
    "recall": {"num_envs": 16, "steps": 10_000, "validate_every": 1_000},
    "recall-transformer": {
        "num_envs": 16, "steps": 4_000, "width": 32, "subflow_width": 16, "context": 6,
        "learning_starts": 400, "capacity": 3_000, "alpha": 0.6, "target_every": 500,
        "report_every": 200, "validate_every": 1_000,
    },
    "matrix": {
        "num_envs": 16, "steps": 8_000, "learning_starts": 400, "capacity": 3_000, "batch": 64,
        "report_every": 200, "validate_every": 1_000,
    },
}  # fmt: skip
"""The rings are so small that the oldest rows are overwritten."""


_CLEAN = multiprocessing.get_context("forkserver")
"""Forks from a process that has trained nothing: torch refuses to go on learning in the fork of
one whose threads have computed gradients."""
_CLEAN.set_forkserver_preload(["models.rl.algorithms.ppo", "models.rl.algorithms.replay"])


def child(name: str, params: Run, out: Path) -> BaseProcess:
    """Train in a process of its own, which is begun."""
    process = _CLEAN.Process(
        target=training.train, args=(name, params, out), kwargs={"resume": True}
    )
    process.start()
    return process


def killed(name: str, params: Run, out: Path, most: int, wait_s: float, rng: random.Random) -> int:
    """Train to the end through at most so many kills; how many there were."""
    kills = 0
    while True:
        process = child(name, params, out)
        if kills < most:
            time.sleep(rng.uniform(0.0, wait_s))
            process.kill()
        process.join()
        if process.exitcode == 0:
            return kills
        if process.exitcode != -signal.SIGKILL:
            raise RuntimeError(f"{name}: the training failed")
        kills += 1


def differ(one: Any, other: Any, path: str = "") -> str:
    """Where two trees differ first; nothing if they don't."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        pairs = ((f"{path}/{key}", one[key], other[key]) for key in one)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = ((f"{path}/{k}", *pair) for k, pair in enumerate(zip(one, other, strict=True)))
    elif isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        alike = one.dtype == other.dtype and one.shape == other.shape
        return "" if alike and one.tobytes() == other.tobytes() else path
    else:
        return "" if type(one) is type(other) and one == other else path
    return next(filter(None, (differ(a, b, where) for where, a, b in pairs)), "")


def judged(name: str, more: dict[str, Any], wanted: int, rng: random.Random) -> dict[str, Any]:
    """Kill one agent's training so often, in as many trainings as it takes."""
    params = agents.settings(name, {**SMALL.get(name, {}), "checkpoint_min": 1e-9, **more})
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    try:
        begun = time.monotonic()
        training.train(name, params, folder / "whole")
        span = time.monotonic() - begun
        whole = checkpoint.read(checkpoint.latest(folder / "whole") or folder)
        kills, trainings, difference = 0, 0, ""
        while kills < wanted and not difference:
            out = folder / f"cut-{trainings}"
            # Long enough that it gets on from checkpoint to checkpoint.
            kills += killed(name, params, out, wanted - kills, span / 3, rng)
            trainings += 1
            cut = checkpoint.read(checkpoint.latest(out) or out)
            difference = differ(whole, cut)
    finally:
        shutil.rmtree(folder)
    points = len(whole["run"]["curve"])
    found = {"kills": kills, "trainings": trainings, "seconds_of_one": span, "points": points}
    return {**found, "same": not difference, "first_difference": difference}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="JSON, which is printed in any case")
    parser.add_argument("--kills", type=int, default=20, help="of each agent")
    parser.add_argument("--agent", action="append", help="default: three with a known optimum")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    more = changes(args.set)
    result = {name: judged(name, more, args.kills, rng) for name in args.agent or SMALL}
    print(json.dumps(result, indent=1))
    return 0 if all(one["same"] for one in result.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
