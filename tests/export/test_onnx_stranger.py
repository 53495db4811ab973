"""ONNX files of strangers: another model than the bundle says, endless ones, ones in disguise."""

import json
import shutil
import struct

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from test_export_verify import rewrite
from test_stranger import needs_sandbox

from data.errors import UserError
from export.bundle.certificate import CERTIFICATE
from export.bundle.manifest import bundle_files
from export.onnx.child import predict_apart
from export.params import Options, VerifyParams
from export.source import source_of
from export.toolchain.harness import CannotRun, Program
from export.verify import verify
from models.onnx_safe import open_session
from models.store import load, replace_directory, save
from pipelines.cli import main

QUICK = VerifyParams(random=200, timeout_s=600)


def constant(content, probability=0.9, nodes=(), constants=()):
    """The file with another graph: one probability for everything, and what else is given."""
    model = onnx.load_from_string(content)
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.initializer.extend(
        [
            numpy_helper.from_array(np.array([0.0], np.float32), "zero"),
            numpy_helper.from_array(np.array([1], np.int64), "axis"),
            numpy_helper.from_array(np.array([probability], np.float32), "start"),
            *constants,
        ]
    )
    last = nodes[-1].output[0] if nodes else "start"
    model.graph.node.extend(
        [
            *nodes,
            helper.make_node("Mul", ["features", "zero"], ["nothing"]),
            helper.make_node("ReduceSum", ["nothing", "axis"], ["sum"], keepdims=0),
            helper.make_node("Add", ["sum", last], ["probability"]),
        ]
    )
    return model.SerializeToString()


@pytest.fixture
def forged(bundles, tmp_path):
    """A tree's bundle whose ONNX file is another model."""
    directory = shutil.copytree(bundles / "tree", tmp_path / "tree")
    path = directory / "tree.onnx"
    path.write_bytes(constant(path.read_bytes()))
    rewrite(directory, lambda m: m.update(targets={"onnx": m["targets"]["onnx"]}))
    return directory


def not_certified(directory, **options):
    report = verify(directory, QUICK, **options)
    assert report["ok"] is False
    assert json.loads((directory / CERTIFICATE).read_text())["ok"] is False
    errors = [target.get("error", "") for target in report["targets"]]
    return " ".join([*report["problems"], *errors])


def probability_to_suit(manifest):
    for row in manifest["vectors"]:
        row["probability"] = float(np.float32(0.9))


def vectors_to_suit(path):
    tree = json.loads(path.read_text())
    tree["probability"] = [float(np.float32(0.9))] * len(tree["values"])
    path.write_text(json.dumps(tree))


def wide_float(manifest):
    manifest["scaling"]["float_error"] = 1.0


def wide_int8(manifest):
    manifest["targets"]["onnx"]["int8"] = {"tolerance": 1e9}
    manifest["options"]["int8"] = True


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (probability_to_suit, "it is another model"),
        (probability_to_suit, "probabilities decide otherwise"),
        (wide_float, "scaling.float_error"),
        (wide_int8, "int8.tolerance"),
    ],
)
def test_a_form_is_contradicted_by_no_onnx_file(edit, said, forged):
    rewrite(forged, edit)
    assert said in not_certified(forged)


@pytest.mark.parametrize("options", [{"batch": "dynamic"}, {"batch": 3}])
def test_options_free_no_file_from_the_models_hash(options, zoo, tmp_path):
    source = source_of(load("svm", zoo))
    directory = tmp_path / "svm"
    files = bundle_files(source, ["onnx"], Options(**options), "the tests")
    replace_directory(directory, files)
    report = verify(directory, QUICK)
    assert report["ok"], report
    path = directory / "svm.onnx"
    path.write_bytes(constant(path.read_bytes()))
    vectors_to_suit(directory / "svm_vectors.json")
    rewrite(directory, probability_to_suit)
    assert "isn't what its options make of the model" in not_certified(directory)
    (directory / "svm_trained.onnx").write_bytes(path.read_bytes())
    rewrite(directory)
    assert "not the model that the manifest describes" in not_certified(directory)


def test_a_trained_file_is_not_left_out(bundles, tmp_path):
    directory = shutil.copytree(bundles / "svm", tmp_path / "svm")
    path = directory / "svm.onnx"
    path.write_bytes(constant(path.read_bytes()))
    rewrite(directory, lambda m: (probability_to_suit(m), m["options"].update(batch="dynamic")))
    assert "not the model that the manifest describes" in not_certified(directory)


