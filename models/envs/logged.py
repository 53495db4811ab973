"""Environments that keep their episodes' events write them as an ingested directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from data.errors import UserError
from data.netsim import events


class Logged:
    """Writes the episode of an environment's ``session``, if ``keep_log`` kept it."""

    session: Any
    _keep: bool

    def write_log(self, directory: Path, name: str = "episode") -> dict[str, Any]:
        """Write the episode so far as an ingested directory; returns the counts.

        Raises
        ------
        UserError
            Without ``keep_log``.
        """
        if not self._keep:
            raise UserError("write_log: nothing was kept: make the environment with keep_log=True")
        table = events.tables(self.session.network, name, samples=self.session.samples())
        return events.write([table], directory)
