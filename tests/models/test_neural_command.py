"""`cczoo train sbd neural`, from a table of series to a zoo entry that verifies."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import series

from models import store
from pipelines import params
from pipelines.cli import main
from pipelines.sbd.neural_job import NeuralJob, measured

# One worker imports Lightning and PyTorch's exporter, which takes seconds.
pytestmark = pytest.mark.xdist_group("dynamo")

SETTINGS = """
models:
  sbd:
    workers: 0
    bootstrap: 100
    protocol: {splits: 1, holdout: 0.2}
    neural: {width: 4, hidden: 4, dilations: [1], epochs: 2, batch: 16, splits: 1, repeats: 2}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("neural")
    series.table(40).write_parquet(folder / "series.parquet")
    (folder / "params.yaml").write_text(SETTINGS)
    return folder


def train(folder: Path, step: str, *more: str) -> int:
    common = ["--features", f"{folder}/series.parquet", "--params", f"{folder}/params.yaml"]
    return main(["train", "sbd", "neural", step, *common, "--out", f"{folder}/out", *more])


def job_of(folder: Path) -> NeuralJob:
    found = params.load(folder / "params.yaml").models
    return NeuralJob(folder / "series.parquet", folder / "out", found.sbd, found.sbd.neural)


@pytest.fixture(scope="module")
def entry(folder: Path) -> Path:
    """A network beside results of another table, or from before tables were noted in them."""
    assert train(folder, "protocol") == 0
    path = folder / "out" / "neural.json"
    kept = path.read_text()
    path.write_text(json.dumps({**json.loads(kept), "data_hash": "0" * 64}))
    assert train(folder, "fit") == 0
    path.write_text(kept)
    return folder / "out" / "smartsbd-neural"


def test_protocol_compares_on_the_same_windows_and_resumes(folder, capsys):
    assert train(folder, "protocol", "--json") == 0
    found = json.loads(capsys.readouterr().out)["protocol"]
    protocols = {row["protocol"]: row for row in found["protocols"]}
    assert protocols.keys() == {"within", "unseen", "transfer", "mixed", "unseen-varied", "family"}
    assert protocols["unseen"]["seeds"] == 2
    assert protocols["family"]["splits"] == 3
    assert protocols["family"]["by"].keys() == {"wired", "wifi", "lte"}
    for row in found["protocols"]:
        assert 0 <= row["window"]["low"] <= row["window"]["mean"] <= row["window"]["high"] <= 1
    parts = sorted((folder / "out" / "parts").iterdir())
    before = [path.stat().st_mtime_ns for path in parts]
    parts[0].unlink()
    assert train(folder, "protocol", "--json") == 0
    again = json.loads(capsys.readouterr().out)["protocol"]
    assert again == found
    after = [path.stat().st_mtime_ns for path in parts]
    assert after[1:] == before[1:]
    assert after[0] > before[0]


def test_comparison_is_paired():
    from models.sbd.neural.comparison import compare
    from models.sbd.params import Params
    from models.sbd.windows import windows

    table = windows(series.table(20))
    rows = np.flatnonzero(table.column("dataset") == "random")
    right = table.y[rows].astype(float)
    wrong = right.copy()
    wrong[::4] = 1 - wrong[::4]
    key = {"protocol": "family", "split": "all"}
    mine = pl.concat(
        pl.DataFrame({"row": rows, "probability": p}).with_columns(
            pl.lit("neural").alias("model"),
            pl.lit(s).alias("seed"),
            **{k: pl.lit(v) for k, v in key.items()},
        )
        for s, p in enumerate((right, wrong))
    )
    theirs = pl.DataFrame({"row": rows, "probability": wrong}).with_columns(
        pl.lit("other").alias("model"), **{k: pl.lit(v) for k, v in key.items()}
    )
    (row,) = compare(table, mine, theirs, Params(bootstrap=200))
    errors = float((wrong != right).mean())
    assert row["window"]["mean"] == pytest.approx(1 - errors / 2)
    other = row["against"]["other"]
    assert other["window"]["mean"] == pytest.approx(1 - errors)
    assert other["window_difference"]["mean"] == pytest.approx(errors / 2)
    assert other["window_difference"]["low"] > 0
    with pytest.raises(ValueError, match="other windows"):
        compare(table, mine, theirs.slice(1), Params(bootstrap=200))


