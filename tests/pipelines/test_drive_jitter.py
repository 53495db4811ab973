"""Driven scenarios in the simulator with packets that are late."""

from __future__ import annotations

import json

import pytest

from pipelines.drive import jitter


def test_lateness_raises_the_rtt_of_bbr_and_takes_no_goodput(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["drive-loss", "--sites", "loss-1", "--cc", "bbr", "--late-ms", "0,1"]
    assert jitter.main([*words, "--repeats", "2", "--duration", "4", "--json"]) == 0
    punctual, late = json.loads(capsys.readouterr().out)
    assert (punctual["late_p99_ms"], late["late_p99_ms"]) == (0, 1)
    assert late["rtt_ms"] > 1.2 * punctual["rtt_ms"]
    assert late["goodput_mbps"] == pytest.approx(punctual["goodput_mbps"], rel=0.02)


def test_table_has_a_row_for_each_control() -> None:
    one = {"site": "steady", "control": "bbr", "goodput_mbps": 19.0, "rtt_ms": 48.79}
    rows = [one | {"late_p99_ms": 0.0}, one | {"late_p99_ms": 0.3, "rtt_ms": 50.0}]
    assert jitter.table(rows).splitlines() == [
        "| setting | control | 0 ms | 0.3 ms |",
        "| --- | --- | --- | --- |",
        "| steady | bbr | 48.8 / 19.0 | 50.0 / 19.0 |",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["drive-loss", "--late-ms", "0,x"], "--late-ms 0,x: milliseconds from 0 to 1000"),
        (["drive-loss", "--cc", "agent"], "--cc agent: the kernel's own alone"),
        (["drive-los"], "unknown driven scenario 'drive-los'"),
        (["drive-loss", "--repeats", "0"], "--repeats: at least 1"),
    ],
)
def test_mistakes_get_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert jitter.main(words) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.strip().splitlines()) == 1
