"""A lean learner: one module, one optimiser, nothing logged but what is asked for.

RLlib's own spends more on metrics than a small network on its gradient. `update` does the same
with the same hooks before and after, but reports once for all minibatches of a call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME
from torch import Tensor

from models.rl import schedule
from models.rl.networks.module import AgentModule

Batch = dict[str, Tensor]


class AgentLearner(TorchLearner):
    """Learns one `AgentModule`; ``config.learner_config_dict`` holds the training's settings."""

    _module: Any
    config: Any

    def build(self) -> None:
        """Make the network and its optimiser."""
        super().build()
        self.agent: AgentModule = self._module[DEFAULT_MODULE_ID]
        self.settings: dict[str, Any] = self.config.learner_config_dict
        self.done = 0
        self.optimiser: torch.optim.Optimizer = self.get_optimizer()
        self.weights = [p for group in self.optimiser.param_groups for p in group["params"]]

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """Adam over all that has a gradient."""
        module = self._module[module_id]
        params = [p for p in module.parameters() if p.requires_grad]
        self.register_optimizer(
            module_id=module_id,
            optimizer=torch.optim.Adam(params, fused=True),
            params=params,
        )

    def update(  # type: ignore[override]
        self,
        batch: Any = None,
        *,
        training_data: Any = None,
        timesteps: dict[str, Any] | None = None,
        num_epochs: int = 1,
        minibatch_size: int | None = None,
        rng: np.random.Generator | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        """Learn from a batch, minibatch by minibatch.

        Parameters
        ----------
        batch, training_data : MultiAgentBatch, or RLlib's `TrainingData` that holds one
            Arrays whose first axis counts rows.
        timesteps : dict, optional
            Steps sampled so far, for the schedules.
        num_epochs : int
        minibatch_size : int, optional
            Rows of a minibatch; all by default.
        rng : numpy Generator, optional
            Shuffles the rows in each epoch.

        Returns
        -------
        dict
            Mean of what the loss reports, over the minibatches; arrays are joined instead.
        """
        given = training_data.batch if training_data is not None else batch
        tensors = {
            name: torch.as_tensor(value)
            for name, value in given.policy_batches[DEFAULT_MODULE_ID].items()
        }
        timesteps = timesteps or {}
        self.before_gradient_based_update(timesteps=timesteps)
        self.done = timesteps.get(NUM_ENV_STEPS_SAMPLED_LIFETIME, 0)
        for group in self.optimiser.param_groups:
            group["lr"] = schedule.rate(self.settings, self.done)
        reports = [
            self._step(minibatch)
            for minibatch in _minibatches(tensors, num_epochs, minibatch_size, rng)
        ]
        self._weights_seq_no += 1
        return {name: _together([report[name] for report in reports]) for name in reports[0]}

    def loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a minibatch and what is to be reported of it."""
        raise NotImplementedError

    def compute_loss_for_module(self, *, batch: Batch, **_: Any) -> Tensor:
        """As RLlib names it."""
        return self.loss(batch)[0]

    def after_step(self) -> None:
        """What follows on every step of the optimiser."""

    def _step(self, batch: Batch) -> dict[str, Tensor]:
        loss, report = self.loss(batch)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.weights, self.settings["clip"])
        self.optimiser.step()
        self.after_step()
        report["loss"] = loss.detach()
        return report

    def standardise(self, *seen: Any) -> None:
        """Let the module learn what inputs and rewards look like; see `Standardise.learn`."""
        # Copied: what came from another process can't be written, which torch warns of.
        self.agent.standardise.learn(*(torch.tensor(one) for one in seen))


def _minibatches(
    tensors: Batch, epochs: int, size: int | None, rng: np.random.Generator | None
) -> Iterator[Batch]:
    rows = len(next(iter(tensors.values())))
    size = size or rows
    for _ in range(epochs):
        order = None if rng is None else torch.from_numpy(rng.permutation(rows))
        for begin in range(0, rows - size + 1, size):
            if order is None:
                yield {k: v[begin : begin + size] for k, v in tensors.items()}
            else:
                chosen = order[begin : begin + size]
                yield {k: v[chosen] for k, v in tensors.items()}


def _together(values: list[Tensor]) -> Any:
    if values[0].dim():
        return torch.cat(values).numpy()
    return float(torch.stack(values).mean())
