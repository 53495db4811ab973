"""Train an agent: begin or go on, keep checkpoints, tell how far it is."""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from data.errors import UserError
from data.files import write_text
from models.envs import samplers
from models.rl import agents, checkpoint
from models.rl import start as start_weights
from models.rl.best import TEST
from models.rl.judge import greedy_returns
from models.rl.params import Run

CURVE = "curve.json"
FREE = {"steps", "threads", "learner_threads", "checkpoint_min"}
"""Settings that a training may have changed when it goes on."""


@dataclass(frozen=True)
class Progress:
    """How far a training is.

    Attributes
    ----------
    steps, total : int
        Done, and wanted.
    returns : float or None
        Mean return of the last episodes.
    steps_per_s : float
        Since this process began.
    left_s : float
        Seconds still to go at that speed.
    point : dict
        The newest of the curve.
    """

    steps: int
    total: int
    returns: float | None
    steps_per_s: float
    left_s: float
    point: dict[str, float]


Watch = Callable[[Progress], object]


@dataclass(frozen=True)
class Trained:
    """What a training leaves.

    Attributes
    ----------
    curve : list of dict
        Points, each with ``steps``, ``updates``, ``return`` and what the learner reports.
    checkpoint : Path
    whole : bool
        Whether all steps were done; otherwise it was asked to stop.
    steps_per_s : float
    judged : list of float
        Returns of the best network's greedy policy in episodes of their own, if asked for.
    best_steps : int
        Steps after which the network was best in validation; 0 if it wasn't judged.
    """

    curve: list[dict[str, float]]
    checkpoint: Path
    whole: bool
    steps_per_s: float
    judged: list[float]
    best_steps: int


def train(
    name: str,
    params: Run,
    out: Path,
    *,
    resume: bool = False,
    watch: Watch | None = None,
    stop: Callable[[], bool] = lambda: False,
    judge: int = 0,
    begin: Path | None = None,
) -> Trained:
    """Train an agent.

    Parameters
    ----------
    name : str
        Of `models.rl.agents.AGENTS`.
    params : Run
        Of the agent's type.
    out : Path
        Folder of its checkpoint and of ``curve.json``.
    resume : bool
        Go on from the checkpoint in ``out``, if there is one, to the same curve as without a break.
    watch : callable, optional
        Called with each `Progress`.
    stop : callable, optional
        Asked after each round whether to end early, with a checkpoint.
    judge : int
        Episodes in which to judge the best network's greedy policy at the end.
    begin : Path, optional
        Folder of another training, whose network this one begins with.

    Returns
    -------
    Trained

    Raises
    ------
    UserError
        When the checkpoint is of other settings, or there is one and it isn't to be gone on from,
        or there are no measured traces to validate or to judge on, or those are to be trained on.
    """
    _check_traces(params, judge)
    with _alone(out):
        found = checkpoint.latest(out)
        if found and not resume:
            raise UserError(
                f"{out}: holds a training already: go on with --resume, or choose another --out"
            )
        algorithm = start(name, params)
        try:
            if found:
                go_on(algorithm, name, params, found)
            elif begin is not None:
                start_weights.put(algorithm, begin)
            trained = _run(algorithm, name, params, out, watch, stop)
            if judge and trained.whole:
                module = algorithm.best.module(algorithm)
                returns = greedy_returns(algorithm, judge, TEST + params.seed, module, test=True)
                trained = replace(trained, judged=returns.tolist())
            return trained
        finally:
            algorithm.stop()


def _check_traces(params: Run, judge: int) -> None:
    """Refuse what would be refused after hours: a part of the measured traces that is empty.

    Or what would never be: training on those that choose a network or that judge it.
    """
    sampler = str(params.env.get("sampler", ""))
    for prefix in samplers.SPLITS:
        if sampler.startswith(prefix) and prefix != samplers.SPLITS[samplers.TRAINING]:
            folder = sampler.removeprefix(prefix)
            raise UserError(
                f"env.sampler: {sampler}: these traces choose or judge a network: train on "
                f"{samplers.SPLITS[samplers.TRAINING]}{folder}"
            )
    if params.validate_every:
        try:
            _check_part(sampler, samplers.VALIDATION)
        except UserError as error:
            advice = "or train without choosing among networks, by --set validate_every=0"
            raise UserError(f"{error}; {advice}") from None
    if judge:
        _check_part(sampler, samplers.HELD_OUT)


