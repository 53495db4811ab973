"""Decisions of an ingested directory: those of each connection, and why others have none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from data.command_line import made_by
from data.decisions import files
from data.decisions.run import Run
from data.errors import UserError
from data.store import Series, iter_connections, read_connections
from data.strict import Strict
from models.decisions import Refused, source

Show = Callable[[Iterable[Any], str, int], Iterable[Any]]
"""See `models.parallel.Progress`."""


class Counts:
    """What became of the connections of a directory."""

    def __init__(self) -> None:
        self.connections = self.runs = 0
        self.behaviours: dict[str, int] = {}
        self.refused: list[dict[str, str]] = []

    def taken(self, run: Run) -> None:
        """Count the decisions of a run."""
        self.runs += 1
        self.behaviours[run.behaviour] = self.behaviours.get(run.behaviour, 0) + run.rows

    def reasons(self) -> dict[str, int]:
        """Why connections were refused -> how many."""
        found: dict[str, int] = {}
        for one in self.refused:
            found[one["reason"]] = found.get(one["reason"], 0) + 1
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "connections": self.connections,
            "runs": self.runs,
            "decisions": sum(self.behaviours.values()),
            "decisions_of": dict(sorted(self.behaviours.items())),
            "connections_refused": len(self.refused),
            "reasons": self.reasons(),
            "refused": self.refused,
        }


def runs_of(
    connections: Iterable[tuple[dict[str, Any], Series]], agent: str, settings: Any, counts: Counts
) -> Iterator[Run]:
    """Runs of those connections that hold what the agent's decisions need; ``counts`` is added to.

    A link's samples are no connection's, and aren't counted.
    """
    of_log = source(agent).of_log
    for row, events in connections:
        if row["cc"] is None and "/link." in row["connection"]:
            continue
        counts.connections += 1
        try:
            run = of_log(row, events, settings)
        except Refused as reason:
            refused = {"connection": row["connection"], "reason": str(reason)}
            counts.refused.append(refused)
            continue
        counts.taken(run)
        yield run


def write(directory: Path, agent: str, settings: Strict, out: Path, show: Show) -> dict[str, Any]:
    """Write the decisions of an ingested directory; returns the counts.

    Raises
    ------
    UserError
        When it isn't an ingested directory, or no connection in it has any decision.
    """
    counts, made = Counts(), source(agent)
    about = made.about(settings).model_copy(update={"command": made_by()})
    total = read_connections(directory).height
    connections = show(iter_connections(directory), "decisions", total)
    content, _ = files.as_bytes(about, runs_of(connections, agent, settings, counts))
    if not counts.runs:
        why = "; ".join(f"{number} × {reason}" for reason, number in counts.reasons().items())
        raise UserError(f"{directory}: no decisions of {agent} in it: {why or 'no connection'}")
    files.keep(out, content)
    return counts.plain()
