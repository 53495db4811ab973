"""ONNX: batches, states and int8, each checked by running the file."""

import json

import numpy as np
import onnxruntime
import pytest
from small_networks import policy, recurrent
from test_export_verify import rewrite

from data.errors import UserError
from export.bundle.manifest import bundle_files
from export.onnx.metadata import OPSET, properties
from export.onnx.options import batch_of, with_batch
from export.onnx.run import predict
from export.onnx.source import source_from_onnx
from export.params import Options, VerifyParams
from export.source import source_of
from export.verify import verify
from models.onnx_safe import parsed
from models.store import load, replace_directory
from pipelines.cli import main

QUICK = VerifyParams(random=100)
NETWORKS = {
    "policy": policy,
    "gru": lambda: recurrent("GRU"),
    "lstm": lambda: recurrent("LSTM"),
}


@pytest.fixture(params=NETWORKS)
def source(request, tmp_path):
    path = tmp_path / f"{request.param}.onnx"
    path.write_bytes(NETWORKS[request.param]())
    return source_from_onnx(path)


def exported(source, directory, **options):
    files = bundle_files(source, ["onnx"], Options(**options), "the tests")
    replace_directory(directory, files)
    stated = json.loads(files["manifest.json"])["targets"]["onnx"]
    return files[f"{source.identifier}.onnx"], stated, verify(directory, QUICK)


@pytest.mark.parametrize("batch", ["dynamic", 1, 5])
def test_batches(batch, source, tmp_path):
    content, stated, report = exported(source, tmp_path / "out", batch=batch)
    assert report["ok"], report
    assert stated["batch"] == report["targets"][0]["batch"] == batch
    assert stated["opset"] == {"ai.onnx": OPSET[""]}
    assert np.abs(predict(content, source.values, "x") - source.probability).max() < 1e-5
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    for rows in (1, 5, 7):
        given = {
            i.name: np.zeros([s if isinstance(s, int) else rows for s in i.shape], np.float32)
            for i in session.get_inputs()
        }
        given["features"] = source.values[:rows].astype(np.float32)
        if batch in ("dynamic", rows):
            assert len(session.run(None, given)[0]) == rows
        else:
            with pytest.raises(Exception, match="invalid dimensions"):
                session.run(None, given)


def test_trees_take_batches_too(zoo, table, tmp_path):
    source = source_of(load("forest", zoo))
    content, _, report = exported(source, tmp_path / "out", batch=3)
    assert report["ok"], report
    assert np.abs(predict(content, source.values, "x") - source.probability).max() < 1e-5


def test_a_fixed_batch_stays(tmp_path):
    path = tmp_path / "one.onnx"
    path.write_bytes(recurrent("LSTM", batch=2))
    assert batch_of(path.read_bytes(), "x") == 2
    source = source_from_onnx(path)
    assert exported(source, tmp_path / "out")[2]["ok"]
    with pytest.raises(UserError, match="exactly 2 rows"):
        with_batch(path.read_bytes(), 4, "x")
    with pytest.raises(UserError, match="1 or more rows"):
        with_batch(policy(), 0, "x")


def test_states_are_named_and_carried(tmp_path):
    content = recurrent("LSTM")
    said = properties(parsed(content, "x"))
    names_in, names_out = json.loads(said["state_in"]), json.loads(said["state_out"])
    assert names_in == ["h_in", "c_in"]
    assert json.loads(said["units"])[0] == "ms"
    assert json.loads(said["scaling"])[0] == 1000
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    values = np.random.default_rng(0).uniform(0, 20, (6, 4)).astype(np.float32)
    state = [np.zeros((1, 1, 8), np.float32)] * 2
    for row, meant in zip(values, predict(content, values, "x"), strict=True):
        given = {"features": row[None], **dict(zip(names_in, state, strict=True))}
        (found,), *state = session.run(["probability", *names_out], given)
        assert found == meant


def test_a_state_that_the_graph_lacks_fails(tmp_path):
    path = tmp_path / "gru.onnx"
    path.write_bytes(recurrent("GRU"))
    directory = tmp_path / "out"
    exported(source_from_onnx(path), directory)
    model = parsed(path.read_bytes(), "x")
    next(p for p in model.metadata_props if p.key == "state_out").value = '["elsewhere"]'
    (directory / "gru.onnx").write_bytes(model.SerializeToString())
    rewrite(directory)
    report = verify(directory, QUICK)
    assert not report["ok"]
    assert "elsewhere" in report["targets"][0]["error"]


def test_int8_states_its_loss_and_is_held_to_it(source, tmp_path):
    directory = tmp_path / "out"
    content, stated, report = exported(source, directory, int8=True)
    assert report["ok"], report
    loss = stated["int8"]
    assert report["targets"][0]["int8"] == loss
    assert 0 < loss["largest_error"] < loss["tolerance"]
    assert loss["bytes"] == len(content)
    assert {"stored", "random"} <= set(loss)
    assert report["targets"][0]["tolerance"] == loss["tolerance"]
    meant = np.abs(predict(content, source.values, "x") - source.probability).max()
    assert meant <= loss["largest_error"]

    def claim_more(manifest):
        manifest["targets"]["onnx"]["int8"]["tolerance"] = loss["largest_error"] / 100

    rewrite(directory, claim_more)
    assert verify(directory, QUICK)["targets"][0]["mismatches"] > 0


@pytest.mark.parametrize("name", ["tree", "forest", "linear"])
def test_int8_of_what_has_no_matrices_is_refused(name, zoo, tmp_path, capsys):
    options = ["-t", "onnx", "--set", "int8=true", "--out", str(tmp_path / "out")]
    assert main(["export", str(zoo / name), *options]) == 2
    assert "no matrices to quantise" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
