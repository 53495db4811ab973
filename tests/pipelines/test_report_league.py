"""The report's section on the league."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.league import draw, kept
from pipelines.league.families import FAMILIES
from pipelines.league.metrics import METRICS
from pipelines.reporting import league
from pipelines.reporting.inputs import Inputs, MissingInput


def figures() -> kept.Figures:
    played = {name: [f"{name}-{i:02d}" for i in range(3)] for name in FAMILIES}
    rows = {
        (one, cc): dict.fromkeys(METRICS, value) | {"jain": None, "power": value + 0.01 * i}
        for scenarios in played.values()
        for i, one in enumerate(scenarios)
        for cc, value in (("cubic", 0.3), ("vegas", 0.6))
    }
    head = kept.Header(command=kept.COMMAND, seed=draw.SEED, each=3, digest="f" * 64,
                       runs=len(rows), cpu_s=1.0)  # fmt: skip
    return kept.Figures(head, played, rows)


def test_controls_stand_in_the_order_of_their_power(tmp_path: Path) -> None:
    kept.write(tmp_path / kept.FOLDER, figures())
    html = league.standings(Inputs(tmp_path))
    assert html.index("vegas") < html.index("cubic")
    for text in ("2 congestion controls in 24 scenarios of 8 families", "f" * 16, "0.61", "30.00",
                 "Controls on one path", "Controls on several paths"):  # fmt: skip
        assert text in html, text
    drawings = league.drawings(Inputs(tmp_path))
    assert drawings.count("<svg") == 2
    assert "vegas" in drawings


def test_without_runs_the_command_is_told(tmp_path: Path) -> None:
    with pytest.raises(MissingInput) as caught:
        league.standings(Inputs(tmp_path))
    assert caught.value.command == kept.COMMAND
    kept.write(tmp_path / kept.FOLDER, figures())
    path = tmp_path / kept.FOLDER / kept.RUNS
    path.write_text(path.read_text().replace("power", "might", 1))
    with pytest.raises(MissingInput, match="of another version"):
        league.drawings(Inputs(tmp_path))


def test_what_is_kept_is_read_as_it_was(tmp_path: Path) -> None:
    kept.write(tmp_path, figures())
    assert kept.read(tmp_path) == figures()
