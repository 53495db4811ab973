"""What all methods share: the agent's network, one optimiser, rewards of a known scale."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import lightning
import numpy as np
import torch
from torch import Tensor, nn

from models.offline.params import Offline
from models.offline.windows import Windows
from models.rl.layout import Layout
from models.rl.networks.transformer import Transformer, TransformerModule

Batch = dict[str, Tensor]


class Method(lightning.LightningModule):
    """Learns the network that acts, ``agent.net``, and whatever it needs for that.

    Rewards are seen less their mean and over their deviation, part by part, so that no setting
    but their lower bound depends on an environment's unit; `raw` turns what was learned back.

    Parameters
    ----------
    layout : Layout
        Of the environment that the policy is made for.
    settings : Offline
    """

    valued: ClassVar[bool] = True
    """Whether the scores of the network that acts are Qs."""

    def __init__(self, layout: Layout, settings: Offline) -> None:
        super().__init__()
        self.settings: Any = settings
        torch.manual_seed(settings.seed)
        model = {"layout": layout.plain(), "network": settings.model_dump()}
        self.agent = TransformerModule(model_config=model)
        self.mean, self.deviation = 0.0, 1.0
        self.curve: list[dict[str, float]] = []
        self._sums: dict[str, list[float]] = {}
        self.make()

    def make(self) -> None:
        """Make the networks besides."""

    def losses(self, batch: Batch, seen: Tensor, rewards: Tensor) -> dict[str, Tensor]:
        """Losses of a batch by name, of which the sum is made small.

        Parameters
        ----------
        batch : dict of tensor
            As `models.offline.windows.Windows`.
        seen : float32 tensor [B, L + 1, A, D]
            Standardised observations.
        rewards : float32 tensor [B, L]
            Of the team, scaled.
        """
        raise NotImplementedError

    def after_update(self) -> None:
        """What follows on every step of the optimiser."""

    def starting_net(self) -> nn.Module:
        """The network that an online training can begin with; its scores are Qs if there are any.

        By default the one that acts.
        """
        return self.agent.net

    def another(self, actions: int | None = None) -> Transformer:
        """One more network of the agent's kind, with other weights."""
        layout = self.agent.layout
        if actions is not None:
            layout = Layout(layout.kinds, (actions,), layout.feature_counts, layout.context)
        return Transformer(layout, self.settings.model_dump())

    def standardise(self, first: Windows) -> None:
        """Take the scale of inputs and rewards from the windows that come first."""
        mask = torch.from_numpy(first.mask[:, :-1]).flatten(0, 1)[:, None]
        seen = torch.from_numpy(first.observations[:, :-1]).flatten(0, 1)[:, None]
        acted = mask.any(-1)
        own = np.maximum(first.own, self._least) * first.mask[:, :-1]
        paid = own[first.mask[:, :-1]]
        team = torch.from_numpy(own.sum(-1)).flatten()[:, None]
        self.agent.standardise.learn(seen, mask, team, acted)
        self.mean, spread = float(paid.mean(dtype=np.float64)), float(paid.std(dtype=np.float64))
        self.deviation = spread if spread > 1e-6 else 1.0

    @property
    def _least(self) -> float:
        worst = self.settings.worst
        return -float("inf") if worst is None else float(worst)

    def raw(self, net: nn.Module) -> nn.Module:
        """A copy of a network of Qs that values rewards as they are."""
        found: Any = copy.deepcopy(net)
        with torch.no_grad():
            found.head.weight *= self.deviation
            found.head.bias *= self.deviation
            found.head.bias += self.mean / (1.0 - self.settings.gamma)
        return found  # type: ignore[no-any-return]

    def acting(self) -> dict[str, Tensor]:
        """Weights of the policy, as a training of the agent keeps those of its best network."""
        return self._weights(self.raw(self.agent.net) if self.valued else self.agent.net)

    def starting(self) -> dict[str, Tensor]:
        """Weights that an online training of the agent can begin with."""
        return self._weights(self.raw(self.starting_net()))

    def _weights(self, net: nn.Module) -> dict[str, Tensor]:
        held = {f"standardise.{k}": v for k, v in self.agent.standardise.state_dict().items()}
        return {f"net.{k}": v for k, v in net.state_dict().items()} | held

    def _all(self, batch: Batch) -> dict[str, Tensor]:
        mask = batch["mask"]
        seen = self.agent.standardise(batch["observations"], mask)
        own = batch["own"].clamp(min=self._least)
        rewards = ((own - self.mean) / self.deviation * mask[:, :-1]).sum(-1)
        return self.losses(batch, seen, rewards)

    def training_step(self, batch: Batch, index: int) -> Tensor:
        """The sum of the losses."""
        found = self._all(batch)
        for name, value in found.items():
            self._sums.setdefault(name, []).append(float(value.detach()))
        return torch.stack(list(found.values())).sum()

    def on_train_batch_end(self, *_: Any) -> None:
        """Move targets."""
        self.after_update()

    def validation_step(self, batch: Batch, index: int) -> None:
        """The same losses, and how often the policy does what was logged, on runs set aside."""
        mask = batch["mask"]
        for name, value in self._all(batch).items():
            self._sums.setdefault(f"validation_{name}", []).append(float(value))
        seen = self.agent.standardise(batch["observations"], mask)[:, :-1]
        best = self.agent.net(seen, mask[:, :-1], _beginnings(seen)).argmax(-1)
        alike = (best == batch["actions"])[mask[:, :-1]].float().mean()
        self._sums.setdefault("agreement", []).append(float(alike))

    def on_validation_end(self) -> None:
        """Add a point to the curve."""
        if self.global_step:
            point = {name: float(np.mean(values)) for name, values in self._sums.items()}
            self.curve.append({"updates": float(self.global_step), **point})
        self._sums = {}

    def configure_optimizers(self) -> Any:
        """Adam over everything, whose rate falls in a line."""
        settings = self.settings
        params = [p for p in self.parameters() if p.requires_grad]
        adam = torch.optim.Adam(params, lr=settings.rate, fused=True)
        least = settings.last_rate / settings.rate if settings.rate else 1.0

        def share(update: int) -> float:
            left = 1.0 - (1.0 - least) * update / settings.updates
            return max(float(least), float(left))

        falling = torch.optim.lr_scheduler.LambdaLR(adam, share)
        return {"optimizer": adam, "lr_scheduler": {"scheduler": falling, "interval": "step"}}


def values(net: Any, seen: Tensor, mask: Tensor, after: bool) -> Tensor:
    """What a network says of a window's decisions, or of what came of each.

    Parameters
    ----------
    net : Transformer
    seen : float32 tensor [B, L + 1, A, D]
    mask : bool tensor [B, L + 1, A]
    after : bool
        Whether of the row after each decision.

    Returns
    -------
    tensor [B, L, A, C]
    """
    rows = slice(1, None) if after else slice(None, -1)
    found: Tensor = net(seen[:, rows], mask[:, rows], _beginnings(seen[:, rows]))
    return found


def _beginnings(seen: Tensor) -> Tensor:
    """A window is of one run: no row looks at what was before it."""
    return torch.zeros(seen.shape[:2], dtype=torch.int64)


def follow(target: nn.Module, net: nn.Module, tau: float) -> None:
    """Let a target take over a share of a network."""
    with torch.no_grad():
        torch._foreach_lerp_(list(target.parameters()), list(net.parameters()), tau)


def frozen(net: nn.Module) -> nn.Module:
    """A copy that doesn't learn."""
    return copy.deepcopy(net).requires_grad_(False)
