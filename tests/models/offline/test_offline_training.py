"""Trainings from logged decisions, as a user runs them, and what they leave."""

import json

import pytest
from offline_tables import SMALL

from models.closedloop import player
from models.offline import methods
from pipelines.cli import main

UPDATES = 20
"""Not six times something: the last point of the curve is at the end nevertheless."""


def train(method, decisions, out, capsys, *words):
    settings = {**SMALL, "updates": UPDATES, "rate": 5e-3, "gamma": 0.0}
    given = [f"--set={key}={value}" for key, value in settings.items()]
    code = main(["train", "offline", "tcco", "--method", method, "--decisions", str(decisions),
                 "--out", str(out), "--no-track", "--json", *given, *words])  # fmt: skip
    told = capsys.readouterr()
    return code, json.loads(told.out) if code == 0 else told.err


@pytest.mark.parametrize("method", methods.METHODS)
def test_each_method_leaves_a_control_that_plays(method, decisions, tmp_path, capsys):
    code, told = train(method, decisions, tmp_path / "out", capsys)
    assert code == 0
    (one,) = told["runs"].values()
    assert (told["agent"], told["method"], one["updates"]) == ("tcco", method, UPDATES)
    assert player(one["folder"]).policy.layout.action_counts == (5,)
    again, resumed = train(method, decisions, tmp_path / "out", capsys, "--resume")
    assert (again, resumed["runs"]) == (0, told["runs"])
    refused, error = train(method, decisions, tmp_path / "out", capsys)
    assert refused == 2
    assert "holds a training already" in error
