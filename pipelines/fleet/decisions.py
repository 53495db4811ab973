"""Decisions that follow a store: a table for each agent, as what it would have seen and done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from data.decisions.run import Run
from data.decisions.schema import HEAD, KEY, TAIL, About
from data.errors import UserError
from data.strict import Strict
from models.decisions import source
from models.decisions.logs import Counts, runs_of
from pipelines.fleet.kinds import Computed, Connections

DECISIONS = "decisions-"
"""Name of a table, before the agent's."""
RUN = "run"


@dataclass(frozen=True)
class Decisions:
    """An agent's decisions with some settings; see `pipelines.fleet.kinds.Kind`."""

    agent: str
    settings: Strict

    @property
    def table(self) -> str:
        """A table of its own for each agent, since what they observe differs."""
        return f"{DECISIONS}{self.agent}"

    @property
    def key(self) -> str:
        """Column with the name of the connection."""
        return RUN

    @property
    def words(self) -> str:
        """What comes after ``cczoo features``."""
        return f"decisions {self.agent}"

    def about(self) -> About:
        """What a file of these decisions says of itself."""
        about: About = source(self.agent).about(self.settings)
        return about

    def recorded(self) -> Mapping[str, Any]:
        """The observation, the actions and all settings."""
        return self.about().model_dump(mode="json", exclude={"seeds", "command"})

    def metadata(self) -> Mapping[str, str]:
        """What the files of a data set say: each of these is one that `data.decisions` reads."""
        return {KEY: self.about().model_dump_json()}

    def schema(self) -> Any:
        """Columns of decisions, as `data.decisions.schema` has them."""
        import pyarrow as pa

        return pa.schema(self.about().columns())

    def kept(self, labels: Sequence[str], others: Sequence[str], store: str) -> list[str]:
        """Those without the name of a column of decisions; such labels can't part the store."""
        own = {*self.about().observation, *(column.name for column in (*HEAD, *TAIL))}
        if clash := sorted(own & set(labels)):
            raise UserError(
                f"{store}: is parted by {clash[0]!r}, which is also a column of decisions: make a "
                "store with this label renamed"
            )
        if clash := sorted(own & set(others)):
            print(
                f"{store}: labels {', '.join(clash)} aren't kept with decisions, which have "
                "columns of these names",
                file=sys.stderr,
            )
        return [name for name in others if name not in own]

    def compute(
        self, connections: Connections, attributes: Sequence[str], add: Callable[[Any], None]
    ) -> Computed:
        """Compute decisions, a connection at a time."""
        import pyarrow as pa

        counts, found = Counts(), Computed()
        columns, own = self.about().columns(), self.schema()
        texts = [pa.field(name, pa.string()) for name in attributes]
        schema = pa.schema([*own, *texts])
        row: dict[str, Any] = {}

        def watched() -> Connections:
            nonlocal row
            for one, events in connections:
                row = one
                yield one, events

        # Without rows a file is a file nevertheless: its connections were looked at.
        add(schema.empty_table())
        for run in runs_of(watched(), self.agent, self.settings, counts):
            rows = pa.record_batch(run.batch(columns))
            values = [_same(row.get(name), run) for name in attributes]
            add(pa.Table.from_arrays([*rows.columns, *values], schema=schema))
        found.rows = sum(counts.behaviours.values())
        found.sums.update(counts.behaviours)
        found.reasons.update(counts.reasons())
        found.refused = counts.refused
        return found


def _same(value: str | None, run: Run) -> Any:
    """A column that holds one text in every row."""
    import pyarrow as pa

    return pa.repeat(pa.scalar(value, pa.string()), run.rows)