def in_disguise(content, tmp_path):
    """A file that is ONNX to protobuf and ONNX Runtime's own format to ONNX Runtime."""
    path = tmp_path / "hidden.ort"
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(constant(content), options, providers=["CPUExecutionProvider"])
    hidden = path.read_bytes()
    (root,) = struct.unpack("<I", hidden[:4])
    head = bytes([0x08, 0x0A, 0x12, 0x01]) + b"ORTM" + bytes(83)
    start = struct.unpack("<I", head[:4])[0] - root
    rest = start + len(hidden) - (len(head) + 6)
    size = bytes([(rest >> shift & 127) | (128 if shift < 21 else 0) for shift in (0, 7, 14, 21)])
    before = head + bytes([0xA2, 0x06]) + size
    return before + bytes(start - len(before)) + hidden + content


def test_files_in_disguise_are_refused(forged, bundles, tmp_path):
    good = (bundles / "tree" / "tree.onnx").read_bytes()
    path = forged / "tree.onnx"
    path.write_bytes(in_disguise(good, tmp_path))
    seen = onnx.load_from_string(path.read_bytes())
    assert [n.op_type for n in seen.graph.node] == [
        n.op_type for n in onnx.load_from_string(good).graph.node
    ]
    rewrite(forged, probability_to_suit)
    assert "own format" in not_certified(forged)


def scans():
    def end(name, kind, shape):
        return helper.make_tensor_value_info(name, kind, shape)

    number, byte = TensorProto.FLOAT, TensorProto.UINT8
    inner = helper.make_graph(
        [helper.make_node("Identity", ["s"], ["s2"])],
        "inner",
        [end("s", number, [1]), end("e", byte, [])],
        [end("s2", number, [1])],
    )
    scan = helper.make_node("Scan", ["start", "many"], ["after"], body=inner, num_scan_inputs=1)
    one = numpy_helper.from_array(np.array([1], np.uint8))
    many = helper.make_node("ConstantOfShape", ["length"], ["many"], value=one)
    length = numpy_helper.from_array(np.array([1000], np.int64), "length")
    return {"nodes": [many, scan], "constants": [length]}


def large(shape):
    nodes = [
        helper.make_node("ConstantOfShape", ["length"], ["many"]),
        helper.make_node("ReduceMax", ["many"], ["most"], keepdims=0),
    ]
    return {
        "nodes": nodes,
        "constants": [numpy_helper.from_array(np.array(shape, np.int64), "length")],
    }


@pytest.mark.parametrize(
    ("made", "said"),
    [(scans(), "operator Scan"), (large([1 << 20, 1 << 20]), "ConstantOfShape gives 1.1e+12")],
)
def test_endless_and_huge_files_are_refused_everywhere(made, said, forged, zoo, tmp_path):
    path = forged / "tree.onnx"
    path.write_bytes(constant(path.read_bytes(), **made))
    rewrite(forged)
    assert said in not_certified(forged)
    model = load("tree", zoo)
    files = {name: model.read(name) for name in model.meta.files}
    files["model.onnx"] = path.read_bytes()
    entry = save(tmp_path / "entry", model.meta.model_dump(exclude={"files", "checksum"}), files)
    with pytest.raises(UserError, match=said.replace("+", r"\+")):
        entry.predict(np.zeros((1, len(entry.meta.features))))


def test_an_entry_in_disguise_is_refused_too(zoo, tmp_path):
    model = load("tree", zoo)
    files = {name: model.read(name) for name in model.meta.files}
    files["model.onnx"] = in_disguise(files["model.onnx"], tmp_path)
    entry = save(tmp_path / "entry", model.meta.model_dump(exclude={"files", "checksum"}), files)
    with pytest.raises(UserError, match="own format"):
        entry.predict(np.zeros((1, len(entry.meta.features))))


def test_the_runtime_gets_what_was_judged(bundles):
    content = (bundles / "tree" / "tree.onnx").read_bytes()
    unknown = content + bytes([0xA2, 0x06, 4]) + b"more"
    assert open_session(unknown, "x").get_inputs()[0].name == "features"