def test_entry_is_whole_and_verifies(entry, capsys):
    model = store.load(entry)
    assert model.meta.kind == "neural"
    assert {"model.onnx", "card.md", "vectors.json", "test.json", "metrics.json"} <= set(
        model.meta.files
    )
    metrics = model.read_json("metrics.json")
    assert metrics["training"]["onnx"]["float_error"] < 1e-5
    assert metrics["training"]["onnx"]["int8_disagreement_share"] < 0.2
    assert b"features series" in model.read("card.md")
    assert main(["zoo", "verify", "smartsbd-neural", "--zoo", str(entry.parent), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)["models"][0]
    assert report["mismatches"] == 0
    assert report["evaluation"]["model.onnx"]["windows"] > 0
    assert (entry.parent / "curve.svg").read_text().startswith("<svg")


def test_a_card_tells_figures_of_its_own_network_alone(folder, entry, tmp_path):
    assert "not measured for this network" in store.load(entry).read("card.md").decode()
    assert store.load(entry).read_json("metrics.json")["headline"] == {}
    path = folder / "out" / "neural.json"
    job = job_of(folder)
    kept = measured(path, job)
    assert kept.protocols
    shutil.copytree(folder / "out", tmp_path / "out")
    assert train(folder, "fit", "--out", f"{tmp_path}/out") == 0
    card = store.load(tmp_path / "out" / entry.name).read("card.md").decode()
    assert "left out of training" in card
    assert "not measured" not in card
    wider = job.neural.model_copy(update={"hidden": 5})
    assert measured(path, dataclasses.replace(job, neural=wider)) is None
    more = job.neural.model_copy(update={"splits": 9, "repeats": 9})
    assert measured(path, dataclasses.replace(job, neural=more)) == kept
    series.table(40, seed=1).write_parquet(tmp_path / "other.parquet")
    assert measured(path, dataclasses.replace(job, features=tmp_path / "other.parquet")) is None


def test_onnx_and_integer_steps_carry_it_and_others_say_why_not(entry, folder, capsys):
    bundle = str(folder / "bundle")
    assert main(["zoo", "list", "--zoo", str(entry.parent), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["name"], row["kind"], row["targets"]) == (
        "smartsbd-neural", "neural", ["bpf", "c", "json", "onnx"]
    )  # fmt: skip
    assert main(["export", str(entry), "-t", "onnx", "--out", bundle]) == 0
    assert main(["verify", bundle, "--json"]) == 0
    capsys.readouterr()
    assert main(["export", str(entry), "-t", "table", "--out", bundle]) == 2
    assert "no integer form" in capsys.readouterr().err


def test_onnx_has_no_paths_of_this_machine(entry):
    content = (entry / "model.onnx").read_bytes()
    assert b"site-packages" not in content
    assert str(Path.cwd()).encode() not in content


def test_evaluate_takes_the_table_of_series(entry, folder, capsys):
    features = ["--features", f"{folder}/series.parquet"]
    assert main(["evaluate", "sbd", "--model", str(entry), *features, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["windows"] == 160


def test_a_table_without_series_is_told(folder, tmp_path, capsys):
    pl.read_parquet(folder / "series.parquet").drop("wifi_RTT_000").write_parquet(
        tmp_path / "other.parquet"
    )
    command = ["train", "sbd", "neural", "fit", "--out", str(tmp_path / "out")]
    assert main([*command, "--features", str(tmp_path / "other.parquet")]) == 2
    assert "cczoo features series" in capsys.readouterr().err
