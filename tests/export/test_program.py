"""Any network as integer steps: near the floats, and the same in C and in the kernel."""

import json

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


def _layer(document):
    return next(step for step in document["steps"] if step["kind"] == "layer")


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
