"""Crafted manifests, certificates and entries: one line, no traceback, nothing believed."""

import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.errors import UserError
from export.bundle.manifest import MANIFEST, _sha256, read_manifest
from export.bundle.plain_files import Broken
from export.document import canonical
from models import store
from pipelines.cli import main


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    out = tmp_path_factory.mktemp("crafted") / "bundle"
    small = ["--set", "entries=257", "--set", "q=8"]
    assert main(["export", "nuwa-tanh", "-t", "json", "-t", "lut", *small, "--out", str(out)]) == 0
    return out


@pytest.fixture
def bundle(original, tmp_path):
    return shutil.copytree(original, tmp_path / "bundle")


def sealed(manifest):
    """A manifest's text with its own hash right."""
    manifest.pop("manifest_hash", None)
    manifest["manifest_hash"] = _sha256(canonical(manifest).encode())
    return canonical(manifest) + "\n"


def without(*keys):
    def edit(manifest):
        for key in keys:
            del manifest[key]

    return edit


def put(value, *path):
    def edit(manifest):
        at = manifest
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    return edit


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


CRAFTED = {
    "no targets": without("targets"),
    "targets a list": put([], "targets"),
    "targets null": put(None, "targets"),
    "a target of nothing": put({}, "targets", "json"),
    "a target's files a text": put("model.json", "targets", "json", "files"),
    "a target's files empty": put([], "targets", "json", "files"),
    "a target's file unlisted": put(["other.json"], "targets", "json", "files"),
    "an unknown target": put({"files": ["model.json"]}, "targets", "rust\x1b[31m"),
    "no files": without("files"),
    "files a list": put([], "files"),
    "a file's hash a number": put(7, "files", "model.json"),
    "a file above": put("0" * 64, "files", "../model.json"),
    "an absolute file": put("0" * 64, "files", "/etc/passwd"),
    "no vectors": without("vectors"),
    "vectors an object": put({}, "vectors"),
    "a vector of nothing": put({}, "vectors", 0),
    "a vector too wide": put([1, 2], "vectors", 0, "features"),
    "a vector's integer too large": put([1 << 40], "vectors", 0, "features"),
    "a vector's value a text": put(["1"], "vectors", 0, "values"),
    "a vector's score a list": put([1, 2], "vectors", 0, "score"),
    "a vector's score missing": lambda m: m["vectors"][0].pop("score"),
    "probabilities of two shapes": put([0.5, 0.5], "vectors", 0, "probability"),
    "no features": without("features"),
    "features empty": put([], "features"),
    "a feature's spec empty": put({}, "features", 0, "spec"),
    "a feature's scale zero": put(0, "features", 0, "spec", "scale"),
    "a feature's range inverted": put(1e9, "features", 0, "spec", "low"),
    "a feature's name code": put('x"; system("id"); //', "features", 0, "spec", "name"),
    "a feature's range in integers": put(-5, "features", 0, "low_integer"),
    "an identifier above": put("../../etc/cron.d/x", "identifier"),
    "an identifier of another name": put("other", "identifier"),
    "a name of two lines": put('x"""\nimport os', "name"),
    "no identifier": without("identifier"),
    "labels empty": put([], "labels"),
    "labels others": put(["a", "b"], "labels"),
    "a threshold of text": put("0.5", "threshold"),
    "a cut of another model": put(7, "cut"),
    "options unknown": put({"layout": "heap"}, "options"),
    "options a list": put([], "options"),
    "no options": without("options"),
    "scaling a text": put("exact", "scaling"),
    "a tolerance without bound": put(1e9, "scaling", "float_error"),
    "passes nested": put([{"pass": nested(300)}], "passes"),
    "another version": put(1, "version"),
    "a version that is no number": put(True, "version"),
    "a version of cczoo with controls": put("1\x1b[2J", "cczoo_version"),
    "model_hash of another": put("0" * 64, "model_hash"),
    "schema_hash of another": put("0" * 64, "schema_hash"),
    "an unknown key": put(1, "manifest"),
    "a key of a thousand letters": put(1, "k" * 1000),
}


