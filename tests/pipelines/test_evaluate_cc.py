"""`cczoo evaluate cc`: rows that scripts rely on, and errors that help."""

import json

import pytest

from data.netsim.scenario import load, names
from pipelines.cli import main

NAMED = [
    *("tcco-fig9a", "tcco-fig9-loss", "tcco-fig10", "tcco-fig11", "tcco-table2"),
    *(
        "nuwa-table1",
        "nuwa-fig8",
        "nuwa-fig9",
        "nuwa-fig14",
        "nuwa-fig16",
        "nuwa-fig17",
        "macc-fig4",
        "mpcdg-table1",
    ),
    *("smartsbd-fig8", "smartsbd-fig9", "smartsbd-fig10", "smartsbd-table6"),
]


@pytest.mark.parametrize("name", NAMED)
def test_every_named_scenario_is_there_and_valid(name):
    assert name in names()
    assert all(spec.title and spec.source for spec in load(name).values())


def test_table6_has_ten_cases_whose_bottleneck_is_shared_as_labelled():
    for label, spec in load("smartsbd-table6").items():
        first, second = (set(path.forward) for path in spec.flows[0].paths)
        assert (spec.bottleneck in first & second) == label.startswith("sb")


def test_json_rows(capsys):
    arguments = ["--scenario", "smartsbd-fig9", "--cc", "lia,reno", "--seeds", "2", "--json"]
    short = ["--set", "duration_s=8", "--set", "warmup_s=1"]
    assert main(["evaluate", "cc", *arguments, *short]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 2 * len(load("smartsbd-fig9"))
    for row in rows:
        assert {"scenario", "cc", "seeds", "metrics"} <= set(row)
        assert row["seeds"] == 2
        for metric in ("goodput_mbps", "rtt_ms", "rtt_p95_ms", "queue_delay_ms", "loss_rate"):
            bounds = row["metrics"][metric]
            assert bounds["lo"] <= bounds["mean"] <= bounds["hi"]
        assert 0 < row["metrics"]["goodput_mbps"]["mean"] < 16


def test_list_shows_scenarios_and_controllers(capsys):
    assert main(["evaluate", "cc", "--list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(NAMED) <= set(found["scenarios"])
    assert {"cubic", "lia", "nuwa"} <= set(found["controllers"])


@pytest.mark.parametrize(
    ("arguments", "help_"),
    [
        (["--scenario", "tcco-fig9b"], "tcco-fig9a"),
        (["--scenario", "tcco-fig9a", "--cc", "cubik"], "cubic"),
        (["--scenario", "tcco-fig9a", "--seeds", "0"], "--seeds"),
        (["--cc", "cubic"], "--scenario"),
        (["--scenario", "tcco-fig9a", "--cc", "cubic", "--delay", "5"], "no policy among --cc"),
    ],
)
def test_mistakes_are_explained(arguments, help_, capsys):
    assert main(["evaluate", "cc", *arguments]) == 2
    assert help_ in capsys.readouterr().err