def _check_part(sampler: str, part: int) -> None:
    name = samplers.of_split(sampler, part)
    if name != sampler:
        samplers.named(name)


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Keep other trainings out of a folder; the kernel lets go of it with the process."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{out}: a training is at work there: wait for it") from None
        yield


def start(name: str, params: Run) -> Any:
    """An agent's algorithm before its first step."""
    from models import parallel

    parallel.set_switches()
    from models.rl import quiet

    quiet.hush()
    if params.runners:
        parallel.start(params.runners)
    line = agents.agent(name)
    algorithm = line.load()
    from models.rl.algorithms.base import AgentConfig

    config = AgentConfig.of(algorithm, line.maker, params, line.training_only)
    return algorithm(config=config)


def go_on(algorithm: Any, name: str, params: Run, path: Path) -> None:
    """Put an algorithm where a checkpoint was written.

    Raises
    ------
    UserError
        When the checkpoint is of another agent or of other settings.
    """
    tree = checkpoint.read(path)
    if "offline" in tree:
        raise UserError(f"{path}: learned from logs: begin a training by --start {path.parent}")
    if tree["agent"] != name:
        raise UserError(f"{path}: a training of {tree['agent']!r}, not of {name!r}")
    # A setting that came later than the checkpoint had its default value then.
    older = _plain(agents.settings(name, tree["settings"]))
    for key, value in _plain(params).items():
        before = older[key]
        if before != value and key not in FREE:
            raise UserError(f"{path}: was trained with {key}={before}, not {value}")
    algorithm.set_run(tree["run"] | {name: tree[name] for name in checkpoint.NETWORKS})


def _plain(params: Run) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(params.model_dump_json(by_alias=True))
    return tree


def save(algorithm: Any, name: str, params: Run, out: Path) -> Path:
    """Write a checkpoint and the curve so far."""
    run = algorithm.get_run()
    networks = {name: run.pop(name) for name in checkpoint.NETWORKS}
    tree = {"agent": name, "settings": _plain(params), "run": run, **networks}
    path = checkpoint.write(out, algorithm.steps, tree)
    write_text(out / CURVE, json.dumps(algorithm.curve) + "\n")
    return path


def _run(
    algorithm: Any,
    name: str,
    params: Run,
    out: Path,
    watch: Watch | None,
    stop: Callable[[], bool],
) -> Trained:
    first, begun = algorithm.steps, time.monotonic()
    saved, path = begun, None
    stopped = False
    while algorithm.steps < params.steps and not stopped:
        algorithm.train()
        algorithm.best.look(algorithm, last=algorithm.steps >= params.steps)
        now = time.monotonic()
        speed = (algorithm.steps - first) / (now - begun)
        if watch is not None:
            left = max(0.0, (params.steps - algorithm.steps) / max(speed, 1e-9))
            point = algorithm.curve[-1] if algorithm.curve else {}
            watch(Progress(algorithm.steps, params.steps, point.get("return"), speed, left, point))
        stopped, path = stop(), None
        if now - saved > 60 * params.checkpoint_min:
            path = save(algorithm, name, params, out)
            saved = time.monotonic()
    if algorithm.steps == first:
        # It was finished already: what lies there is as it should be.
        path = checkpoint.latest(out)
    path = path or save(algorithm, name, params, out)
    speed = (algorithm.steps - first) / max(time.monotonic() - begun, 1e-9)
    whole, best = algorithm.steps >= params.steps, algorithm.best.steps
    return Trained(algorithm.curve, path, whole, speed, [], best)
