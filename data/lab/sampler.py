"""Seeded random conditions: one draw is one scenario of a family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from data.lab.scenario import CongestionControl, Scenario, Strict

MSS_BITS = 8 * 1424
# Mathis et al. 1997: a loss-driven TCP reaches 1.22·MSS / (RTT·sqrt(loss)).
MATHIS = 1.22
MIN_DURATION_S, MAX_DURATION_S = 20.0, 35.0
MAX_DRAWS = 10_000

Range = tuple[float, float]


class Family(Strict):
    """Ranges of one family; rates, RTTs, buffers and losses are drawn log-uniformly.

    ``rate_mbps`` is a bottleneck's rate, ``max_sum_mbps`` bounds what both paths carry together.
    ``loss_share`` of the paths lose at random. With ``process`` the bottlenecks' rates move.
    ``cross`` is the most access links that carry cross traffic through the bottleneck (0 to 2).
    """

    connections: int = Field(gt=0, le=100_000)
    rate_mbps: Range
    max_sum_mbps: float = 40.0
    rtt_ms: Range
    queue_bdp: Range
    jitter_share: Range = (0.0, 0.1)
    loss: Range = (0.0001, 0.001)
    loss_share: float = Field(default=0.0, ge=0, le=1)
    process: Literal["cellular", "wifi"] | None = None
    cross: int = Field(default=0, ge=0, le=2)
    cc: tuple[CongestionControl, ...] = ("lia", "reno", "cubic", "bbr")

    @model_validator(mode="after")
    def _ordered(self) -> Family:
        for name in ("rate_mbps", "rtt_ms", "queue_bdp", "loss"):
            low, high = getattr(self, name)
            if not 0 < low <= high:
                raise ValueError(f"{name}: expected 0 < low <= high, got [{low}, {high}]")
        return self


@dataclass(frozen=True)
class Draw:
    """Maps a seed to a scenario of one family and label."""

    dataset: str
    name: str
    family: Family
    label: str

    def __call__(self, seed: int) -> Scenario:
        """Draw until the conditions can be what the label says.

        Parameters
        ----------
        seed : int
            The same seed gives the same scenario.

        Returns
        -------
        Scenario
            With one shared bottleneck (SB) or two separate ones (NSB).
        """
        rng = np.random.default_rng(seed)
        for _ in range(MAX_DRAWS):
            values = self._draw(rng)
            if values is not None:
                return Scenario.model_validate(values)
        raise ValueError(f"family {self.name}: no draw fits max_sum_mbps and loss; widen them")

    def _draw(self, rng: np.random.Generator) -> dict[str, Any] | None:
        family = self.family
        shared = self.label == "SB"
        cc = str(rng.choice(family.cc))
        rtt = {path: _log_uniform(rng, family.rtt_ms) for path in ("wifi", "lte")}
        loss = {
            path: _log_uniform(rng, family.loss) if rng.random() < family.loss_share else 0.0
            for path in rtt
        }
        if shared:
            # One draw or two, so that neither a subflow's rate nor the sum tells SB from NSB.
            draws = int(rng.integers(1, 3))
            total = sum(_log_uniform(rng, family.rate_mbps) for _ in range(draws))
            fair = dict.fromkeys(rtt, total / 2)
            bottleneck = {"wifi": "shared", "lte": "shared"}
        else:
            fair = {path: _log_uniform(rng, family.rate_mbps) for path in rtt}
            total = sum(fair.values())
            bottleneck = {"wifi": "wifi", "lte": "lte"}
        if total > family.max_sum_mbps:
            return None
        queue_bdp = {path: _log_uniform(rng, family.queue_bdp) for path in rtt}
        for path in rtt:
            # Loss must leave a subflow able to fill its share, or no queue stands anywhere.
            if cc != "bbr" and loss[path]:
                reach = MATHIS * MSS_BITS / (rtt[path] / 1e3 * loss[path] ** 0.5) / 1e6
                if reach < 1.3 * fair[path]:
                    return None
        stages: dict[str, dict[str, Any]] = {}
        jitter = float(rng.uniform(*family.jitter_share))
        for path in rtt:
            delay = rtt[path] / 2
            link = {"delay_ms": delay, "jitter_ms": delay * jitter, "loss": loss[path]}
            if shared:
                link |= {"rate_mbps": total * float(rng.uniform(2.5, 8)), "queue_bdp": 1.0}
            else:
                link |= self._limited(rng, fair[path], queue_bdp[path], rtt[path])
            stages[path] = link
            stages[f"{path}_back"] = {"delay_ms": delay, "jitter_ms": delay * jitter}
        if shared:
            mean_rtt = (rtt["wifi"] + rtt["lte"]) / 2
            stages["shared"] = self._limited(rng, total, queue_bdp["wifi"], mean_rtt)
        else:
            wide = total * float(rng.uniform(1.7, 5))
            stages["shared"] = {"rate_mbps": wide, "queue_bdp": 1.0}
        length = 50 * max(rtt.values()) / 1e3
        return {
            "label": self.label,
            "dataset": self.dataset,
            "family": self.name,
            "case": f"{self.name}-{self.label.lower()}",
            "cc": cc,
            "duration_s": round(float(np.clip(1.5 * length + 6, MIN_DURATION_S, MAX_DURATION_S))),
            "first": str(rng.choice(["wifi", "lte"])),
            "stages": stages,
            "paths": {
                "wifi": ["wifi", "shared"],
                "lte": ["lte", "shared"],
                "wifi_back": ["wifi_back"],
                "lte_back": ["lte_back"],
                "bg_wifi": ["wifi", "shared"],
                "bg_lte": ["lte", "shared"],
            },
            "bottleneck": bottleneck,
            "background": self._cross(rng, fair),
        }

    def _limited(
        self, rng: np.random.Generator, rate: float, queue_bdp: float, rtt_ms: float
    ) -> dict[str, Any]:
        link: dict[str, Any] = {"queue_bdp": queue_bdp, "queue_rtt_ms": rtt_ms}
        if self.family.process is None:
            link["rate_mbps"] = rate
        else:
            link["steps"] = {
                "kind": self.family.process,
                "mean_mbps": rate,
                "seed": int(rng.integers(2**31)),
            }
        return link

    def _cross(self, rng: np.random.Generator, fair: dict[str, float]) -> list[dict[str, Any]]:
        if not self.family.cross:
            return []
        count = int(rng.integers(1, self.family.cross + 1))
        flows = []
        for path in rng.permutation(["wifi", "lte"])[:count]:
            flow: dict[str, Any] = {"over": str(path), "cc": str(rng.choice(["reno", "cubic"]))}
            kind = rng.choice(["long", "limited", "on-off"])
            if kind == "limited":
                flow["rate_mbps"] = fair[str(path)] * float(rng.uniform(0.2, 0.6))
            elif kind == "on-off":
                flow |= {"on_s": float(rng.uniform(0.5, 4)), "off_s": float(rng.uniform(0.5, 4))}
            flows.append(flow)
        return flows


def _log_uniform(rng: np.random.Generator, bounds: Range) -> float:
    low, high = np.log(bounds)
    return float(np.exp(rng.uniform(low, high)))
