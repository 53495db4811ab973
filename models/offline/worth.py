"""What logs say a policy is worth, beside what was logged from the same decisions on.

Three figures, all the discounted mean reward of a subflow's decision from logged decisions on that
nothing was learned from: what the logged controls got, what fitted Q evaluation gives the policy,
and what importance weights give it over a short horizon. Intervals resample scenarios whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.offline.acting import Acting
from models.offline.aside import Aside
from models.offline.evaluation import EvaluationMethod
from models.offline.held import Held
from models.offline.params import Evaluation
from models.offline.support import LEAST, Support
from models.offline.weighting import Float, Sequences, by_cluster, discounted, resamples

LEAST_ODDS = 1e-4
"""Odds of a logged action by its clone below which a weight doesn't grow further."""


def estimate(
    policy: Acting,
    fits: Sequence[EvaluationMethod],
    behaviour: Sequence[Float],
    known: EvaluationMethod,
    aside: Aside,
    support: Support,
) -> dict[str, Any]:
    """All figures of a policy, without those that can't be trusted.

    Parameters
    ----------
    policy, fits, behaviour, known, aside, support
        As of `figures`.

    Returns
    -------
    dict
        As of `figures`, with ``refused``: estimate -> why it isn't given, and ``verdict``.
    """
    return checked(figures(policy, fits, behaviour, known, aside, support), aside.settings)


def checked(found: dict[str, Any], settings: Evaluation) -> dict[str, Any]:
    """Figures without those that can't be trusted, with the reasons and the verdict."""
    refused = untrusted(found, settings)
    left = dict(found)
    for name in refused:
        left |= {name: None, f"{name}_gain": None}
    left |= {"refused": refused}
    return left | {"verdict": verdict(left)}


def figures(
    policy: Acting,
    fits: Sequence[EvaluationMethod],
    behaviour: Sequence[Float],
    known: EvaluationMethod,
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
    known : EvaluationMethod
        Fitted to who decided, of whom the logs themselves say the worth.
    aside : Aside
    support : Support
        What was learned from.

    Returns
    -------
    dict
        ``logged``, ``fqe`` and ``wis`` as intervals, ``fqe_gain`` and ``wis_gain`` over what was
        logged (``wis`` and its gain are None if no weight is left), ``off``: how far fitted Q
        evaluation is off for who decided, of whom the truth is logged, ``effective``: sequences
        that weights leave, ``reach``: decisions over which they leave enough, ``coverage``.
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
    odds = aside.odds(policy)
    ratios = [
        p / np.maximum(b, LEAST_ODDS) for p, b in zip(aside.taken(odds), behaviour, strict=True)
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
        "off": interval(means(_worths(known, aside)) - logged),
        "wis": interval(wis) if weighed else None,
        "wis_gain": interval(wis - short) if weighed else None,
        "effective": float(effective[-1]),
        "reach": int((effective >= settings.least_effective).cumprod().sum()),
        "coverage": coverage(odds, aside, support),
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


def coverage(odds: Sequence[Float], aside: Aside, support: Support) -> dict[str, Any]:
    """What a policy would do in the runs set aside, held against what was learned from."""
    held = Held(support, LEAST)
    for run, each in zip(aside.runs, odds, strict=True):
        held.add(run.observation, each.argmax(axis=-1))
    return held.plain()


def verdict(found: dict[str, Any]) -> dict[str, Any]:
    """Whether a policy beats what was logged by interval, and why not."""
    fqe, wis = found["fqe_gain"], found["wis_gain"]
    if fqe is None:
        return {"beats": False, "reason": found["refused"]["fqe"]}
    shown = f"{fqe['mean']:+.4f} ({fqe['low']:+.4f} to {fqe['high']:+.4f})"
    off = abs(found["off"]["mean"])
    if 0 < fqe["low"] <= off:
        return {
            "beats": False,
            "reason": f"its gain by fitted Q evaluation is {shown}, but that is off by "
            f"{found['off']['mean']:+.4f} for the very controls that are logged",
        }
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
