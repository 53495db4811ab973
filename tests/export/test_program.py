"""Any network as integer steps: near the floats, and the same in C and in the kernel."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_models import FEATURES

from data.errors import UserError
from export.bundle.manifest import bundle_files
from export.document import dumps, loads
from export.fixed import to_integers, to_values
from export.lower.graph import lower_graph
from export.lower.prepare import NotLowerable
from export.onnx.metadata import metadata
from export.onnx.run import predict
from export.onnx.source import source_from_bytes
from export.onnx.torch_file import Ends, convert, written
from export.params import Options, VerifyParams
from export.program import exponents
from export.program.made import with_program
from export.targets import fitting
from export.verify import verify
from models.store import replace_directory

pytestmark = pytest.mark.xdist_group("dynamo")
LABELS = ("NSB", "SB")


class Convolved(torch.nn.Module):
    """Everything that a classifier of series has: moves, extremes, norms, a logarithm, a root."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.one = torch.nn.Conv1d(2, 4, 3, padding=2, stride=2)
        self.two = torch.nn.Conv1d(4, 4, 3, padding=2, dilation=2)
        self.norm = torch.nn.GroupNorm(2, 4)
        self.last = torch.nn.Linear(9, 1)

    def forward(self, x):
        low = torch.tensor([f.low for f in FEATURES])
        high = torch.tensor([f.high for f in FEATURES])
        x = (x - low) / (high - low)
        rest = x - torch.minimum(x.amin(dim=1, keepdim=True), x[:, 1:2])
        shares = torch.log1p((rest / rest.mean(dim=1, keepdim=True).clamp(min=0.01)).clamp(max=8.0))
        spread = (rest.square().mean(dim=1, keepdim=True) + 1e-3).sqrt()
        pair = torch.stack([shares, rest / spread], dim=1)
        first = torch.relu(self.one(pair))
        found = first + torch.relu(self.norm(self.two(first)))
        ends = torch.cat([found.mean(2), (found - first).abs().amax(2), spread], dim=1)
        return self.last(ends)[:, 0]


