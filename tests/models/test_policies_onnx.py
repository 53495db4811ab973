"""Policies as ONNX files: the network's scores, the same run in closed loop, refusals."""

import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
import random_policies

from data.errors import UserError
from export.bundle.manifest import bundle_files
from export.onnx.metadata import states_of
from export.onnx.run import predict
from export.params import Options
from export.policy.flat import columns, narrowed
from export.policy.source import onnx_file, scores, source
from export.verify import verify
from features.whole import divisors, whole
from models.closedloop import Player, player
from models.policies.decisions import Recorded, side_by_side
from models.policies.in_onnx import of_file
from models.policies.observed import observed

pytestmark = pytest.mark.xdist_group("dynamo")
ROWS = 96


def drawn(policy, rows=ROWS, seed=0):
    """Observations of one sequence, on any scale, with subflows that come and go."""
    features = whole(observed(policy.environment, policy.kinds[0])[0])
    rng = np.random.default_rng(seed)
    parts = policy.layout.parts if len(policy.layout.action_counts) == 1 else 1
    high = np.array([f.high for f in features])
    values = np.floor(high ** rng.uniform(0, 1, (rows, parts, len(features))))
    there = rng.random((rows, parts)) < 0.9
    return Recorded(values, there | (np.arange(parts) == 0))


@pytest.fixture(scope="module", params=["tcco", "nuwa", "macc"])
def exported(request, tmp_path_factory):
    """A policy with random weights and the file that it is exported as."""
    policy = random_policies.policy(request.param)
    if request.param == "macc":
        policy = policy.only("macc-tcp")
    path = tmp_path_factory.mktemp("policy") / f"{request.param}.onnx"
    path.write_bytes(onnx_file(policy))
    return policy, path


def test_scores_are_the_networks_whatever_is_observed(exported):
    policy, path = exported
    given = drawn(policy)
    rows = side_by_side(given.values, given.there, given.there.shape[1])
    meant = scores(policy, given)
    found = predict(path.read_bytes(), rows, path.name)
    there = np.repeat(given.there, meant.shape[1] // given.there.shape[1], axis=1)
    np.testing.assert_allclose(found * there, meant * there, atol=1e-5 * abs(meant).max())


def test_the_same_run_in_closed_loop_as_the_network(exported):
    policy, path = exported
    episodes = [(random_policies.scenario(flows=2), seed) for seed in (1, 2)]
    rows = [Player(one).play(episodes) for one in (policy, of_file(path))]
    for row in (*rows[0], *rows[1]):
        row.pop("decision_us")
    assert rows[0] == rows[1]


def test_the_file_says_what_it_takes_and_gives(exported):
    policy, path = exported
    content = path.read_bytes()
    said = {item.key: item.value for item in onnx.load_from_string(content).metadata_props}
    assert json.loads(said["features"]) == [f.name for f in columns(policy)]
    assert json.loads(said["policy"])["environment"] == policy.environment
    states = states_of(content, path.name)
    assert [s["given"] for s in states] == json.loads(said.get("state_in", "[]"))
    assert all(s["returned"] == f"{s['given']}_after" for s in states)
    assert b".py" not in content


def test_a_connections_policy_for_fewer_subflows_answers_the_same():
    policy = random_policies.policy("tcco")
    one = narrowed(policy, 1)
    alone = drawn(one)
    beside = Recorded(
        np.concatenate([alone.values, alone.values[::-1]], axis=1),
        np.concatenate([alone.there, np.zeros_like(alone.there)], axis=1),
    )
    np.testing.assert_allclose(scores(one, alone), scores(policy, beside)[:, :5], atol=1e-12)
    with pytest.raises(UserError, match="--set parts=3: tcco decides for 2"):
        narrowed(policy, 3)


def test_a_bundle_is_proved_by_all_that_was_recorded_and_can_be_played(tmp_path):
    policy = random_policies.policy("macc").only("macc-aqm")
    given = drawn(policy, 300)
    made = source(policy, "1", given)
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    for name, content in bundle_files(made, ["onnx"], Options(), "test").items():
        (bundle / name).write_bytes(content)
    report = verify(bundle)
    assert report["ok"], report
    assert report["targets"][0]["vectors"] == 300
    assert player(str(bundle)).policy.kinds == (1,)
    # An answer that was altered is found, wherever it stands.
    path = bundle / "macc_aqm_vectors.json"
    tree = json.loads(path.read_text())
    tree["probability"][250][0] += 1.0
    altered = replace(made, probability=np.array(tree["probability"]))
    for name, content in bundle_files(altered, ["onnx"], Options(), "test").items():
        (bundle / name).write_bytes(content)
    assert verify(bundle)["targets"][0]["mismatches"] == 1


def test_another_definition_of_what_is_observed_is_refused(exported, tmp_path):
    _, path = exported
    model = onnx.load_from_string(path.read_bytes())
    for item in model.metadata_props:
        if item.key == "policy":
            tree = json.loads(item.value)
            item.value = json.dumps({**tree, "observation_hash": "0" * 64})
    other = tmp_path / "other.onnx"
    other.write_bytes(model.SerializeToString())
    with pytest.raises(UserError, match="defined anew"):
        of_file(other)


def test_units_fit_32_bits_and_stay_the_same_quantity():
    for environment, kind in (("tcco", 0), ("nuwa", 0), ("macc", 0), ("macc", 1)):
        features, _ = observed(environment, kind)
        for one, other, by in zip(features, whole(features), divisors(features), strict=True):
            assert other.high * other.scale < 2**31
            assert other.high * by == one.high
