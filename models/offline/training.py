"""Train a policy from logged decisions; what is left is a folder like that of an online training.

So it plays wherever a trained policy does, becomes an entry of the zoo, and a version in the
registry. It has no optimiser's moments and no simulation: an online training begins from it
(``cczoo train tcco --start FOLDER``) and doesn't go on with it.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback

from data.errors import UserError
from data.files import write_text
from models.envs.tcco import TccoSettings
from models.offline.methods import method
from models.offline.methods.base import Method
from models.offline.source import Decisions, Source
from models.offline.windows import joined
from models.one_thread import one_thread
from models.rl import checkpoint
from models.rl.layout import Layout

CURVE = "curve.json"
POINTS = 6
"""Validations of a training, at even distances; the last one is at its end."""
FIRST = 2_048
"""Windows that the scale of inputs and rewards is taken from, at least."""

Watch = Callable[[int, int, dict[str, float]], object]
"""Takes updates done, updates wanted and the newest point of the curve."""


@dataclass(frozen=True)
class Learned:
    """What a training leaves.

    Attributes
    ----------
    folder, checkpoint : Path
    curve : list of dict
        ``updates`` and the means of all losses since the last point, on runs that were set aside
        as ``validation_...``, with ``agreement``: how often the policy does what was logged.
    """

    folder: Path
    checkpoint: Path
    curve: list[dict[str, float]]


def learn(
    name: str, source: Source, out: Path, *, resume: bool = False, watch: Watch | None = None
) -> Learned:
    """Train one seed.

    Parameters
    ----------
    name : str
        Of `models.offline.methods.METHODS`.
    source : Source
        With the method's settings.
    out : Path
        Folder of the checkpoint and of ``curve.json``.
    resume : bool
        Take what is there already, if it is whole.
    watch : callable, optional

    Raises
    ------
    UserError
        When there is a training already, the decisions aren't those of the environment that the
        settings name, or there are too few.
    """
    found = checkpoint.latest(out)
    if found and not resume:
        raise UserError(f"{out}: holds a training already: give --resume, or another --out")
    if found:
        _check_same(found, name, source)
        points = json.loads((out / CURVE).read_text(encoding="utf-8"))
        curve = [{key: v for key, v in one.items() if key != "steps"} for one in points]
        return Learned(out, found, curve)
    module = fitted(name, source, watch)
    return Learned(out, save(name, module, source, out), module.curve)


def fitted(name: str, source: Source, watch: Watch | None = None) -> Method:
    """The method after its training, kept nowhere; see `learn`."""
    settings = source.settings
    environment(source)
    layout = Layout((0,) * settings.subflows, (len(source.about.actions),),
                    (len(source.about.observation),), settings.context)  # fmt: skip
    with one_thread():
        torch.set_num_threads(settings.threads)
        module = method(name).load()(layout, settings)
        run(module, source, watch)
    return module.eval()


def run(module: Method, source: Source, watch: Watch | None = None) -> None:
    """Let Lightning train what has networks already."""
    _hush()
    settings = source.settings
    first, count = [], 0
    for one in source.batches(settings.seed):
        first.append(one)
        count += len(one)
        if count >= FIRST:
            break
    module.standardise(joined(first))
    every = -(-settings.updates // POINTS)
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_steps=settings.updates,
        gradient_clip_val=settings.clip,
        val_check_interval=min(every, settings.updates),
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[_Shown(settings.updates, watch)],
    )
    decisions = Decisions(source)
    trainer.fit(module, datamodule=decisions)
    if not module.curve or module.curve[-1]["updates"] < settings.updates:
        trainer.validate(module, datamodule=decisions, verbose=False)


class _Shown(Callback):
    """Tells how far a training is."""

    def __init__(self, total: int, watch: Watch | None) -> None:
        self.total, self.watch = total, watch

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        """Tell."""
        if self.watch is not None:
            self.watch(trainer.global_step, self.total, module.curve[-1] if module.curve else {})


def environment(source: Source) -> dict[str, Any]:
    """Settings of the environment that a policy is made for, with as many subflows as it takes.

    Raises
    ------
    UserError
        When its decisions come at other times than those that were logged, or are others.
    """
    settings, about = source.settings, source.about
    env = dict(settings.env)
    parsed = TccoSettings.parse(env, "env")
    if parsed.params.subflows != settings.subflows:
        env["params"] = {**dict(env.get("params") or {}), "subflows": settings.subflows}
        parsed = TccoSettings.parse(env, "env")
    interval, reach = parsed.params.observation.interval_us, parsed.params.reach
    if about.interval_us != interval or len(about.actions) != 2 * reach + 1:
        raise UserError(
            f"{source.name}: {len(about.actions)} actions every {about.interval_us} us, but the "
            f"environment has {2 * reach + 1} every {interval} us: set env.params.reach and "
            "env.params.observation.interval_us"
        )
    return env


def save(name: str, module: Method, source: Source, out: Path) -> Path:
    """Write the folder; returns the checkpoint in it."""
    settings = source.settings
    tree = {
        "agent": agent_name(name, source),
        "settings": online(source),
        "run": {},
        "network": _plain(module.starting()),
        "optimiser": {},
        "best": _plain(module.acting()),
        "offline": {
            "method": name,
            "settings": settings.model_dump(mode="json"),
            "decisions": source.name,
            "selection": None if source.selection is None else source.selection.plain(),
        },
    }
    path = checkpoint.write(out, settings.updates, tree)
    points = [{"steps": one["updates"], **one} for one in module.curve]
    write_text(out / CURVE, json.dumps(points) + "\n")
    return path


def agent_name(name: str, source: Source) -> str:
    """What the training is called: an entry of the zoo never takes the agent's own name."""
    return f"{source.about.agent}-{name}"


def online(source: Source) -> dict[str, Any]:
    """The settings that an online training of the same network has in common."""
    settings = source.settings
    kept = ("seed", "rate", "last_rate", "gamma", "logs", "batch", "subflow_width", "width",
            "heads", "layers", "context")  # fmt: skip
    tree = {key: getattr(settings, key) for key in kept}
    return {**tree, "steps": settings.updates, "env": environment(source)}


def _check_same(found: Path, name: str, source: Source) -> None:
    before = checkpoint.read(found).get("offline")
    now = source.settings.model_dump(mode="json")
    if before is None or before["method"] != name or before["settings"] != now:
        raise UserError(f"{found}: a training with other settings: give another --out")
    selected = before.get("selection") or {}
    if source.selection and selected.get("fingerprint") != source.selection.fingerprint:
        raise UserError(f"{found}: learned from other decisions than these: give another --out")


def _plain(weights: dict[str, torch.Tensor]) -> dict[str, Any]:
    return {key: value.detach().numpy().copy() for key, value in weights.items()}


def _hush() -> None:
    """Lightning says much that a reader of ours can do nothing with."""
    for one in ("lightning", "lightning.pytorch", "lightning.fabric"):
        logging.getLogger(one).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
