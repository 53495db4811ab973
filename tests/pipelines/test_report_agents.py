"""The report's tables of environments and of their trainer."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipelines.reporting import agents, trained
from pipelines.reporting.inputs import Inputs


def test_tables_have_a_row_for_each_environment_and_agent(tmp_path: Path) -> None:
    folder = tmp_path / "benchmarks" / "results"
    folder.mkdir(parents=True)
    one = {
        "steps_per_cpu_s": 1600.4, "share_of_simulator": 0.953, "threads2": 1.777,
        "machine2": 1.812, "over_pcc_rl": [5.14, 2.96], "packet_events_per_step": 1640.2,
        "environments": 64,
    }  # fmt: skip
    found = {"pcc_rl_steps_per_s": [315, 547], "TCCO": one, "Nuwa": one}
    (folder / "envs.json").write_text(json.dumps(found))
    html = agents.environments(Inputs(tmp_path))
    shown = ("TCCO", "Nuwa", "1600", "0.95", "1.78", "1.81", "3.0 to 5.1", "1640", "315 to 547")
    for text in shown:
        assert text in html
    agent = {
        "overhead": 1.049, "overhead_range": [0.93, 1.14], "trainer_us_per_step": 3624.7,
        "plain_us_per_step": 3352.4, "runner": {"added_us_per_step": 2.33},
    }  # fmt: skip
    aims = {"overhead": 1.3, "runner_us": 5.0, "sample_us": 50.0}
    found = {"aims": aims, "tcco": agent, "ring_sample_of_32_us": {"even": 20.7, "other": 27.1}}
    (folder / "train.json").write_text(json.dumps(found))
    html = agents.trainer(Inputs(tmp_path))
    for text in ("tcco", "1.05 (0.93 to 1.14)", "3625", "3352", "2.3", "21 to 27 us", "1.3 times"):
        assert text in html


@pytest.mark.parametrize(
    ("env", "less"),
    [
        ({"twin_k": 3.0}, True),
        ({"twin_k": None}, False),
        ({"sampler": "twin_k"}, False),
        ({}, False),
    ],
)
def test_returns_are_differences_only_where_a_twin_was_taken_off(env: Any, less: bool) -> None:
    found: Any = SimpleNamespace(settings={"env": env})
    assert trained._less_a_twin(found) is less