def test_there_are_enough_of_them():
    assert len(CRAFTED) >= 26


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_manifest_gets_a_line_and_no_certificate(name, bundle, capsys):
    manifest = json.loads((bundle / MANIFEST).read_text())
    CRAFTED[name](manifest)
    (bundle / MANIFEST).write_text(sealed(manifest))
    status = main(["verify", str(bundle), "--random", "10"])
    said = capsys.readouterr()
    assert status in (1, 2)
    lines = said.err.strip().splitlines()
    assert 1 <= len(lines) <= 2, said.err
    assert all(line.isprintable() and len(line) < 600 for line in lines)
    assert "Traceback" not in said.err
    if (bundle / "certificate.json").exists():
        assert json.loads((bundle / "certificate.json").read_text())["ok"] is False


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{", "null", "\xff", '{"format": "cczoo-bundle"}', '{"a": 1, "a": 2}', "1e999",
        '{"format": "cczoo-bundle", "version": NaN}', "[" * 100_000, '{"a":' * 5000,
        '{"format": "cczoo-bundle", "x": 1e999}', '{"format": "cczoo-bundle", "x": "\\ud800"}',
    ],
)  # fmt: skip
def test_what_is_no_manifest_gets_a_line(text, bundle, capsys):
    (bundle / MANIFEST).write_text(text, encoding="latin-1")
    assert main(["verify", str(bundle)]) in (1, 2)
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_certificate_that_is_a_directory_gets_a_line(bundle, capsys):
    (bundle / "certificate.json").mkdir()
    assert main(["verify", str(bundle), "--random", "10"]) == 1
    assert "certificate.json: isn't a plain file" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["[]", '{"ok": true}', "[" * 50_000, "\x00", '{"ok": 1e999}'])
def test_a_crafted_certificate_is_made_anew(text, bundle, capsys):
    (bundle / "certificate.json").write_text(text)
    assert main(["verify", str(bundle), "--random", "10"]) == 1
    assert "altered since it was written" in capsys.readouterr().err
    assert main(["verify", str(bundle), "--random", "10"]) == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), value=JSON)
def test_any_value_anywhere_is_taken_or_refused_in_a_line(original, data, value):
    manifest = json.loads((original / MANIFEST).read_text())
    at = manifest
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(at[key], dict | list) or not at[key] or data.draw(st.booleans()):
            break
        at = at[key]
    at[key] = value
    try:
        text = sealed(manifest)
    except ValueError:
        return  # infinite: no JSON has it
    try:
        read_manifest(text.encode(), "manifest.json")
    except (UserError, Broken) as refusal:
        said = str(refusal)
    else:
        return
    assert said.isprintable(), said


ENTRY = {
    "empty": lambda m: m.clear(),
    "no name": without("name"),
    "no files": without("files"),
    "files a list": put([], "files"),
    "a file above": put("0" * 64, "files", "../x"),
    "a file that is the folder above": put("0" * 64, "files", ".."),
    "a file with a line's end": put("0" * 64, "files", "a\nb"),
    "a file that isn't there": put("0" * 64, "files", "nothing"),
    "no features": without("features"),
    "features unlike their specs": put(["a"], "features"),
    "specs empty": put([{}], "feature_specs"),
    "one label": put(["SB"], "labels"),
    "an unknown key of two lines": put(1, "a\nb\x1b[31m"),
    "threshold a list": put([], "threshold"),
    "calibration nested": put({"a": nested(900)}, "calibration"),
    "another seal": put("0" * 64, "seal"),
    "a name changed under the seal": put("other", "name"),
}


@pytest.mark.parametrize("name", ENTRY)
def test_a_crafted_entry_of_the_zoo_gets_a_line(name, tmp_path, capsys):
    entry = shutil.copytree(store.ZOO / "smartsbd-dt", tmp_path / "entry")
    meta = json.loads((entry / "meta.json").read_text())
    ENTRY[name](meta)
    (entry / "meta.json").write_text(json.dumps(meta))
    out = tmp_path / "out"
    assert main(["export", str(entry), "-t", "json", "--out", str(out)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.isprintable()
    assert not out.exists()


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", "\xff", "[" * 100_000, '{"name": NaN}', "1"]
)
def test_an_unreadable_meta_gets_a_line(text, tmp_path, capsys):
    (tmp_path / "meta.json").write_text(text, encoding="latin-1")
    assert main(["export", str(tmp_path), "-t", "json", "--out", str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.isprintable()


@pytest.mark.parametrize("name", ["vectors.json", "model.json"])
@pytest.mark.parametrize("text", ["[]", "{}", "null", '{"values": [[1], [1, 2]]}', "["])
def test_crafted_files_of_an_entry_get_a_line(name, text, tmp_path, capsys):
    entry = shutil.copytree(store.ZOO / "smartsbd-dt", tmp_path / "entry")
    meta = json.loads((entry / "meta.json").read_text())
    (entry / name).write_text(text)
    meta["files"][name] = store.sha256(text.encode())
    meta["seal"] = ""
    (entry / "meta.json").write_text(json.dumps(meta))
    assert main(["export", str(entry), "-t", "json", "--out", str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.isprintable()
