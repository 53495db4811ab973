"""The league's figures as they stand beside its page: what was drawn, and a line for each run."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from data.errors import UserError
from data.files import write_text
from data.results import Result, ResultFile
from pipelines.league.metrics import METRICS, Row

COMMAND = "cczoo league --out docs/league.md"
FOLDER = Path("docs/league")
RUNS = "runs.csv"
_FIRST = ["family", "scenario", "cc"]


class Header(Result):
    """What was drawn and played.

    Attributes
    ----------
    command : str
        What was given, but for what changes no figure.
    seed, each : int
        Seed of the drawing, and scenarios of each family.
    digest : str
        SHA-256 over all scenarios.
    runs : int
        Runs of the players; those of CUBIC that they are compared with alone don't count.
    cpu_s : float
        Time of the processor that those runs took.
    """

    command: str
    seed: int
    each: int
    digest: str
    runs: int
    cpu_s: float


LEAGUE = ResultFile("league.json", Header, COMMAND)


@dataclass(frozen=True)
class Figures:
    """All that the page is made of.

    Attributes
    ----------
    header : Header
    played : dict
        Family -> its scenarios.
    rows : dict
        (scenario, player) -> figures.
    """

    header: Header
    played: dict[str, list[str]]
    rows: dict[tuple[str, str], Row]


def write(folder: Path, figures: Figures) -> None:
    """Write both files, each whole or not at all."""
    family = {one: name for name, scenarios in figures.played.items() for one in scenarios}
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow([*_FIRST, *METRICS])
    for (scenario, cc), row in figures.rows.items():
        values = ["" if row[name] is None else f"{row[name]:.5g}" for name in METRICS]
        out.writerow([family[scenario], scenario, cc, *values])
    write_text(folder / RUNS, text.getvalue())
    LEAGUE.write(folder, figures.header)


def read(folder: Path) -> Figures:
    """Read what `write` has written.

    Raises
    ------
    UserError
        When a file is missing or of another version.
    """
    header = LEAGUE.read(folder)
    path = folder / RUNS
    if not path.is_file():
        raise UserError(f"{path}: missing: make it with `{COMMAND}`")
    lines = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    if not lines or lines[0] != [*_FIRST, *METRICS]:
        raise UserError(f"{path}: of another version of cczoo: make it again with `{COMMAND}`")
    played: dict[str, dict[str, None]] = {}
    rows: dict[tuple[str, str], Row] = {}
    for family, scenario, cc, *values in lines[1:]:
        played.setdefault(family, {})[scenario] = None
        numbers = [float(value) if value else None for value in values]
        rows[scenario, cc] = dict(zip(METRICS, numbers, strict=True))
    return Figures(header, {name: list(one) for name, one in played.items()}, rows)


def total(runs: Mapping[tuple[str, str], Mapping[str, float]]) -> float:
    """Processor time of all runs (s)."""
    return round(sum(run["cpu_s"] for run in runs.values()), 1)
