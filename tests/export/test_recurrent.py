"""Recurrent networks: integers keep to the floats over long sequences, C to the integers."""

import copy
import json
import shutil

import numpy as np
import onnx
import pytest
from scipy.special import expit
from small_networks import recurrent

from data.errors import UserError
from export.bundle.manifest import bundle_files
from export.document import dumps, loads
from export.fixed import INT32_MAX, INT32_MIN, to_integers, to_values
from export.lower import NotLowerable
from export.lower.network import lower_network
from export.onnx.run import predict
from export.onnx.source import source_from_onnx
from export.params import Options, VerifyParams
from export.targets import emit
from export.toolchain.harness import SANITIZER_FLAGS, build
from export.verify import verify
from models.store import replace_directory

CELLS = {
    "lstm": {"kind": "LSTM"},
    "gru": {"kind": "GRU"},
    "gru-after": {"kind": "GRU", "reset_after": 1},
}
STEPS = 1000
needs_compiler = pytest.mark.skipif(
    not (shutil.which("gcc") or shutil.which("clang")), reason="no C compiler on this machine"
)


@pytest.fixture(params=CELLS)
def source(request, tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(recurrent(**CELLS[request.param]))
    return source_from_onnx(path)


def walk(features, steps=STEPS):
    """A slow walk through the ranges, as connections take."""
    rng = np.random.default_rng(4)
    low = np.array([f.low for f in features])
    high = np.array([f.high for f in features])
    paths = np.cumsum(rng.normal(0, 0.05, (steps, len(low))), axis=0)
    return to_integers(low + (high - low) * (0.5 + 0.5 * np.sin(paths)), features)


def test_integers_keep_to_the_floats_over_a_long_sequence(source):
    x = walk(source.features)
    found = source.form.evaluate(x)
    meant = predict(source.onnx, to_values(x, source.features), "net")
    error = np.abs(expit(found.scores / 2.0**source.form.places) - meant)
    assert error.max() < 2e-4
    assert error[-100:].max() < 3 * error[:100].max() + 1e-5, "it drifts"
    assert 0.05 < found.classes.mean() < 0.95


def test_earlier_observations_matter_and_the_start_is_always_the_same(source):
    x = walk(source.features, 50)
    changed = x.copy()
    changed[0] = -changed[0]
    assert source.form.evaluate(x).scores[5] != source.form.evaluate(changed).scores[5]
    assert (source.form.evaluate(x).scores == source.form.evaluate(x).scores).all()


def test_a_saturated_state_stays_within_32_bits(source):
    x = np.repeat([[INT32_MAX] * 4, [INT32_MIN] * 4], 300, axis=0)
    form = source.form
    given = form.inputs.answer(x, None)
    h, c = np.zeros((2, 1, form.units), dtype=np.int64)
    step = form._gru if form.kind == "gru" else form._lstm
    for row in range(len(x)):
        h, c = step(given[row : row + 1], h, c)
        assert np.abs(h).max() <= 1 << form.curve.q
        assert np.abs(c).max() <= INT32_MAX


def test_round_trip(source):
    assert loads(dumps(source.form), "x") == source.form


@needs_compiler
def test_bundle_verifies_and_states_its_drift(source, tmp_path):
    files = bundle_files(source, ["mlp-c", "json", "onnx"], Options(), "the tests")
    replace_directory(tmp_path / "out", files)
    report = verify(tmp_path / "out", VerifyParams(random=300))
    assert report["ok"], report
    found = {t["target"]: t for t in report["targets"]}
    assert found["mlp-c"]["vectors"] > 1000
    assert found["mlp-c"]["sanitized"]["findings"] == 0
    assert found["mlp-c"]["drift"]["steps"] == STEPS
    assert 0 < found["mlp-c"]["drift"]["largest"] < 2e-4
    assert found["onnx"]["states"] == (2 if source.form.kind == "lstm" else 1)


@needs_compiler
def test_reset_starts_a_new_sequence_and_states_are_apart(source, tmp_path):
    (tmp_path / "net.h").write_bytes(emit("mlp-c", source, Options())["net.h"])
    unit = """#include "model.h"
int model_answer(const int32_t *f, int64_t *scores);
int model_classify(const int32_t *f);
static struct net_state one, other;
static int turn;
int model_answer(const int32_t *f, int64_t *scores)
{
	if (turn++ % 2)
		return net_step(&one, f, scores);
	net_reset(&other);
	return net_step(&other, f, scores);
}
int model_classify(const int32_t *f) { int64_t s[1]; return model_answer(f, s); }
"""
    program = build(tmp_path / "net.h", "net", tmp_path, 60, flags=SANITIZER_FLAGS, unit=unit)
    x = walk(source.features, 100)
    found = program.run(x, 60).scores
    fresh = [int(source.form.evaluate(row[None]).scores[0]) for row in x[::2]]
    assert found[::2].tolist() == fresh
    assert (found[1::2] == source.form.evaluate(x[1::2]).scores).all()


def edited(document, path, value):
    changed = copy.deepcopy(document)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return json.dumps(changed)


MALFORMED = {
    "another kind": (("kind",), "tree"),
    "the other cell": (("kind",), "gru"),
    "a row too few": (("hidden", "biases"), [0]),
    "an activation": (("inputs", "activation"), "tanh"),
    "a table of other places": (("curve", "places"), 12),
    "a table beyond one": (("curve", "entries"), [0, 1 << 17]),
    "reset_after as a number": (("reset_after",), 1),
    "an lstm that resets": (("reset_after",), True),
    "an overflow": (("inputs", "weights", 0), [2**31 - 1] * 4),
    "no head": (("head",), []),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_cells_are_refused(name, features):
    form = lower_network(recurrent("LSTM"), features, ("NSB", "SB"))
    document = json.loads(dumps(form))
    assert loads(json.dumps(document), "x") == form
    with pytest.raises(UserError, match="could overflow" if name == "an overflow" else "x: "):
        loads(edited(document, *MALFORMED[name]), "x")


def _with(**settings):
    model = onnx.load_from_string(recurrent("GRU"))
    node = next(n for n in model.graph.node if n.op_type == "GRU")
    node.attribute.extend(onnx.helper.make_attribute(k, v) for k, v in settings.items())
    return model.SerializeToString()


@pytest.mark.parametrize(
    "settings", [{"clip": 3.0}, {"activations": ["Sigmoid", "Relu"]}, {"direction": "reverse"}]
)
def test_unusual_cells_have_no_form(settings, features):
    with pytest.raises(NotLowerable, match="usual"):
        lower_network(_with(**settings), features, ("NSB", "SB"))
