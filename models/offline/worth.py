"""What logs say a policy is worth, beside what was logged from the same decisions on.

Three figures, all the discounted mean reward of a subflow's decision from logged decisions on that
nothing was learned from: what the logged controls got, what fitted Q evaluation gives the policy,
and what importance weights give it over a short horizon. Intervals resample scenarios whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from data.decisions.run import Run
from data.errors import UserError
from models.offline.acting import Acting
from models.offline.evaluation import EvaluationMethod
from models.offline.params import Evaluation
from models.offline.source import Source
from models.offline.support import LEAST, Held, Support
from models.offline.weighting import Float, Sequences, by_cluster, discounted, resamples

Starts = Literal["every", "first"]
LEAST_ODDS = 1e-4
"""Odds of a logged action by its clone below which a weight doesn't grow further."""


@dataclass
class Aside:
    """Logged decisions to judge by: runs set aside, and the decisions in them to begin from.

    Attributes
    ----------
    runs : list of Run
    steps : list of int64 array
        Decisions of each run.
    """

    source: Source
    settings: Evaluation
    runs: list[Run] = field(default_factory=list)
    steps: list[NDArray[np.int64]] = field(default_factory=list)

    @classmethod
    def of(
        cls, source: Source, settings: Evaluation, starts: Starts = "every",
        against: str | None = None,
    ) -> Aside:  # fmt: skip
        """Choose them.

        Parameters
        ----------
        source : Source
        settings : Evaluation
        starts : {"every", "first"}
            From every ``spacing``-th decision of a run on, or from its first alone.
        against : str, optional
            Only in runs of this control.

        Raises
        ------
        UserError
            When there are none, or all are of one scenario: then there is no interval.
        """
        found = cls(source, settings)
        for run in source.runs(True):
            # Of the last decision of a record nobody knows what came.
            last = run.steps - 1 - found.length
            if last < 0 or against not in (None, run.behaviour):
                continue
            found.runs.append(run)
            every = np.arange(0, last + 1 if starts == "every" else 1, settings.spacing)
            found.steps.append(every)
        if len(set(found.names)) < 2:
            of = f" of {against!r}" if against else ""
            raise UserError(
                f"{source.path}: less than two {source.key}s{of} were set aside with runs of more "
                f"than {found.length} decisions: log more, or set held_out higher and train again"
            )
        return found

    @property
    def length(self) -> int:
        """Decisions over which logged returns are summed."""
        gamma, horizon = self.settings.gamma, self.settings.horizon
        if gamma == 0:
            return horizon
        return max(horizon, math.ceil(math.log(self.settings.tail) / math.log(gamma)))

    @property
    def names(self) -> list[str]:
        """What each run is resampled by."""
        by_scenario = self.source.key == "scenario"
        return [run.scenario if by_scenario else run.name for run in self.runs]

    @property
    def cluster(self) -> NDArray[np.int64]:
        """Cluster of each decision to begin from, int64 array [N]."""
        _, code = np.unique(self.names, return_inverse=True)
        return np.repeat(code, [len(steps) for steps in self.steps]).astype(np.int64)

    def rewards(self, length: int) -> Float:
        """What was logged, a subflow's mean, float64 array [N, length]."""
        return self.gathered([run.reward.mean(axis=1) for run in self.runs], length)

    def gathered(self, values: Sequence[NDArray[Any]], length: int) -> Float:
        """Rows from each beginning on: arrays [T] of each run -> float64 array [N, length]."""
        rows = np.arange(length)
        parts = [one[steps[:, None] + rows] for one, steps in zip(values, self.steps, strict=True)]
        found: Float = np.concatenate(parts).astype(np.float64)
        return found

    def taken(self, policy: Acting) -> list[Float]:
        """A policy's odds of the joint actions that were logged, float64 array [T] of each run."""
        found = []
        for run in self.runs:
            odds = policy.along(run, self.source)[:, : run.subflows].double().numpy()
            actions = run.action.astype(np.int64)[..., None]
            found.append(np.take_along_axis(odds, actions, -1)[..., 0].prod(axis=1))
        return found


def estimate(
    policy: Acting,
    fits: Sequence[EvaluationMethod],
    behaviour: Sequence[Float],
    aside: Aside,
    support: Support,
) -> dict[str, Any]:
    """All figures of a policy, without those that can't be trusted.

    Parameters
    ----------
    policy, fits, behaviour, aside, support
        As of `figures`.

    Returns
    -------
    dict
        As of `figures`, with ``refused``: estimate -> why it isn't given, and ``verdict``.
    """
    found = figures(policy, fits, behaviour, aside, support)
    refused = untrusted(found, aside.settings)
    for name in refused:
        found |= {name: None, f"{name}_gain": None}
    found |= {"refused": refused}
    return found | {"verdict": verdict(found)}


