"""``cczoo offline`` as a user runs it."""

import json

import pytest
from offline_tables import SMALL

from pipelines.cli import main

SETTINGS = {**SMALL, "updates": 20, "gamma": 0.5, "held_out": 0.3}


@pytest.fixture(scope="module")
def agent(decisions, tmp_path_factory):
    """A training of a few updates."""
    out = tmp_path_factory.mktemp("agent")
    given = [f"--set={key}={value}" for key, value in SETTINGS.items()]
    assert main(["train", "offline", "tcco", "--method", "bc", "--decisions", str(decisions),
                 "--out", str(out), "--no-track", *given]) == 0  # fmt: skip
    return out / "seed-7"


def offline(capsys, *words):
    capsys.readouterr()
    code = main(["offline", *map(str, words)])
    told = capsys.readouterr()
    lines = [line for line in told.err.splitlines() if line.startswith(("refused", "cczoo"))]
    return code, told.out, lines


def test_a_conclusion_without_support_is_refused_in_a_line(decisions, capsys, tmp_path):
    asked = ("--ask", "snd_cwnd > 200 and base_rtt_ms > 100")
    code, out, lines = offline(capsys, "coverage", "--decisions", decisions, *asked)
    assert (code, lines) == (
        1, ["refused: the logs hold no decision above 200 segments on paths beyond 100 ms"],
    )  # fmt: skip
    assert "3200 decisions of 40 runs: 1600 of bold, 1600 of careful" in out
    plot = tmp_path / "plot.svg"
    code, out, lines = offline(capsys, "coverage", "--decisions", decisions, "--json",
                               "--ask", "snd_cwnd > 50", "--plot", plot)  # fmt: skip
    found = json.loads(out)
    assert (code, lines) == (0, [])
    assert found["asked"] == [{"question": "above 50 segments", "decisions": 3200, "runs": 40}]
    assert found["tables"]["snd_cwnd"][2]["runs"] == 40
    assert "3,200" in plot.read_text()


def test_an_agent_is_held_against_what_it_learned_from(agent, decisions, capsys):
    words = ("coverage", "--decisions", decisions, "--agent", agent)
    code, out, lines = offline(capsys, *words, "--least", 1, "--json")
    found = json.loads(out)
    assert (code, lines) == (0, [])
    assert found["runs"] < 40
    judged = found["judged"]["runs set aside"]
    assert judged["decisions"] == 80 * (40 - found["runs"])
    assert judged["outside"] == judged["rare_action"] == 0.0
    code, _, lines = offline(capsys, *words, "--scenario", "tcco-fig9a")
    assert code == 1
    assert lines[-1] == (
        "refused: 100.0 % of the decisions in tcco-fig9a: the logs hold no decision above 200 "
        "segments"
    )


def test_an_estimate_says_of_whom_it_is_and_what_is_refused(agent, decisions, capsys, tmp_path):
    kept = tmp_path / "estimate.json"
    settings = ("fits=1", "updates=10", "resamples=100", "horizon=1")
    few = [f"--set={one}" for one in settings]
    code, out, lines = offline(capsys, "estimate", agent, "--decisions", decisions, *few,
                               "--set", "spacing=1", "--out", kept, "--json")  # fmt: skip
    found = json.loads(out)
    assert json.loads(kept.read_text()) == found
    assert code == 0
    assert len(found["weights"]) == len(found["decisions"]) == 64
    assert found["fqe"]["low"] < found["fqe"]["mean"] < found["fqe"]["high"]
    assert found["wis"]["low"] < found["wis"]["mean"] < found["wis"]["high"]
    assert found["effective"] > 50
    given = [f"--set={key}={value}" for key, value in SETTINGS.items()]
    code, out, lines = offline(capsys, "estimate", "logged:bold", "--decisions", decisions, *given,
                               *few, "--set", "least_effective=1e6")  # fmt: skip
    assert "importance weights              refused" in out
    assert any(line.startswith("refused: importance weights: weights leave") for line in lines)


def test_mistakes_are_told_in_a_line(agent, decisions, capsys, tmp_path):
    for words, hint in {
        ("coverage", "--decisions", tmp_path): "no Parquet file of decisions there",
        ("coverage", "--decisions", decisions, "--plot", "x.pdf"): "--plot x.pdf: give a name",
        ("coverage", "--decisions", decisions, "--scenario", "tcco-fig9a"): "--agent",
        ("estimate", tmp_path, "--decisions", decisions): "no checkpoint",
        ("estimate", agent, "--decisions", decisions, "--against", "nobody"): "nobody",
        ("estimate", agent, "--decisions", decisions, "--set", "horizn=3"): "horizn",
        ("estimate", "logged:nobody", "--decisions", decisions): "nobody",
    }.items():
        code, _, lines = offline(capsys, *words)
        assert (code, len(lines)) == (2, 1), lines
        assert hint in lines[0]