class Chosen(torch.nn.Module):
    """Remembers what was before, looks a row of a table up, and weighs by a softmax."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.table = torch.nn.Parameter(torch.randn(4, 3))
        self.layer = torch.nn.Linear(len(FEATURES) + 3, 3)

    def forward(self, features, *given):
        (before,) = given
        low = torch.tensor([f.low for f in FEATURES])
        high = torch.tensor([f.high for f in FEATURES])
        x = (features - low) / (high - low)
        count = before[:, 3].clamp(max=3.0)
        held = 0.5 * before[:, :3] + self.table.index_select(0, count.to(torch.int64))
        flag = (x[:, :1] > 0.5).to(x.dtype)
        scores = torch.tanh(self.layer(torch.cat([x, held], dim=1))) * flag + 2.0 * held.softmax(1)
        return scores, torch.cat([held, count[:, None] + 1.0], dim=1)


@pytest.fixture(scope="module")
def convolved():
    content = convert(Convolved().eval(), FEATURES, "net", LABELS, {})
    return source_from_bytes(content, "net", "net.onnx")


@pytest.fixture(scope="module")
def chosen():
    said = metadata(FEATURES, ("a", "b", "c"), {}, {"before": "after"})
    said |= {"output": json.dumps({"kind": "action"})}
    example = (torch.rand(2, len(FEATURES)), torch.zeros(2, 4))
    ends = Ends(("features", "before"), ("scores", "after"))
    content = written(Chosen().eval(), example, ends, "net", said)
    return source_from_bytes(content, "net", "net.onnx")


@pytest.mark.parametrize("name", ["convolved", "chosen"])
def test_integers_keep_to_the_floats(request, name):
    source = request.getfixturevalue(name)
    assert source.form is None
    form = with_program(source).form
    x = to_integers(source.values, FEATURES)
    found = form.evaluate(x).scores / 2.0**form.places
    meant = predict(source.onnx, to_values(x, FEATURES), "net")
    if name == "convolved":
        found = 1 / (1 + np.exp(-found))
    assert np.abs(found - meant).max() < 2e-4 * max(1.0, np.abs(meant).max())
    assert np.ptp(meant, axis=0).min() > 1e-2


@pytest.mark.parametrize("name", ["convolved", "chosen"])
def test_c_the_kernel_and_onnx_answer_as_the_program(request, name, tmp_path):
    source = request.getfixturevalue(name)
    assert {"c", "bpf", "json", "onnx"} <= set(fitting(source))
    files = bundle_files(source, ["c", "bpf", "json", "onnx"], Options(), "the tests")
    replace_directory(tmp_path / "out", files)
    report = verify(tmp_path / "out", VerifyParams(random=200))
    assert report["ok"], report
    found = {target["target"]: target for target in report["targets"]}
    assert found["c"]["vectors"] > 1000
    assert found["c"]["sanitized"]["findings"] == found["c"]["mismatches"] == 0
    assert found["onnx"]["states"] == (name == "chosen")
    assert report["unproved"] in ([], ["bpf"])


def test_a_document_is_read_back_as_it_was(chosen):
    text = dumps(with_program(chosen).form)
    assert dumps(loads(text, "x")) == text


def _of(document, kind):
    return next(step for step in document["steps"] if step["kind"] == kind)


def _layer(document):
    return _of(document, "layer")


ALTERED = {
    "leaves the memory": (lambda d: d["steps"][0].update(to=d["size"]), "steps[0].to"),
    "reads outside": (lambda d: d["steps"][0]["numbers"].update(a=d["size"]), "steps[0].a"),
    "overflows": (
        lambda d: _layer(d)["tables"].update(
            weights=[2**61 for _ in _layer(d)["tables"]["weights"]]
        ),
        "overflow 64 bits",
    ),
    "writes over what it reads": (
        lambda d: _layer(d).update(to=_layer(d)["numbers"]["a"]),
        "overlaps",
    ),
    "an unknown kind": (lambda d: d["steps"][0].update(kind="jump"), "steps[0].kind"),
    "a short table": (lambda d: _layer(d)["tables"]["biases"].pop(), "biases"),
    "an answer nobody wrote": (
        lambda d: d.update(size=d["size"] + 3, answer=d["size"]),
        "nothing is written there",
    ),
    "a state nobody wrote": (
        lambda d: d.update(
            size=d["size"] + 4, states=[{**d["states"][0], "source": d["size"], "n": 4}]
        ),
        "states[0]",
    ),
    "a place outside": (
        lambda d: _of(d, "take")["tables"]["map"].__setitem__(0, -(2**32) - 1),
        "map",
    ),
    "rows beyond their bits": (
        lambda d: _of(d, "rows")["tables"]["table"].__setitem__(0, 2**61),
        "a row's number beyond the bits",
    ),
    "a state where the observation is": (lambda d: d["states"][0].update(to=0), "states[0].to"),
    "a curve of too many bits": (lambda d: d["curve"].update(q=30), "curve"),
    "groups that don't make the results": (
        lambda d: (
            _layer(d)["numbers"].update(groups=2, inputs=1, outputs=1)
            or _layer(d)["tables"].update(weights=[1], biases=[1])
        ),
        "aren't",
    ),
    "an operand longer than the memory": (
        lambda d: _layer(d)["numbers"].update(groups=60_000),
        "numbers aren't in",
    ),
    "a missing number": (lambda d: _layer(d)["numbers"].pop("relu"), "numbers"),
}


@pytest.mark.parametrize("case", ALTERED)
def test_a_document_that_could_go_wrong_is_refused(chosen, case):
    alter, said = ALTERED[case]
    document = json.loads(dumps(with_program(chosen).form))
    alter(document)
    with pytest.raises(UserError) as refused:
        loads(json.dumps(document), "model.json")
    assert said in str(refused.value)


def test_a_document_that_would_take_too_long_is_refused(chosen, monkeypatch):
    text = dumps(with_program(chosen).form)
    monkeypatch.setattr("export.forms.program.MAX_WORK", 20)
    with pytest.raises(UserError, match="numbers are read, over 20"):
        loads(text, "model.json")


def test_what_has_no_integer_form_is_named(chosen):
    class Sine(torch.nn.Module):
        def forward(self, x):
            return torch.sin(x).sum(dim=1)

    content = convert(Sine(), FEATURES, "net", LABELS, {})
    with pytest.raises(NotLowerable, match="Sin has no integer form"):
        lower_graph(content, tuple(FEATURES), LABELS, 0.5, chosen.values)
    source = source_from_bytes(content, "net", "net.onnx")
    with pytest.raises(
        UserError, match=r"can't carry 'net'.*Sin has no integer form.*try lut, onnx"
    ):
        bundle_files(source, ["c"], Options(), "the tests")


def test_logarithm_exponential_and_root():
    rng = np.random.default_rng(1)
    x = np.unique(np.floor(2.0 ** rng.uniform(0, 61.9, 20_000)).astype(np.int64))
    found = exponents.log(x, exponents.log_table()) / 2.0**exponents.PLACES
    assert np.abs(found - np.log(x.astype(np.float64))).max() < 3e-6
    assert (exponents.log(np.array([0, -5]), exponents.log_table()) == 0).all()
    t = rng.uniform(-18, 0, 20_000)
    given = np.floor(t * 2**exponents.PLACES).astype(np.int64)
    found = exponents.exp(given, exponents.exp_table()) / 2.0**26
    assert np.abs(found - np.exp(given / 2.0**exponents.PLACES)).max() < 2e-6
    assert exponents.exp(np.array([7 << 24]), exponents.exp_table()) == 1 << 26
    near = np.arange(2, 2**31 - 1, 99_991)
    squares = near * near
    for offset, meant in ((-1, near - 1), (0, near), (1, near)):
        assert (exponents.root(squares + offset) == meant).all()


def _file(nodes, outputs, constants, inputs=(), said=None):
    """ONNX of a graph written by hand: ``features`` and states in, what is named out."""
    from onnx import TensorProto, helper, numpy_helper

    def end(name, width):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, *width])

    graph = helper.make_graph(
        nodes,
        "net",
        [end("features", [len(FEATURES)]), *(end(name, [3]) for name in inputs)],
        [end(name, width) for name, width in outputs.items()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    made = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 18)])
    helper.set_model_props(made, said or {})
    return made.SerializeToString()


def _node(kind, given, made, **attributes):
    from onnx import helper

    return helper.make_node(kind, given.split(" "), [made], **attributes)


SCORES = {"scores": [3]}
WEIGHTS = np.linspace(-1, 1, 3 * len(FEATURES)).reshape(len(FEATURES), 3).astype(np.float32)
HAND = {
    "a cast towards zero": (
        [_node("MatMul", "features w", "y"), _node("Cast", "y", "i", to=7),
         _node("Cast", "i", "scores", to=1)],
        {},
    ),
    "a cast to bool": (
        [_node("MatMul", "features w", "y"), _node("Relu", "y", "r"),
         _node("Cast", "r", "b", to=9), _node("Cast", "b", "f", to=1),
         _node("Add", "f r", "scores")],
        {},
    ),
    "greater than all": (
        [_node("MatMul", "features w", "y"), _node("Greater", "y far", "g"),
         _node("Cast", "g", "f", to=1), _node("Add", "f y", "scores")],
        {"far": np.float32(1e30)},
    ),
    "a softmax": (
        [_node("MatMul", "features w", "y"), _node("Mul", "y small", "s"),
         _node("Softmax", "s", "scores", axis=-1)],
        {"small": np.float32(1e-3)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HAND)
def test_operators_mean_what_they_mean_in_onnx(case, chosen):
    nodes, constants = HAND[case]
    content = _file(nodes, SCORES, {"w": WEIGHTS, **constants})
    x = to_integers(chosen.values, FEATURES)
    rows = to_values(x, FEATURES)
    form = lower_graph(content, tuple(FEATURES), ("a", "b", "c"), 0.5, rows)
    found = form.evaluate(x).scores / 2.0**form.places
    meant = predict(content, rows, "net")
    # Where a sum is whole but for rounding, a cast may go either way.
    off = np.abs(found - meant) > 1e-4 * max(1.0, np.abs(meant).max())
    assert off.mean() < 0.01
    assert np.ptp(meant, axis=0).max() > 0


def test_a_score_that_is_remembered_rectified_is_not_rectified_itself(chosen):
    nodes = [_node("MatMul", "features w", "y"), _node("Add", "y before", "scores"),
             _node("Relu", "scores", "after")]  # fmt: skip
    said = {"state_in": '["before"]', "state_out": '["after"]'}
    ends = {"scores": [3], "after": [3]}
    content = _file(nodes, ends, {"w": WEIGHTS}, ("before",), said)
    rows = chosen.values[:200]
    x = to_integers(rows, FEATURES)
    form = lower_graph(content, tuple(FEATURES), ("a", "b", "c"), 0.5, rows)
    meant = predict(content, to_values(x, FEATURES), "net")
    found = form.evaluate(x).scores / 2.0**form.places
    assert (meant < 0).any()
    assert np.abs(found - meant).max() < 1e-4 * np.abs(meant).max()


def test_a_probability_may_be_moved_after_its_sigmoid(chosen):
    nodes = [_node("MatMul", "features w", "y"), _node("Sigmoid", "y", "s"),
             _node("Squeeze", "s one", "probability")]  # fmt: skip
    weights = 1e-3 * WEIGHTS[:, :1]
    content = _file(nodes, {"probability": []}, {"w": weights, "one": np.array([1])})
    x = to_integers(chosen.values, FEATURES)
    form = lower_graph(content, tuple(FEATURES), LABELS, 0.5, chosen.values)
    meant = predict(content, to_values(x, FEATURES), "net")
    sure = np.abs(meant - 0.5) > 1e-3
    assert (form.evaluate(x).classes == (meant > 0.5))[sure].all()
    assert 0 < (meant > 0.5).mean() < 1


REFUSED = {
    "an exponential": ([_node("Exp", "y", "scores")], {}, "Exp of numbers that may be above 0"),
    "a filling of ones": (
        [_node("Pad", "y ends one", "p"), _node("Slice", "p from to axis", "scores")],
        {"ends": np.array([0, 1, 0, 0]), "one": np.float32(1), "from": np.array([0]),
         "to": np.array([3]), "axis": np.array([1])},
        "Pad with another number",
    ),
    "a constant beside": (
        [_node("Concat", "y held", "c", axis=1), _node("Slice", "c from to axis", "scores")],
        {"held": np.ones((1, 3), np.float32), "from": np.array([0]), "to": np.array([3]),
         "axis": np.array([1])},
        "held is a constant",
    ),
    "an end that is computed": (
        [_node("ReduceMax", "y", "m", keepdims=0), _node("Clip", "y  m", "scores")], {}, "computed"
    ),
    "an infinite mask": (
        [_node("Add", "y mask", "scores")], {"mask": np.array([0, -np.inf, 0], np.float32)},
        "infinite",
    ),
    "a cast to bytes": (
        [_node("Cast", "y", "i", to=3), _node("Cast", "i", "scores", to=1)], {}, "Cast to INT8"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_be_answered_wrongly_is_refused(case, chosen):
    nodes, constants, said = REFUSED[case]
    first = _node("MatMul", "features w", "y")
    content = _file([first, *nodes], SCORES, {"w": WEIGHTS, **constants})
    with pytest.raises(NotLowerable, match=said):
        lower_graph(content, tuple(FEATURES), ("a", "b", "c"), 0.5, chosen.values)


def test_what_has_no_program_is_offered_what_onnx_alone_offers(chosen):
    content = _file(
        [_node("MatMul", "features w", "y"), _node("Exp", "y", "scores")], SCORES, {"w": WEIGHTS}
    )
    assert not {"c", "bpf", "json"} & set(fitting(replace(chosen, onnx=content)))
