"""What the modules of all agents share: settings, standardised inputs, a network and its target."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from models.rl.layout import Layout

OBS, STATE_IN, STATE_OUT = "obs", "state_in", "state_out"
"""What RLlib's ``Columns`` call them."""

_LEAST = 1e-3
"""A share of half a value's scale below which its logarithm falls no further."""


class Standardise(nn.Module):
    """Observations less their mean, over their deviation, feature by feature of each kind.

    The figures are gathered from what the run sees at its beginning and then held, so that they
    are part of the network. With ``logs`` each value is followed by its logarithm: from
    ``x / (x + half)``, as environments scale what they observe, that is the logit. Ratios, such as
    a queueing delay over the target delay or a window over what its path holds, become
    differences, which one layer can tell apart on fast and slow paths alike.
    """

    def __init__(self, layout: Layout, logs: bool = False) -> None:
        super().__init__()
        self.logs = logs
        self.kinds = torch.tensor(layout.kinds)
        shape = (len(layout.action_counts), layout.features)
        for name in ("total", "squares", "mean"):
            self.register_buffer(name, torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("count", torch.zeros(shape[0], 1, dtype=torch.float64))
        parts = (layout.parts, layout.features)
        self.register_buffer("shift", torch.zeros(parts))
        self.register_buffer("scale", torch.ones(parts))
        self.register_buffer("reward", torch.tensor([0.0, 0.0, 0.0], dtype=torch.float64))
        self.shift: Tensor
        self.scale: Tensor
        self.reward: Tensor

    def learn(self, observations: Tensor, mask: Tensor, rewards: Tensor, acted: Tensor) -> None:
        """Add what was seen.

        Parameters
        ----------
        observations : float32 tensor [T, N, A, D]
        mask : bool tensor [T, N, A]
        rewards : float32 tensor [T, N]
        acted : bool tensor [T, N]
            Rows whose reward came of an action.
        """
        there = mask[..., None].double()
        seen = self._values(observations).double() * there
        first = (seen.sum((0, 1)), seen.square().sum((0, 1)), there.sum((0, 1)))
        for name, value in zip(("total", "squares", "count"), first, strict=True):
            getattr(self, name).index_add_(0, self.kinds, value)
        count = self.get_buffer("count").clamp(min=1.0)
        mean = self.get_buffer("total") / count
        spread = (self.get_buffer("squares") / count - mean.square()).clamp(min=0.0).sqrt()
        # What hardly changes says nothing: it isn't blown up to noise.
        spread = torch.where(spread < 1e-3, torch.ones_like(spread), spread)
        self.shift.copy_(mean[self.kinds])
        self.scale.copy_(1.0 / spread[self.kinds])
        paid = rewards[acted].double()
        self.reward += torch.stack([paid.sum(), paid.square().sum(), acted.sum().double()])

    def forward(self, observations: Tensor, mask: Tensor) -> Tensor:
        """Standardised, [..., A, D]; 0 for parts that aren't there."""
        return (self._values(observations) - self.shift) * self.scale * mask[..., None]

    def _values(self, observations: Tensor) -> Tensor:
        if not self.logs:
            return observations
        return torch.stack([observations, observations.logit(_LEAST)], dim=-1).flatten(-2)

    def rewarded(self) -> tuple[float, float]:
        """Mean and deviation of the rewards seen, 0 and 1 before there are any."""
        total, squares, count = self.reward.tolist()
        if count < 2:
            return 0.0, 1.0
        mean = total / count
        spread = max(squares / count - mean * mean, 0.0) ** 0.5
        return mean, spread if spread > 1e-6 else 1.0


class AgentModule(nn.Module):
    """A network that acts for all parts at once.

    It needs torch alone; `models.rl.networks.rllib` makes of it what RLlib trains. What a subclass
    adds: `build` and `act`, and what its learner calls.

    Parameters
    ----------
    model_config : mapping
        ``layout`` (`Layout.plain`) and ``network``, the network's settings.

    Attributes
    ----------
    acts_as : type, optional
        The kind that acts the same by a part of the weights, where the others are for learning
        alone.
    """

    acts_as: ClassVar[type[AgentModule] | None] = None

    legal: Tensor
    values: Any
    windows: Any

    def __init__(self, *, model_config: Any, **_: Any) -> None:
        super().__init__()
        self.model_config: Any = model_config
        self.setup()

    def setup(self) -> None:
        """Make the networks."""
        logs = bool(self.model_config["network"].get("logs", False))
        layout = Layout.read(self.model_config["layout"])
        self.layout = layout.doubled() if logs else layout
        self.standardise = Standardise(self.layout, logs)
        self.register_buffer("legal", torch.from_numpy(self.layout.legal()), persistent=False)
        self.net = self.build(self.model_config["network"])

    def build(self, settings: dict[str, Any]) -> nn.Module:
        """The network that learns."""
        raise NotImplementedError

    def act(self, seen: Tensor, mask: Tensor, state: dict[str, Tensor]) -> dict[str, Any]:
        """Scores of all actions and the state after.

        Parameters
        ----------
        seen : float32 tensor [N, A, D]
            Standardised.
        mask : bool tensor [N, A]
        state : dict of tensor [N, ...]

        Returns
        -------
        dict
            ``scores`` float32 tensor [N, A, C], -inf for actions that a part doesn't have;
            ``values`` [N] of a critic; ``state_out``.
        """
        raise NotImplementedError

    def get_initial_state(self) -> dict[str, Tensor]:
        """What one environment's network remembers at an episode's beginning: here nothing."""
        return {}

    def make_target(self) -> None:
        """Set a copy of the network aside, whose values change less often."""
        self.target = copy.deepcopy(self.net).requires_grad_(False)

    def get_non_inference_attributes(self) -> list[str]:
        """What a runner doesn't need."""
        return ["target"]

    def forward_exploration(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        """What `act` finds; RLlib's own would switch all layers to another mode and back."""
        with torch.no_grad():
            return self._forward(batch)

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        mask = batch["mask"]
        seen = self.standardise(batch[OBS], mask)
        return self.act(seen, mask, batch.get(STATE_IN, {}))

    def _shown(self, scores: Tensor) -> Tensor:
        """Scores [..., A, C] with -inf for actions that a part doesn't have."""
        return scores.masked_fill(~self.legal, float("-inf"))
