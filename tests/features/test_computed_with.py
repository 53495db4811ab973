"""Settings of windows are a part of a model: from the table through training to the C and back."""

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.tree import DecisionTreeClassifier

from data.errors import UserError
from data.store import iter_connections
from export.bundle.manifest import MANIFEST, _sha256, read_bundle
from export.document import canonical
from export.entry import write_entry
from export.feature_code import sbd as generator
from export.feature_code.agreement import agreement
from export.params import VerifyParams
from features.params import SbdParams
from features.smartsbd import FEATURES
from models import store
from models.meta import Meta, checksum_of
from models.sbd import computed_with
from models.sbd.params import Params
from models.sbd.train.job import Job
from models.sbd.windows import windows
from pipelines import cli

FACTOR = "#define SBD_WINDOW_FACTOR {}U"
RTT = [feature for feature in FEATURES if "Thpt" not in feature.name]


@pytest.fixture(scope="module")
def tables(events_dir, tmp_path_factory):
    """Factor -> table of windows of so many min RTTs."""
    folder = tmp_path_factory.mktemp("tables")
    found = {}
    for factor in (25, 50):
        (folder / "p.yaml").write_text(f"features: {{sbd: {{window_factor: {factor}}}}}")
        found[factor] = folder / f"{factor}.parquet"
        words = ["features", "sbd", "--events", events_dir, "--out", found[factor], "--jobs", "1"]
        assert cli.main([*map(str, words), "--params", str(folder / "p.yaml")]) == 0
    return found


@pytest.fixture(scope="module")
def entry(tables, tmp_path_factory):
    """A tree trained on the windows of 25."""
    job = Job(tables[25], tmp_path_factory.mktemp("out"), Params())
    names = [feature.name for feature in RTT]
    tree = DecisionTreeClassifier(max_depth=6, random_state=0)
    tree.fit(job.table.matrix(names), job.table.y)
    meta = {"family": "smartsbd", "feature_settings": job.settings}
    return write_entry(
        "short", tree, RTT, meta, job.table.matrix(names), {}, "# short\n", zoo=job.out
    )


@pytest.fixture
def bundle(entry, tmp_path):
    out = tmp_path / "bundle"
    assert cli.main(["export", str(entry), "-t", "c", "-t", "onnx", "--out", str(out)]) == 0
    return out