def test_memory_of_a_file_is_bounded(bundles, tmp_path):
    """Sizes that are computed are seen by nobody before the file runs."""
    made = large([1 << 20])
    square = helper.make_node("Mul", ["length", "length"], ["computed"])
    made["nodes"][0].input[0] = "computed"
    content = constant(
        (bundles / "tree" / "tree.onnx").read_bytes(),
        nodes=[square, *made["nodes"]],
        constants=made["constants"],
    )
    with pytest.raises((UserError, CannotRun)):
        predict_apart(content, [np.zeros((1, 4))], "tree.onnx", tmp_path, 30)


def test_time_of_a_file_is_bounded(bundles, tmp_path):
    content = (bundles / "tree" / "tree.onnx").read_bytes()
    with pytest.raises(CannotRun, match="took longer"):
        predict_apart(content, [np.zeros((1, 4))], "tree.onnx", tmp_path, 0.001)


def test_the_child_runs_code_of_python_path_and_none_of_the_folder(bundles, tmp_path, monkeypatch):
    other = tmp_path / "other" / "export" / "onnx"
    other.mkdir(parents=True)
    for package in (other.parent, other):
        (package / "__init__.py").write_text("")
    (other / "child.py").write_text("raise SystemExit(3)")
    content = (bundles / "tree" / "tree.onnx").read_bytes()
    given = content, [np.zeros((1, 4))], "tree.onnx", tmp_path, 600
    monkeypatch.chdir(other.parents[1])
    assert len(predict_apart(*given)) == 1
    monkeypatch.setenv("PYTHONPATH", str(other.parents[1]))
    with pytest.raises(CannotRun, match="ended with 3"):
        predict_apart(*given)


def none_stored(manifest):
    manifest["vectors"] = []


def two_probabilities(manifest):
    for row in manifest["vectors"]:
        row["probability"] = [0.1, 0.9]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (none_stored, "the onnx target needs one or more"),
        (two_probabilities, "one probability each"),
    ],
)
def test_odd_vectors_leave_no_earlier_certificate(edit, said, bundles, tmp_path, capsys):
    directory = shutil.copytree(bundles / "tree", tmp_path / "tree")
    rewrite(directory, lambda m: m.update(targets={"onnx": m["targets"]["onnx"]}))
    assert verify(directory, QUICK)["ok"]
    rewrite(directory, edit)
    assert main(["verify", str(directory), "--random", "10"]) == 1
    assert "Traceback" not in capsys.readouterr().err
    assert said in not_certified(directory)


def test_what_nobody_thought_of_leaves_no_earlier_certificate(bundles, tmp_path, monkeypatch):
    directory = shutil.copytree(bundles / "tree", tmp_path / "tree")
    rewrite(directory, lambda m: m.update(targets={"onnx": m["targets"]["onnx"]}))
    assert verify(directory, QUICK)["ok"]

    def fail(*given):
        raise RuntimeError("unthought of")

    monkeypatch.setattr("export.verify.make_vectors", fail)
    assert "RuntimeError unthought of" in not_certified(directory)


@needs_sandbox
@pytest.mark.parametrize(
    "said",
    ["null", '{"answers": 5, "scaled": []}', "[" * 200_000, '{"answers": [[1e400, 0]]}'],
    ids=["null", "no rows", "deep", "infinite"],
)
def test_what_foreign_code_answers_ends_in_no_traceback(said, bundles, tmp_path):
    directory = shutil.copytree(bundles / "tree", tmp_path / "tree")
    text = f"import os, sys\nsys.stdout.write({said!r})\nsys.stdout.flush()\nos._exit(0)\n"
    (directory / "tree.py").write_text(text)
    rewrite(directory, lambda m: m.update(targets={"python": m["targets"]["python"]}))
    assert "its answers can't be read" in not_certified(directory, run_foreign=True)


@pytest.mark.parametrize("time", [b"nan", b"-1", b"inf"])
def test_times_are_times(time, monkeypatch, tmp_path):
    done = type("Done", (), {"stderr": time})
    monkeypatch.setattr(Program, "_driver", lambda *given: done)
    with pytest.raises(CannotRun, match="ns per decision"):
        Program(tmp_path, "cc", [], None, None).ns_per_decision(np.zeros((1, 1), np.int64), 1)