def figures(
    policy: Acting,
    fits: Sequence[EvaluationMethod],
    behaviour: Sequence[Float],
    aside: Aside,
    support: Support,
) -> dict[str, Any]:
    """All figures of a policy, however little they are to be trusted.

    Parameters
    ----------
    policy : Acting
    fits : sequence of EvaluationMethod
        Fitted to it.
    behaviour : sequence of float64 array
        Odds of the logged actions by who decided, as `Aside.taken` gives them.
    aside : Aside
    support : Support
        What was learned from.

    Returns
    -------
    dict
        ``logged``, ``fqe`` and ``wis`` as intervals, ``fqe_gain`` and ``wis_gain`` over what was
        logged (``wis`` and its gain are None if no weight is left), ``effective``: sequences that
        weights leave, ``reach``: decisions over which they leave enough, ``coverage``.
    """
    settings, cluster = aside.settings, aside.cluster
    clusters = int(cluster.max()) + 1
    counts = resamples(clusters, settings.resamples, settings.seed)
    size = counts @ by_cluster(np.ones(len(cluster)), cluster, clusters)

    def means(values: Float) -> Float:
        found: Float = (counts @ by_cluster(values, cluster, clusters)) / size
        return found

    logged = means(discounted(aside.rewards(aside.length), settings.gamma))
    fqe = _mixed([means(_worths(one, aside)) for one in fits])
    paid = aside.rewards(settings.horizon)
    ratios = [
        p / np.maximum(b, LEAST_ODDS) for p, b in zip(aside.taken(policy), behaviour, strict=True)
    ]
    sequences = Sequences(aside.gathered(ratios, settings.horizon), paid, cluster)
    wis = sequences.estimates(settings.gamma, counts)
    short = means(discounted(paid, settings.gamma))
    weighed, effective = bool(np.isfinite(wis[0])), sequences.effective()
    return {
        "policy": policy.name,
        "starts": len(cluster),
        "clusters": clusters,
        "horizon": settings.horizon,
        "logged": interval(logged),
        "logged_short": interval(short),
        "fqe": interval(fqe),
        "fqe_gain": interval(fqe - logged),
        "wis": interval(wis) if weighed else None,
        "wis_gain": interval(wis - short) if weighed else None,
        "effective": float(effective[-1]),
        "reach": int((effective >= settings.least_effective).cumprod().sum()),
        "coverage": coverage(policy, aside, support),
    }


def untrusted(found: dict[str, Any], settings: Evaluation) -> dict[str, str]:
    """Estimates that can't be trusted -> why."""
    refused = {}
    if found["effective"] < settings.least_effective:
        refused["wis"] = (
            f"weights leave {found['effective']:.1f} of {found['starts']} sequences of "
            f"{settings.horizon} decisions: an estimate takes {settings.least_effective:g}, which "
            f"are left for {found['reach']}"
        )
    held = found["coverage"]
    share = max(held["outside"], held["rare_action"])
    if share > settings.most_outside:
        where = held["where"] or "they are rare where it takes them"
        refused["fqe"] = (
            f"{100 * share:.0f} % of its decisions have no support, more than "
            f"{100 * settings.most_outside:g} %: {where}"
        )
    return refused


def coverage(policy: Acting, aside: Aside, support: Support) -> dict[str, Any]:
    """What a policy would do in the runs set aside, held against what was learned from."""
    held = Held(support, LEAST)
    for run in aside.runs:
        odds = policy.along(run, aside.source)[:, : run.subflows]
        held.add(run.observation, odds.argmax(-1).numpy())
    return held.plain()


def verdict(found: dict[str, Any]) -> dict[str, Any]:
    """Whether a policy beats what was logged by interval, and why not."""
    fqe, wis = found["fqe_gain"], found["wis_gain"]
    if fqe is None:
        return {"beats": False, "reason": found["refused"]["fqe"]}
    shown = f"{fqe['mean']:+.4f} ({fqe['low']:+.4f} to {fqe['high']:+.4f})"
    if fqe["low"] <= 0:
        return {"beats": False, "reason": f"its gain by fitted Q evaluation is {shown}: the "
                "interval isn't above 0"}  # fmt: skip
    if wis is not None and wis["high"] < 0:
        return {"beats": False, "reason": f"fitted Q evaluation gives it {shown}, but importance "
                f"weights at most {wis['high']:+.4f}"}  # fmt: skip
    return {"beats": True, "reason": f"its gain by fitted Q evaluation is {shown}"}


def interval(values: Float) -> dict[str, float]:
    """The first as the mean, and the limits of 95 % of the others."""
    low, high = np.nanquantile(values[1:], [0.025, 0.975])
    return {"mean": float(values[0]), "low": float(low), "high": float(high)}


def _worths(fit: EvaluationMethod, aside: Aside) -> Float:
    pairs = zip(aside.runs, aside.steps, strict=True)
    return np.concatenate([fit.worth(run, aside.source, steps) for run, steps in pairs])


def _mixed(each: Sequence[Float]) -> Float:
    """Resamples of several fits, each of the fits in turns; the first is the fits' mean."""
    table = np.stack(each)
    rows = np.arange(table.shape[1])
    found: Float = table[rows % len(table), rows]
    found[0] = table[:, 0].mean()
    return found
