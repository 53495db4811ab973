"""Policies by hand that play scenarios as agents do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from data.netsim.network import Network
from models.envs.scripted import tcco_tracking
from models.envs.stage import Stage
from models.envs.tcco import TccoBatch
from models.policies.identity import code_digest
from pipelines.studies.bars.bench import Episode
from pipelines.studies.episodes import digest

FILE = Path(__file__)


class Tracking:
    """TCCO's windows at what each path holds by its observation, times a factor.

    Parameters
    ----------
    share : float
    """

    def __init__(self, share: float) -> None:
        self.share = share

    @cached_property
    def identity(self) -> str:
        """Hash of the factor and of the code that plays."""
        return f"tracking {self.share} {code_digest()} {digest([FILE])}"

    def play(self, episodes: Sequence[Episode]) -> list[dict[str, Any]]:
        """Run scenarios, each with a seed; as `data.netsim.metrics.simulate`."""
        return [self._one(*episode) for episode in episodes]

    def _one(self, spec: Any, seed: int) -> dict[str, Any]:
        paths = max(len(flow.paths) for flow in spec.flows)
        batch = TccoBatch(1, params={"subflows": paths}, threads=1, stagger=False)
        stage = Stage(batch, [Network(spec, "agent", seed, watch=True)], [0])
        return stage.play(tcco_tracking(self.share))[0]
