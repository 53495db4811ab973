"""Fitted Q evaluation: what a policy is worth by logs of others (Le, Voloshin and Yue, ICML 2019).

The networks, the batches and the optimiser are those of trainings from logs; instead of the best
action's Q, the target has that of the policy in question.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from data.decisions.run import Run
from data.errors import UserError
from models.offline import training
from models.offline.acting import Acting, contexts, layout
from models.offline.losses import chosen, mean_over
from models.offline.methods.base import Batch, Method, follow, frozen, values
from models.offline.methods.cloning import CloningMethod
from models.offline.params import Offline
from models.offline.source import Source
from models.offline.windows import Windows
from models.one_thread import one_thread


class EvaluationMethod(Method):
    """Half the squared error of one step towards what the policy would do next."""

    def make(self) -> None:
        """Set the target aside."""
        self.aside = frozen(self.agent.net)

    def judge(self, policy: Acting, rewards: tuple[float, float]) -> None:
        """Say whose worth is to be found, and give mean and deviation of all logged rewards.

        Values begin at the mean. That of the first windows alone, by which policies are learned,
        may be one control's: differences between actions don't care, but worth does.
        """
        # In a tuple: its weights aren't to be trained.
        self._policy, self._rewards = (policy,), rewards

    def standardise(self, first: Windows) -> None:
        """As of `Method`, but for the rewards."""
        super().standardise(first)
        self.mean, self.deviation = self._rewards

    def losses(self, batch: Batch, seen: Tensor, rewards: Tensor) -> dict[str, Tensor]:
        """``td``."""
        mask, known = batch["mask"], batch["known"]
        now = values(self.agent.net, seen, mask, False)
        with torch.no_grad():
            target = values(self.aside, seen, mask, True)
            odds = self._odds(batch)
            later = ((odds * target).sum(-1) * mask[:, 1:]).sum(-1)
        wanted = rewards + self.settings.gamma * ~batch["terminated"] * later
        error = chosen(now, batch["actions"], mask[:, :-1]) - wanted
        return {"td": 0.5 * mean_over(error.square(), known)}

    def after_update(self) -> None:
        """Move the target."""
        follow(self.aside, self.agent.net, self.settings.tau)

    def worth(self, run: Run, source: Source, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """What the policy is worth from decisions of a run on.

        Returns
        -------
        float64 array [N]
            The mean over subflows of the discounted mean reward of a decision.
        """
        gamma, (policy,) = self.settings.gamma, self._policy
        found = []
        with torch.no_grad():
            for seen, mask, first in contexts(run, source, steps):
                odds = policy.odds(seen, mask, first, last=True)[:, 0]
                shown = self.agent.standardise(seen, mask)
                q = self.agent.net(shown, mask, first, last=True)[:, 0]
                found.append(((q * odds).sum(-1) * mask[:, -1]).sum(-1) / run.subflows)
        scaled = torch.cat(found).double().numpy()
        worth: NDArray[np.float64] = (1.0 - gamma) * self.deviation * scaled + self.mean
        return worth

    def _odds(self, batch: Batch) -> Tensor:
        (policy,) = self._policy
        seen, mask = batch["observations"][:, 1:], batch["mask"][:, 1:]
        return policy.odds(seen, mask, torch.zeros(seen.shape[:2], dtype=torch.int64))


@dataclass
class Drawn:
    """Which runs are learned from, and how often; those set aside stay as they are.

    Attributes
    ----------
    behaviour : str, optional
        Only runs of this control.
    resample : int, optional
        Seed by which scenarios are drawn with replacement (Poisson's bootstrap).
    """

    behaviour: str | None = None
    resample: int | None = None

    def times(self, run: Run) -> int:
        """How often a run is learned from."""
        if self.behaviour is not None and run.behaviour != self.behaviour:
            return 0
        if self.resample is None:
            return 1
        rng = np.random.default_rng([self.resample, zlib.crc32(run.scenario.encode())])
        return int(rng.poisson(1.0))


class DrawnSource(Source):
    """A data set of which some runs are learned from, some of them more than once."""

    def __init__(self, path: Path, settings: Offline, drawn: Drawn) -> None:
        super().__init__(path, settings)
        self.drawn = drawn

    def runs(self, aside: bool, rng: np.random.Generator | None = None) -> Iterator[Run]:
        """As of `Source`."""
        for run in super().runs(aside, rng):
            for _ in range(1 if aside else self.drawn.times(run)):
                yield run


def fitted(
    policy: Acting, path: Path, settings: Offline, resample: int | None,
    watch: training.Watch | None = None,
) -> EvaluationMethod:  # fmt: skip
    """Fit one network to a policy.

    Parameters
    ----------
    policy : Acting
    path : Path
        The decisions.
    settings : Offline
    resample : int, optional
        As of `Drawn`.
    watch : callable, optional
    """
    source = DrawnSource(path, settings, Drawn(resample=resample))
    with one_thread():
        module = EvaluationMethod(layout(source), settings)
        module.judge(policy, rewarded(source))
        training.run(module, source, watch)
    return module.eval()


def rewarded(source: Source) -> tuple[float, float]:
    """Mean and deviation of the rewards that are learned from, 1 if they hardly differ."""
    count, total, squares = 0, 0.0, 0.0
    for run in source.runs(False):
        paid = run.reward.astype(np.float64)
        count += paid.size
        total += float(paid.sum())
        squares += float((paid * paid).sum())
    if not count:
        return 0.0, 1.0
    mean = total / count
    spread = max(squares / count - mean * mean, 0.0) ** 0.5
    return mean, spread if spread > 1e-6 else 1.0


def cloned(
    path: Path, settings: Offline, behaviour: str | None = None,
    watch: training.Watch | None = None,
) -> Acting:  # fmt: skip
    """Who decided, by the odds of each action: all that are logged, or one control.

    Raises
    ------
    UserError
        When no run of it is there to learn from.
    """
    source = DrawnSource(path, settings, Drawn(behaviour))
    if behaviour is not None and not any(True for _ in source.runs(False)):
        raise UserError(f"{path}: no decisions of {behaviour!r} to learn from")
    with one_thread():
        module = CloningMethod(layout(source), settings)
        training.run(module, source, watch)
    name = "all" if behaviour is None else f"logged:{behaviour}"
    return Acting(name, module.agent.eval(), greedy=False)
