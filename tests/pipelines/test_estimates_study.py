"""The study that holds estimates from logs against the simulator."""

import numpy as np
import pytest
import torch

from data.decisions import files
from data.errors import UserError
from models.offline.acting import Acting, layout
from models.offline.aside import Aside
from models.offline.params import Evaluation
from models.offline.rolled import rolled
from models.offline.source import Source
from models.rl.networks.transformer import TransformerModule
from pipelines.studies.estimates import judge, logs, page, truth
from pipelines.studies.estimates.logs import CONTROLS, EXPLORED, KINDS, Size

SMALL = Size(scenarios=2, steps=24)
SETTINGS = Evaluation(gamma=0.5, held_out=0.99, horizon=4, spacing=8)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Logs of both kinds."""
    folder = tmp_path_factory.mktemp("logs")
    patch = pytest.MonkeyPatch()
    patch.setattr(logs, "CLASSICAL", ("cubic",))
    patch.setattr(logs, "SCRIPTS", {"track-0.6": logs.SCRIPTS["track-0.6"]})
    try:
        return {kind: logs.write(kind, folder, SMALL, 3) for kind in KINDS}
    finally:
        patch.undo()


def test_a_run_is_played_again_as_it_was_logged(written):
    """A policy that goes on as the log does is paid what the log was paid, to the last bit."""
    aside = Aside.of(Source(written[EXPLORED], SETTINGS), SETTINGS)
    assert [steps.tolist() for steps in aside.steps] == [[0, 8, 16], [0, 8, 16]]
    lanes = np.repeat([0, 1], 3)
    actions, at = np.stack([run.action for run in aside.runs])[lanes], iter(range(100))
    found = truth.played(lambda envs: lambda batch: actions[:, min(next(at), 23)], aside, EXPLORED)
    assert found == pytest.approx(aside.rewards(aside.length), abs=1e-6)
    other = truth.played(lambda envs: lambda batch: np.zeros((6, 2), int), aside, EXPLORED)
    assert not np.allclose(other, found)


def test_controls_run_where_scripts_do(written):
    runs = {kind: list(files.runs(path)) for kind, path in written.items()}
    places = {kind: [run.scenario for run in found] for kind, found in runs.items()}
    assert places[EXPLORED] == places[CONTROLS] == ["place-3-0", "place-3-1"]
    assert {run.behaviour for run in runs[CONTROLS]} == {"cubic"}
    first = [found[0].observation[0] for found in runs.values()]
    assert first[0].shape == first[1].shape == (2, 6)
    assert {run.steps for found in runs.values() for run in found} == {24}


def test_what_is_asked_of_logs_is_what_plays(written):
    """A network does along a log what it did when that was logged, its context and all."""
    torch.manual_seed(1)
    source = Source(written[EXPLORED], SETTINGS)
    model = {"layout": layout(source).plain(), "network": SETTINGS.model_dump()}
    policy = Acting("any", TransformerModule(model_config=model).eval())
    envs = logs.batch([logs.Place(number, 3) for number in range(2)], 24)
    act = truth.acting(policy, 0)(envs)
    runs = list(rolled(envs, act, "any", 0, 24))
    assert len({tuple(step) for run in runs for step in run.action}) > 1
    for run in runs:
        assert policy.along(run, source).argmax(-1).tolist() == run.action.tolist()
    policy.greedy = False
    drawn = next(rolled(envs, truth.acting(policy, 0)(envs), "any", 0, 24)).action
    assert drawn.tolist() != runs[0].action.tolist()
    envs.close()


def row(policy, value, played, refused=()):
    one = {"mean": value, "low": value - 0.1, "high": value + 0.1}
    return {
        "kind": EXPLORED, "seed": 0, "policy": policy, "truth": played, "truth_short": played,
        "fqe": one, "wis": None if "wis" in refused else one, "horizon": 8, "effective": 9.0,
        "off": {"mean": 0.25}, "logged": {"mean": 1.25}, "beats": True,
        "starts": 10, "coverage": {"rare_action": 0.5}, "refused": dict.fromkeys(refused, ""),
    }  # fmt: skip


def test_a_summary_says_how_near_and_how_well_ordered():
    rows = [row("a", 0.0, 0.05), row("b", 1.0, 1.3), row("c", 2.0, 1.2, ("wis",))]
    found = judge.summary(rows)["fqe"]
    assert found["error"] == pytest.approx((0.05 + 0.3 + 0.8) / 3)
    assert found["bias"] == pytest.approx((-0.05 - 0.3 + 0.8) / 3)
    assert (found["rank"], found["within"], found["refused"]) == pytest.approx((0.5, 1 / 3, 0))
    weights = judge.summary(rows)["wis"]
    assert (weights["rank"], weights["refused"]) == (None, pytest.approx(1 / 3))
    result = {EXPLORED: {"summary": judge.summary(rows), "policies": rows}}
    made = page.table(result, 1)
    assert (
        "| 0 | c | 1.200 | 2.000 (1.900 to 2.100) | 50 % | 1.200 | (none) | 9.0 of 10 | yes, no |"
        in made
    )
    old = f"before\n{page.MARKS.begin}\nold\n{page.MARKS.end}\nafter\n"
    assert (
        page.MARKS.placed(old, made, "x")
        == f"before\n{page.MARKS.begin}\n{made}{page.MARKS.end}\nafter\n"
    )
    with pytest.raises(UserError, match="no place for the table"):
        page.MARKS.inside("nothing", "x")
