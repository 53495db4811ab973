"""Show what MP-CDG does to streams and throughput, and how its network was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from models.qos.results import QOS, DiscretiserRow, StructureRow
from pipelines.reporting.figures import COLOURS, bars, style, svg
from pipelines.reporting.inputs import Inputs, MissingInput
from pipelines.reporting.markup import Column, figure, paragraph, table
from pipelines.studies.streaming import kept

if TYPE_CHECKING:
    from data.results import ResultFile

T = TypeVar("T")
TABLE2 = Path("docs/papers/mpcdg-table1.svg")
PAPERS = "python -m pipelines.studies.papers.command --seeds 10 --out docs/papers.md"


def streams(inputs: Inputs) -> str:
    """What a viewer sees with each scheduler: differences to minRTT as figures, means in tables."""
    from pipelines.studies.streaming import figures
    from pipelines.studies.streaming.page import HOW

    found = _read(inputs.root / kept.FOLDER, kept.STREAMING)
    columns = [Column("control", number=False), Column("scheduler", number=False)]
    columns += [Column(title) for title in kept.SHOWN.values()]
    made = ""
    for links in dict.fromkeys(row.links for row in found.rows):
        picture, caption = figures.drawn(found.rows, links, standalone=False)
        made += figure(picture, caption, wide=True)
        mine = [row for row in found.rows if row.links == links]
        rows: list[list[Any]] = [
            [row.cc, row.scheduler,
             *({"mean": v.mean, "low": v.low, "high": v.high}
               for v in (row.mean[name] for name in kept.SHOWN))]
            for row in mine
        ]  # fmt: skip
        made += table(columns, rows, f"Streams over {mine[0].pairs} {figures.TITLES[links]}")
        made += paragraph(HOW[links].replace("`", ""))
    return made


def network(inputs: Inputs) -> str:
    """How much structures and discretisations differ on held-out sessions."""
    found = _read(inputs.root / "reports" / "qos", QOS)
    structures = f"structures, more than {found.structures[0].name}"
    discretisers = f"discretisations, more than {found.discretisers[0].name}"
    caption = f"Log-likelihood of {found.held_out} held-out sessions (nats each), 95 % intervals."
    with style():
        drawn = _panels({structures: found.structures, discretisers: found.discretisers})
        return figure(svg(drawn, "qos-network", caption), caption, wide=True)


def throughput(inputs: Inputs) -> str:
    """The paper's Table 2 as a plot, as the page of papers has it."""
    path = inputs.root / TABLE2
    if not path.is_file():
        raise MissingInput(path, PAPERS)
    caption = (
        "The paper's Table 2: node B's throughput in intervals of 10 s behind a bottleneck shared "
        "with a TCP flow, means over ten seeds with 95 % intervals; docs/papers.md has Table 1."
    )
    return figure(path.read_text(encoding="utf-8"), caption, wide=True)


def _panels(parts: dict[str, Sequence[StructureRow] | Sequence[DiscretiserRow]]) -> Any:
    from matplotlib import pyplot

    drawn, axes = pyplot.subplots(1, len(parts), figsize=(9.0, 2.2))
    for axis, (title, rows) in zip(axes, parts.items(), strict=True):
        others = rows[1:]
        means = [row.more["mean"] for row in others]
        axis.barh(range(len(others)), means, 0.6, xerr=bars([row.more for row in others]),
                  color=COLOURS[0], capsize=3)  # fmt: skip
        axis.axvline(0, color="#88888899", linewidth=0.8)
        axis.set_yticks(range(len(others)), [row.name for row in others])
        axis.set_title(title)
        axis.set_xlabel("nats a session")
    drawn.tight_layout()
    return drawn


def _read(folder: Path, file: ResultFile[T]) -> T:
    from data.errors import UserError

    path = folder / file.name
    if not path.is_file():
        raise MissingInput(path, file.made_by)
    try:
        return file.read_at(path)
    except UserError as error:
        raise MissingInput(path, file.made_by, str(error)) from None
