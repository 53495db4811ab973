"""The comparison with ns-3: its cases run here, what is missing is named, bands are judged."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.ns3 import compare, program
from benchmarks.ns3.cases import CASES, Case, spec
from benchmarks.ns3.page import page

pytestmark = pytest.mark.xdist_group("netsim")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}, {case.where.delay:g} ms")
def test_every_case_runs(case: Case) -> None:
    short = replace(case, where=replace(case.where, duration=3.0, warmup=1.0))
    run = compare.of_netsim(short, seed=1)
    # What fills a hole counts when it is filled: two seconds may deliver what three sent.
    assert 0.0 < 2.0 * run["goodput_mbps"] < 3.0 * short.where.rate
    assert run["rtt_ms"] >= 2 * short.where.delay + 4 * short.where.access
    assert spec(short).links["core"].queue_packets == short.where.queue


def test_without_ns3_what_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "PROGRAM", tmp_path / "dumbbell")
    monkeypatch.setattr(program.shutil, "which", lambda tool: None)
    monkeypatch.setattr(compare, "RESULTS", tmp_path / "results.json")
    assert compare.measure(seeds=2, jobs=1, fresh=False) == {}
    assert f"{2 * len(CASES)} of {2 * len(CASES)} runs" in capsys.readouterr().err


def test_the_program_is_built_when_its_source_is_newer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    done = subprocess.CompletedProcess([], 0)
    monkeypatch.setattr(program.shutil, "which", lambda tool: tool)
    monkeypatch.setattr(program.subprocess, "run", lambda args, **_: calls.append(args) or done)
    monkeypatch.setattr(program, "PROGRAM", tmp_path / "dumbbell")
    assert program.built()
    assert [args[0] for args in calls] == ["pkg-config", "sh"]
    (tmp_path / "dumbbell").touch()
    assert program.built()
    assert len(calls) == 2


def test_only_what_lies_outside_the_band_is_called_so() -> None:
    def runs(goodput: float, rtt: float) -> list[dict[str, float]]:
        rest = {"drop_rate": 0.0, "queue_packets": 1.0}
        return [{"goodput_mbps": goodput, "rtt_ms": rtt, **rest}] * 3

    rows = [(CASES[0], runs(10.0, 100.0), runs(10.4, 100.0)),
            (CASES[1], runs(10.0, 100.0), runs(10.0, 110.0))]  # fmt: skip
    alike, apart = page(rows).splitlines()[-2:]
    assert alike.endswith("| – |")
    assert apart.endswith("| RTT |")
