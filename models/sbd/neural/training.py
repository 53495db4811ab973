"""Training by Lightning: deterministic, stopped early, resumed from a safetensors file."""

from __future__ import annotations

import json
import logging
import math
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch
from lightning.pytorch.callbacks import Callback
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from data.errors import UserError
from models.sbd.neural.augment import AUGMENTATIONS
from models.sbd.neural.network import PairNetwork
from models.sbd.neural.params import Neural

STATE = "training.safetensors"
Told = Callable[["Epoch"], None]


@dataclass(frozen=True)
class Epoch:
    """One point of the learning curve; losses are cross-entropies in nats."""

    epoch: int
    loss: float
    validation_loss: float
    validation_accuracy: float


@dataclass
class State:
    """How far a training is, as the JSON in the checkpoint has it."""

    settings: dict[str, Any]
    curve: list[Epoch] = field(default_factory=list)

    @property
    def best(self) -> int:
        """The epoch with the smallest validation loss; -1 before the first."""
        losses = [epoch.validation_loss for epoch in self.curve]
        return int(np.argmin(losses)) if losses else -1


@dataclass(frozen=True)
class Fitted:
    """A trained network in evaluation mode, as it was at its best epoch."""

    network: PairNetwork
    curve: list[Epoch]
    best: int


def build(params: Neural) -> PairNetwork:
    """An untrained network of these settings."""
    return PairNetwork(
        params.width, params.dilations, params.hidden, params.dropout, long=params.long
    )


class Training(lightning.LightningModule):
    """One training: loss, optimiser, order of the rows; everything random follows the epoch.

    Parameters
    ----------
    params : Neural
    seed : int
    state : State
        State of an interrupted training, or a new one.
    steps : int
        Batches of an epoch.
    """

    def __init__(self, params: Neural, seed: int, state: State, steps: int) -> None:
        super().__init__()
        self.params, self.seed, self.state, self.steps = params, seed, state, steps
        torch.manual_seed(seed)
        self.network = build(params)
        self.best_weights = {k: v.clone() for k, v in self.network.state_dict().items()}
        self.rng = torch.Generator()
        self._losses: list[float] = []
        self._checked: list[tuple[float, int, int]] = []

    @property
    def done(self) -> int:
        """Epochs that are done."""
        return len(self.state.curve)

    def on_train_epoch_start(self) -> None:
        """Begin the epoch's sums."""
        self._losses, self._checked = [], []

    def on_train_batch_start(self, batch: Any, index: int) -> None:
        """Seed by epoch and batch, so that a resumed training goes on as it would have.

        The learning rate makes one cycle over all epochs.
        """
        step = self.done * self.steps + index
        # Not by epoch alone: data loaders draw from the generator when it suits them.
        torch.manual_seed(self.seed * 1_000_003 + step)
        self.rng.manual_seed(self.seed * 1_000_003 + step)
        share = step / (self.params.epochs * self.steps)
        rise = min(share / 0.2, 1.0)
        fall = 0.5 * (1 + math.cos(math.pi * max(0.0, share - 0.2) / 0.8))
        for group in self.trainer.optimizers[0].param_groups:
            group["lr"] = self.params.rate * rise * fall

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        """Cross-entropy of one batch of augmented rows."""
        rows, labels = batch
        for name in self.params.augment:
            rows = AUGMENTATIONS[name](rows, self.rng)
        loss = functional.binary_cross_entropy_with_logits(self.network(rows), labels)
        self._losses.append(float(loss.detach()))
        return loss

    def validation_step(self, batch: list[Tensor], index: int) -> None:
        """Loss and right answers of a batch of validation rows."""
        rows, labels = batch
        logit = self.network(rows)
        loss = functional.binary_cross_entropy_with_logits(logit, labels, reduction="sum")
        right = int(((logit > 0) == (labels > 0.5)).sum())
        self._checked.append((float(loss), right, len(labels)))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """AdamW; its rate is set batch by batch."""
        return torch.optim.AdamW(
            self.network.parameters(), lr=self.params.rate, weight_decay=self.params.decay
        )

    def close_epoch(self) -> Epoch:
        """Add to the curve and keep the weights if they are the best so far."""
        loss, right, count = (sum(values) for values in zip(*self._checked, strict=True))
        epoch = Epoch(self.done, float(np.mean(self._losses)), loss / count, right / count)
        self.state.curve.append(epoch)
        if self.state.best == epoch.epoch:
            self.best_weights = {k: v.clone() for k, v in self.network.state_dict().items()}
        return epoch


class Keeper(Callback):
    """Reports after each epoch, writes the checkpoint, and stops when nothing gets better."""

    def __init__(self, path: Path | None, told: Told | None) -> None:
        self.path, self.told = path, told

    def on_train_start(self, trainer: Any, module: Any) -> None:
        """Give the optimiser back its moments."""
        if self.path is not None and self.path.is_file():
            _restore(self.path, module, trainer.optimizers[0])

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        """Close the epoch."""
        epoch = module.close_epoch()
        if self.path is not None:
            _save(self.path, module, trainer.optimizers[0])
        if self.told is not None:
            self.told(epoch)
        trainer.should_stop = _over(module.state, module.params)


