"""An environment's episode: its simulation, and its events as an ingested directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from data.netsim import events

if TYPE_CHECKING:
    from data.netsim.network import Network
    from models.envs.batching import Batching


class Slot:
    """One environment's episode in a batch.

    Raises
    ------
    UserError
        Before the first reset.
    """

    def __init__(self, batch: Batching, number: int) -> None:
        if not batch.networks:
            raise UserError(f"{type(batch).__name__}: no episode yet: call reset first")
        self._batch, self._number = batch, number

    @property
    def network(self) -> Network:
        """Its simulation."""
        return self._batch.networks[self._number]

    @property
    def intervals(self) -> int:
        """Decision intervals so far."""
        return int(self._batch.intervals[self._number])

    @property
    def end_us(self) -> int:
        """Time of the last decision."""
        return self.intervals * self._batch.interval_us


class Logged:
    """Writes the episode of an environment's ``session``, if ``keep_log`` kept it."""

    _batch: Any

    def write_log(self, directory: Path, name: str = "episode") -> dict[str, Any]:
        """Write the episode so far as an ingested directory; returns the counts.

        Raises
        ------
        UserError
            Without ``keep_log``, or before the first reset.
        """
        if not self._batch.keep_log:
            raise UserError("write_log: nothing was kept: make the environment with keep_log=True")
        network, samples = Slot(self._batch, 0).network, self._batch.samples(0)
        return events.write([events.tables(network, name, samples=samples)], directory)
