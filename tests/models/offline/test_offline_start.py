"""An online training begins with what logs have taught."""

import json

import numpy as np
import pytest
from offline_tables import SMALL

from data.errors import UserError
from models.offline import methods
from models.offline.source import Source
from models.offline.training import learn
from models.rl import checkpoint, start
from pipelines.cli import main

ONLINE = ("num_envs=4", "steps=160", "batch=8", "learning_starts=60", "validate_every=0",
          "rate=0", "last_rate=0", "env.params.steps=40")  # fmt: skip
"""Nothing is learned: what comes out is what it began with."""


@pytest.fixture(scope="module")
def taught(decisions, tmp_path_factory):
    """A network that learned from logs, with its environment."""
    folder = tmp_path_factory.mktemp("taught")
    settings = methods.settings(
        "cql", {**SMALL, "updates": 2, "env": {"sampler": "mixed_paths"}, "subflows": 2}
    )
    learn("cql", Source(decisions, settings), folder)
    return folder


def test_an_online_training_goes_on_with_a_network_from_logs(taught, tmp_path, capsys):
    given = [word for one in ONLINE for word in ("--set", one)]
    out = tmp_path / "online"
    code = main(["train", "tcco", "--start", str(taught), "--out", str(out), "--no-track",
                 "--judge", "0", "--json", *given])  # fmt: skip
    assert code == 0
    assert json.loads(capsys.readouterr().out)["runs"]["7"]["steps"] >= 160
    before = checkpoint.read(checkpoint.latest(taught))
    after = checkpoint.read(checkpoint.latest(out / "seed-7"))
    assert after["agent"] == "tcco"
    for key in start.SIZES:
        if key in before["settings"]:
            assert after["settings"][key] == before["settings"][key]
    assert after["settings"]["env"]["sampler"] == "mixed_paths"
    assert {key: after["settings"][key] for key in ("warmup", "epsilon")} == {
        "warmup": 0, "epsilon": start.CALM["epsilon"],
    }  # fmt: skip
    for key, value in before["network"].items():
        assert np.array_equal(after["network"][key], value), key


def test_a_network_of_other_sizes_is_refused_in_a_line(taught, tmp_path, capsys):
    given = ["--set", "width=32", "--set", "steps=40", "--out", str(tmp_path), "--no-track"]
    assert main(["train", "tcco", "--start", str(taught), *given]) == 2
    assert "leave its sizes as they were" in capsys.readouterr().err
    with pytest.raises(UserError, match="no checkpoint"):
        start.settings(tmp_path / "none", "tcco")