def fit(
    rows: NDArray[np.float32],
    labels: NDArray[np.int64],
    validation: NDArray[np.bool_],
    params: Neural,
    seed: int,
    *,
    checkpoint: Path | None = None,
    told: Told | None = None,
) -> Fitted:
    """Train a network.

    Parameters
    ----------
    rows : float32 array [N, d]
        As ``features.series_pair`` makes them.
    labels : int64 array [N]
        1 for SB.
    validation : bool array [N]
        Rows for early stopping; the others are learned from. No connection should be in both.
    params : Neural
    seed : int
        Seed of weights, order, augmentation and dropout.
    checkpoint : Path, optional
        Directory of ``training.safetensors``; a training of the same settings goes on there.
    told : callable, optional
        Called with each `Epoch`.

    Returns
    -------
    Fitted

    Raises
    ------
    UserError
        When the checkpoint isn't one of this version.
    """
    _quiet()
    data, truth = torch.from_numpy(rows), torch.from_numpy(labels.astype(np.float32))
    held = torch.from_numpy(validation)
    learned = TensorDataset(data[~held], truth[~held])
    checked = TensorDataset(data[held], truth[held])
    settings = {**params.model_dump(mode="json"), "seed": seed, "rows": _digest(rows, labels)}
    path = None if checkpoint is None else checkpoint / STATE
    state = _read_state(path, settings) or State(settings)
    # A short last batch is left out: its few rows would count as much as a whole one's.
    steps = max(1, len(learned) // params.batch)
    module = Training(params, seed, state, steps)
    if path is not None and path.is_file():
        _restore(path, module, None)
    left = params.epochs - module.done
    if left > 0 and not _over(state, params):
        trainer = lightning.Trainer(
            accelerator="cpu",
            devices=1,
            max_epochs=left,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            num_sanity_val_steps=0,
            deterministic=True,
            gradient_clip_val=1.0,
            callbacks=[Keeper(path, told)],
        )
        loader: Any = DataLoader(learned, batch_size=None, sampler=_Order(module, len(learned)))
        test: Any = DataLoader(checked, batch_size=None, sampler=_blocks(len(checked)))
        trainer.fit(module, loader, test)
    network = build(params)
    network.load_state_dict(module.best_weights)
    return Fitted(network.eval(), state.curve, state.best)


def probability(network: PairNetwork, rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """P(SB) of rows float32 array [N, d], float64 array [N]."""
    data = torch.from_numpy(rows)
    with torch.inference_mode():
        parts = [torch.sigmoid(network(data[block])) for block in _blocks(len(data))]
    return np.concatenate([p.numpy() for p in parts] or [np.zeros(0)]).astype(np.float64)


class _Order:
    """Batches of row numbers in an order that the epoch alone decides; a short rest is left out."""

    def __init__(self, module: Training, rows: int) -> None:
        self.module, self.rows = module, rows

    def __iter__(self) -> Iterator[list[int]]:
        rng = np.random.default_rng([self.module.seed, self.module.done])
        order = rng.permutation(self.rows).tolist()
        size = self.module.params.batch
        for start in range(0, self.module.steps * size, size):
            yield order[start : start + size]

    def __len__(self) -> int:
        return self.module.steps


def _blocks(rows: int, size: int = 512) -> list[list[int]]:
    return [list(range(start, min(start + size, rows))) for start in range(0, rows, size)]


def _over(state: State, params: Neural) -> bool:
    return len(state.curve) - 1 - state.best >= params.patience


def _digest(rows: NDArray[np.float32], labels: NDArray[np.int64]) -> str:
    import hashlib

    return hashlib.sha256(rows.tobytes() + labels.tobytes()).hexdigest()


def _save(path: Path, module: Training, optimizer: torch.optim.Optimizer) -> None:
    """Weights, best weights and moments as tensors, the rest as JSON in the file's metadata."""
    tensors = {f"now.{k}": v for k, v in module.network.state_dict().items()}
    tensors |= {f"best.{k}": v for k, v in module.best_weights.items()}
    for number, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{k}": v for k, v in moments.items()}
    text = {"state": json.dumps(asdict(module.state))}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    save_file({k: v.contiguous().clone() for k, v in tensors.items()}, part, metadata=text)
    part.replace(path)


def _restore(path: Path, module: Training, optimizer: torch.optim.Optimizer | None) -> None:
    with safe_open(path, framework="pt") as held:
        tensors = {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118
    if optimizer is None:
        module.network.load_state_dict(_part(tensors, "now."))
        module.best_weights = _part(tensors, "best.")
        return
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in _part(tensors, "optimizer.").items():
        number, _, key = name.partition(".")
        moments.setdefault(int(number), {})[key] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": moments, "param_groups": groups})


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _read_state(path: Path | None, settings: dict[str, Any]) -> State | None:
    """The state of a training of the same settings and rows; None if there is none."""
    if path is None or not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as held:
            told = json.loads((held.metadata() or {})["state"])
            curve = [Epoch(**epoch) for epoch in told["curve"]]
            found: dict[str, Any] = told["settings"]
    except Exception as error:
        # safetensors raises its own types from Rust beside those of JSON.
        raise UserError(f"{path}: not a checkpoint of this version ({error}): delete it") from None
    if found != json.loads(json.dumps(settings)):
        path.unlink()
        return None
    return State(settings, curve)


def _quiet() -> None:
    """Lightning advises loggers, workers and a newer license on every fit."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    torch.set_num_threads(1)
