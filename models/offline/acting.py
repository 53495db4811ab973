"""Policies that logs are asked about: the odds that each gives to the actions of logged decisions.

A policy is a network that acts on the last observations of a run, as it does when it plays: by its
best action, or, where it stands for a logged control, by the odds that cloning that control has
left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from data.decisions.run import Run
from data.errors import UserError
from features.intervals import scaled
from features.tcco import FEATURES
from models.envs.tcco import TccoSettings
from models.offline.source import Source
from models.rl import checkpoint
from models.rl.layout import Layout
from models.rl.networks.transformer import TransformerModule

ROWS = 4_096
"""Decisions whose contexts are in memory at a time."""


@dataclass
class Acting:
    """A network with what it looks at.

    Attributes
    ----------
    name : str
    module : TransformerModule
    greedy : bool
        Whether it takes the best action; otherwise scores are logarithms of odds.
    """

    name: str
    module: TransformerModule
    greedy: bool = True

    def odds(self, seen: Tensor, mask: Tensor, first: Tensor, last: bool = False) -> Tensor:
        """Odds of each action of each part.

        Parameters
        ----------
        seen : float32 tensor [B, L, A, D]
            Observations, scaled to 0 to 1.
        mask : bool tensor [B, L, A]
        first : int64 tensor [B, L]
            As of `models.rl.networks.transformer.Transformer.forward`.
        last : bool
            Whether only those of the last row are wanted.

        Returns
        -------
        float32 tensor [B, L, A, C], or [B, 1, A, C]
        """
        with torch.no_grad():
            scores = self.scores(seen, mask, first, last)
        if not self.greedy:
            return scores.softmax(-1)
        best = scores.argmax(-1, keepdim=True)
        return torch.zeros_like(scores).scatter_(-1, best, 1.0)

    def scores(self, seen: Tensor, mask: Tensor, first: Tensor, last: bool = False) -> Tensor:
        """The network's scores; parameters and shapes are those of `odds`."""
        shown = self.module.standardise(seen, mask)
        found: Tensor = self.module.net(shown, mask, first, last=last)
        return found

    def along(self, run: Run, source: Source) -> Tensor:
        """Odds at each decision of a run, float32 tensor [T, A, C], as it acts when it plays."""
        return torch.cat([self.odds(*block, last=True)[:, 0] for block in contexts(run, source)])


def contexts(
    run: Run, source: Source, steps: NDArray[np.int64] | None = None
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """What a policy has before it at decisions of a run, in blocks.

    Parameters
    ----------
    run : Run
    source : Source
        Whose settings say how long a context is.
    steps : int64 array [N], optional
        Which decisions; all by default.

    Yields
    ------
    tuple of tensor
        ``seen``, ``mask`` and ``first`` of `Acting.odds`.
    """
    length, parts = source.settings.context, source.settings.subflows
    features, half = source.cutter.bounds
    seen = np.zeros((run.steps + length - 1, parts, run.observation.shape[-1]), np.float32)
    seen[length - 1 :, : run.subflows] = scaled(run.observation, features, half)  # type: ignore[arg-type]
    mask = np.zeros(seen.shape[:2], bool)
    mask[length - 1 :, : run.subflows] = True
    # Rows before the run's first are looked at by none but themselves.
    begins = np.maximum(length - 1 - np.arange(run.steps), 0)
    first = np.minimum(begins[:, None], np.arange(length))
    wanted = np.arange(run.steps) if steps is None else steps
    for begin in range(0, len(wanted), ROWS):
        some = wanted[begin : begin + ROWS]
        rows = some[:, None] + np.arange(length)
        yield (torch.from_numpy(seen[rows]), torch.from_numpy(mask[rows]),
               torch.from_numpy(first[some]))  # fmt: skip


def opened(folder: Path) -> Acting:
    """The policy of a training's folder, online or offline.

    Raises
    ------
    UserError
        When it is no training of TCCO's network.
    """
    tree = _tree(folder)
    settings = tree["settings"]
    params = TccoSettings.parse(settings.get("env", {}), f"{folder}: env").params
    context = int(settings["context"])
    parts = Layout((0,) * params.subflows, (2 * params.reach + 1,), (len(FEATURES),), context)
    module = TransformerModule(model_config={"layout": parts.plain(), "network": settings})
    state = {key: torch.from_numpy(value) for key, value in weights(folder).items()}
    try:
        module.load_state_dict(module.state_dict() | state)
    except RuntimeError:
        raise UserError(
            f"{folder}: of another network than TCCO's: logs can't be asked about it"
        ) from None
    return Acting(str(folder), module.eval())


def weights(folder: Path) -> dict[str, NDArray[Any]]:
    """The weights that a training's folder plays by."""
    tree = _tree(folder)
    every = tree["best"] or tree["network"]
    # The weights of a target are for learning alone.
    return {name: value for name, value in every.items() if not name.startswith("target.")}


def settings_of(folder: Path) -> dict[str, Any]:
    """Settings that a training from logs has kept; of an online training those of its network.

    Raises
    ------
    UserError
        When there is no checkpoint.
    """
    tree = _tree(folder)
    if "offline" in tree:
        return dict(tree["offline"]["settings"])
    kept = ("gamma", "logs", "subflow_width", "width", "heads", "layers", "context", "env")
    return {key: tree["settings"][key] for key in kept if key in tree["settings"]}


def _tree(folder: Path) -> dict[str, Any]:
    found = checkpoint.latest(folder)
    if found is None:
        raise UserError(f"{folder}: no checkpoint: name a folder that `cczoo train` wrote into")
    tree = checkpoint.read(found)
    if not str(tree["agent"]).startswith("tcco"):
        raise UserError(f"{folder}: a training of {tree['agent']}: logs can be asked about TCCO's")
    return tree


def layout(source: Source) -> Layout:
    """Parts, actions and features of a set of decisions."""
    settings = source.settings
    return Layout((0,) * settings.subflows, (len(source.about.actions),),
                  (len(source.about.observation),), settings.context)  # fmt: skip
