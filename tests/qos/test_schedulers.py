"""MP-CDG's scheduler on a video's segment, and the study that compares it with the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.errors import UserError
from data.netsim.network import Network
from data.netsim.scenario import Scenario
from pipelines.reporting import qos
from pipelines.reporting.inputs import Inputs, MissingInput
from pipelines.studies.streaming import command, figures, kept, page, pairs


def arrival_s(scheduler: str, segments: int) -> float:
    """When so many segments have arrived that were written at once, over unlike paths."""
    paths = [{"forward": [one], "back": [one]} for one in ("fast", "slow")]
    tree = {
        "links": {"fast": {"rate_mbps": 20.0, "delay_ms": 10.0},
                  "slow": {"rate_mbps": 20.0, "delay_ms": 80.0}},
        "flows": [{"name": "f", "rate_mbps": 1.0, "scheduler": scheduler, "paths": paths}],
    }  # fmt: skip
    network = Network(Scenario.parse(tree, "test"), "lia", seed=1)
    network.state.conn["app_chunk"] = 0
    network.advance(1.0)
    network.state.conn["data_end"][0] = segments
    for step in range(500):
        network.advance(1.0 + 0.002 * (step + 1))
        if network.state.conn["data_rcv"][0] >= segments:
            return 0.002 * (step + 1)
    raise AssertionError("never came")


def test_the_end_of_a_segment_waits_for_the_path_that_delivers_sooner() -> None:
    assert arrival_s("qos", 14) < 0.8 * arrival_s("minrtt", 14)


def test_much_data_goes_over_both_paths() -> None:
    assert arrival_s("qos", 400) < 1.1 * arrival_s("minrtt", 400)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    rng = np.random.default_rng(2)
    for name in ("1_1", "1_2"):
        for kind in pairs.KINDS:
            rows = enumerate(rng.integers(500_000, 6_000_000, 12), 1)
            text = "".join(f"{second},{number}\n" for second, number in rows)
            (folder / f"{name}_{kind}.csv").write_text(text)
    return folder


@pytest.fixture(scope="module")
def found(traces: Path) -> kept.Streaming:
    return command.played(2, traces)


def test_every_scheduler_is_compared_over_both_kinds_of_pairs(found: kept.Streaming) -> None:
    assert len(found.rows) == 2 * 2 * 4
    for row in found.rows:
        assert row.pairs == 2
        assert set(row.mean) == set(row.more) == set(kept.SHOWN)
        if row.scheduler == "minrtt":
            assert all(value.mean == 0 for value in row.more.values())
        assert row.mean["psnr_db"].low <= row.mean["psnr_db"].mean <= row.mean["psnr_db"].high
    shown = page.text(found, 2, {"generated": ("a.svg", "A"), "measured": ("b.svg", "B")})
    assert "## Measured pairs" in shown
    assert shown.count("| `qos` |") == 8


def test_the_report_draws_them(found: kept.Streaming, tmp_path: Path) -> None:
    with pytest.raises(MissingInput):
        qos.streams(Inputs(tmp_path))
    kept.STREAMING.write(tmp_path / kept.FOLDER, found)
    drawn = qos.streams(Inputs(tmp_path))
    assert drawn.count("<svg") == drawn.count("<table") == 2
    assert figures.drawn(found.rows, "measured")[0].startswith("<svg")


def test_a_folder_without_pairs_is_told(tmp_path: Path, traces: Path, capsys: Any) -> None:
    with pytest.raises(UserError, match="0 pairs"):
        pairs.measured(tmp_path)
    for one in traces.iterdir():
        (tmp_path / one.name).write_text(one.read_text())
    (tmp_path / "1_1_wifi.csv").write_text("not,a\ntable,1\n")
    with pytest.raises(UserError, match=r"1_1_wifi\.csv"):
        pairs.measured(tmp_path)
    with pytest.raises(SystemExit):
        command.main(["--pairs", "1"])
    assert "two at least" in capsys.readouterr().err