def refused(capsys, *words):
    assert cli.main([str(word) for word in words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_the_model_keeps_its_tables_settings(entry):
    meta = store.load(entry).meta
    assert meta.feature_settings == SbdParams(window_factor=25).model_dump()
    assert meta.schema_hash != store.load("smartsbd-dt").meta.schema_hash


def test_the_c_is_for_the_models_windows(bundle, events_dir, tables, tmp_path):
    assert FACTOR.format(25) in (bundle / "short_sbd.h").read_text()
    assert read_bundle(bundle).settings["window_factor"] == 25
    (found,) = agreement([bundle], iter_connections(events_dir), tmp_path)
    assert found["mismatches_c_reference"] == 0
    # Microseconds in integers may end a connection's last window a sample earlier or later.
    assert abs(found["windows_fixed"] - pl.read_parquet(tables[25]).height) <= 19
    assert found["windows_fixed"] > 1.5 * pl.read_parquet(tables[50]).height


def test_verify_finds_a_constant_of_other_windows(bundle, tmp_path, capsys):
    assert cli.main(["verify", str(bundle), "--random", "20", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)["targets"][0]["companion"]
    assert report["windows"] > 0
    assert report["mismatches"] == 0
    good = read_bundle(bundle)
    header = bundle / "short_sbd.h"
    header.write_text(header.read_text().replace(FACTOR.format(25), FACTOR.format(50)))
    work = tmp_path / "work"
    work.mkdir()
    assert generator.prove(good, VerifyParams(), work)["mismatches"] > 0
    resealed(bundle)
    assert cli.main(["verify", str(bundle), "--random", "20"]) == 1


def test_a_manifest_that_contradicts_the_model_is_refused(bundle):
    def alter(manifest):
        manifest["targets"]["c"]["companion"]["window_factor"] = 50

    resealed(bundle, alter)
    with pytest.raises(UserError, match="another window_factor than the model"):
        generator.made_for(read_bundle(bundle))


def resealed(bundle, alter=lambda manifest: None):
    """Write the manifest anew, every hash right."""
    manifest = json.loads((bundle / MANIFEST).read_text())
    del manifest["manifest_hash"]
    alter(manifest)
    files = manifest["files"]
    manifest["files"] = {name: _sha256((bundle / name).read_bytes()) for name in files}
    manifest["manifest_hash"] = _sha256(canonical(manifest).encode())
    (bundle / MANIFEST).write_text(canonical(manifest) + "\n")


@pytest.mark.parametrize("command", [["evaluate", "sbd"], ["drift"], ["predict", "sbd"]])
def test_features_of_other_windows_are_refused(command, entry, tables, capsys):
    said = refused(capsys, *command, "--model", entry, "--features", tables[50])
    assert "computed with window_factor 50" in said
    assert "trained with window_factor 25" in said
    assert f"cczoo features sbd --model {entry} --events" in said


def test_the_command_that_is_told_makes_the_right_table(entry, tables, events_dir, tmp_path):
    out = tmp_path / "f.parquet"
    words = ["features", "sbd", "--model", entry, "--events", events_dir, "--out", out]
    assert cli.main([*map(str, words), "--jobs", "1"]) == 0
    assert out.read_bytes() == tables[25].read_bytes()
    assert cli.main(["evaluate", "sbd", "--model", str(entry), "--features", str(out)]) == 0


def test_predictions_from_events_are_of_the_models_windows(entry, tables, events_dir, capsys):
    words = ["predict", "sbd", "--model", entry, "--events", events_dir, "--jobs", "1", "--json"]
    assert cli.main([str(word) for word in words]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == pl.read_parquet(tables[25]).height


def test_a_table_that_does_not_say_is_of_the_defaults(entry, tables, tmp_path, capsys):
    mine = tmp_path / "mine.parquet"
    pl.read_parquet(tables[50]).write_parquet(mine)
    assert computed_with.settings_of(mine) == SbdParams()
    assert "default settings" in capsys.readouterr().err
    assert cli.main(["evaluate", "sbd", "--model", str(entry), "--features", str(mine)]) == 2


def test_a_directory_of_both_is_refused(tables, tmp_path):
    for factor, path in tables.items():
        shutil.copy(path, tmp_path / f"{factor}.parquet")
    with pytest.raises(UserError, match="another window_factor"):
        computed_with.settings_of(tmp_path)


def test_a_table_of_other_definitions_is_refused(entry, tables, tmp_path):
    model = store.load(entry)
    kept = pl.read_parquet_metadata(tables[25])
    stated = {key: value for key, value in kept.items() if key.startswith("cczoo.")}
    path = tmp_path / "f.parquet"
    frame = pl.read_parquet(tables[25])
    frame.write_parquet(path, metadata={**stated, "cczoo.smartsbd": "0" * 64})
    with pytest.raises(UserError, match="other definitions"):
        computed_with.check(path, model)
    del stated[computed_with.KEY]
    pl.read_parquet(tables[50]).write_parquet(path, metadata=stated)
    with pytest.raises(UserError, match="an earlier version"):
        computed_with.check(path, store.load("smartsbd-dt"))
    frame.write_parquet(path, metadata={**stated, computed_with.KEY: "[25"})
    with pytest.raises(UserError, match="isn't a JSON object"):
        computed_with.check(path, model)


def test_an_entry_from_before_settings_were_kept_is_of_the_defaults(entry, tables, tmp_path):
    meta = json.loads((entry / "meta.json").read_text())
    old = shutil.copytree(entry, tmp_path / "old")
    del meta["feature_settings"], meta["seal"]
    meta["schema_hash"] = "0" * 64  # of words too, at the time
    meta["seal"] = checksum_of(Meta.parse(meta, ""), Path("old"))
    (old / "meta.json").write_text(json.dumps(meta))
    model = store.load(old)
    assert model.meta.feature_settings == SbdParams().model_dump()
    assert model.meta.schema_hash != "0" * 64
    rows = windows(pl.read_parquet(tables[50]))
    assert np.isfinite(model.predict_proba(rows.frame)).all()
