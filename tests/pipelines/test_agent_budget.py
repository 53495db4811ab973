"""Budgets of the agents' trainings: their bounds, and the stages that train with them."""

from pathlib import Path

import pytest
import yaml

from data.errors import UserError
from models.policies.scenes import ENVIRONMENTS
from models.rl.agents import AGENTS
from pipelines import params
from pipelines.rl.budget import AgentsParams
from pipelines.rl.results import SHOWN

ROOT = Path(__file__).parents[2]
STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]


def read(tmp_path, text):
    path = tmp_path / "params.yaml"
    path.write_text(f"agents: {text}\n")
    return params.load(path)


def test_every_agent_has_a_small_budget_and_one_for_reference():
    small, full = (params.load(ROOT / name).agents for name in ("params.yaml", "params.full.yaml"))
    small.check("params.yaml")
    full.check("params.full.yaml")
    assert set(AgentsParams.model_fields) == set(AGENTS) == set(SHOWN) == set(ENVIRONMENTS)
    for name in AGENTS:
        assert small.of(name).settings["steps"] < full.of(name).settings["steps"] * (
            full.of(name).seeds
        )
        assert full.of(name).seeds == 10
        assert full.of(name).episodes >= small.of(name).episodes


def test_what_a_file_leaves_out_has_its_default(tmp_path):
    found = read(tmp_path, "{macc: {episodes: 8}}").agents
    assert (found.of("macc").episodes, found.of("macc").seeds) == (8, 1)
    assert found.of("tcco").settings == {}
    assert params.load(None).agents == AgentsParams()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{tcc: {}}", "did you mean 'tcco'"),
        ("{tcco: {seeds: 0}}", "agents.tcco.seeds: input should be greater than or equal to 1"),
        ("{tcco: {seeds: 101}}", "less than or equal to 100"),
        ("{tcco: {episodes: 3}}", "greater than or equal to 4"),
        ("{tcco: {episodes: 1025}}", "less than or equal to 1024"),
        ("{tcco: {settings: {rat: 1}}}", "agents.tcco.settings.rat: .*did you mean 'rate'"),
        ("{tcco: {settings: {gamma: 2}}}", "tcco.settings.gamma: input should be less than 1"),
        ("{macc: {settings: {validate_every: 0}}}", "macc.settings.validate_every: from 1 to"),
        ("{macc: {settings: {steps: 50}}}", "macc.settings.validate_every: from 1 to the 50 steps"),
        (
            "{nuwa: {settings: {num_envs: 8, validation_episodes: 9}}}",
            "validation_episodes: 9, give at most num_envs=8",
        ),
        ("{nuwa: {settings: {env: {params: {steps: 9}}}}}", "nuwa.settings.env.params: policies"),
    ],
)
def test_a_wrong_budget_is_named_by_its_key(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        read(tmp_path, text).agents.check("params.yaml")


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_a_stage_trains_an_agent_by_its_budget_and_the_report_waits_for_it(name):
    stage = STAGES[f"agent-{name}"]
    place = f"reports/agents/{name}"
    assert stage["outs"] == [place]
    assert stage["params"] == [f"agents.{name}"]
    for words in (f"cczoo train {name} ", "--params params.yaml", "--resume", f"--verdict {place}"):
        assert words in stage["cmd"]
    assert "data/interim/params-checked" in stage["deps"]
    assert f"data/scenarios/netsim/{SHOWN[name][0]}.yaml" in stage["deps"]
    algorithm = AGENTS[name].algorithm.partition(":")[0].replace(".", "/")
    assert any(f"{algorithm}.py".startswith(one) for one in stage["deps"])
    assert place in STAGES["report"]["deps"]


def test_a_budget_retrains_its_agent_alone():
    for name, stage in STAGES.items():
        own = [one for one in stage.get("params", []) if str(one).startswith("agents")]
        assert own == ([f"agents.{name.removeprefix('agent-')}"] if "agent-" in name else [])
