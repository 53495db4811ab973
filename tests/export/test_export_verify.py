"""Bundles: what is right verifies, whatever was altered doesn't."""

import json
import os
import re
import shutil

import pytest

from export.bundle.manifest import FORM, MANIFEST, _sha256, read_bundle
from export.document import canonical
from export.params import VerifyParams
from export.targets import TARGETS
from export.vectors import make_vectors
from export.verify import _prove, verify
from pipelines.cli import main

NAMES = ["tree", "forest", "boosted", "linear", "svm"]
QUICK = VerifyParams(random=100)
pytestmark = pytest.mark.usefixtures("no_kernel_headers")
needs_compiler = pytest.mark.skipif(
    not (shutil.which("gcc") or shutil.which("clang")), reason="no C compiler on this machine"
)


@pytest.fixture
def bundle(bundles, tmp_path):
    def copy(name):
        return shutil.copytree(bundles / name, tmp_path / name)

    return copy


def rewrite(directory, edit=lambda manifest: None, keep=False):
    """What someone does who knows the format: alters files and sets every hash right again.

    Files that no target claims any more are removed but for ``keep``.
    """
    manifest = json.loads((directory / MANIFEST).read_text())
    del manifest["manifest_hash"]
    edit(manifest)
    claimed = {FORM}
    for target in dict(manifest["targets"]).values():
        claimed |= set(target["files"])
    for name in set() if keep else set(manifest["files"]) - claimed:
        del manifest["files"][name]
        (directory / name).unlink()
    for name in manifest["files"]:
        manifest["files"][name] = _sha256((directory / name).read_bytes())
    manifest["manifest_hash"] = _sha256(canonical(manifest).encode())
    (directory / MANIFEST).write_text(canonical(manifest) + "\n")


def answered(directory, name, params=QUICK):
    """What running a bundle's files finds where nobody asks whether they are emitted here."""
    bundle = read_bundle(directory)
    vectors = None
    if bundle.form is not None:
        vectors = make_vectors(bundle.form, bundle.integers, params.random, params.seed)
    return _prove(name, bundle, vectors, params, [])


@needs_compiler
@pytest.mark.parametrize("name", NAMES)
def test_every_target_of_every_kind_verifies(name, bundle):
    directory = bundle(name)
    report = verify(directory, QUICK)
    assert report["ok"], report
    made = {item["target"] for item in report["targets"]}
    assert made >= ({"lut", "onnx"} if name == "svm" else {"c", "json", "lut", "onnx", "python"})
    for item in report["targets"]:
        assert item["vectors"] > 0
        assert item["mismatches"] == 0
        assert len(item["target_hash"]) == 64
    certificate = json.loads((directory / "certificate.json").read_text())
    assert certificate["model_hash"] == report["model_hash"]
    assert certificate["targets"] == json.loads(json.dumps(report["targets"]))


def test_what_a_killed_verification_left_is_swept(bundle, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    for name in ("bundle", "verify"):
        (temporary / f".cczoo-{name}.{os.getpid()}.abcdefgh.part" / "inner").mkdir(parents=True)
    assert verify(bundle("linear"), QUICK)["targets"]
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("name", ["tree", "svm"])
def test_one_altered_byte_anywhere_fails(name, bundle):
    directory = bundle(name)
    for path in sorted(directory.iterdir()):
        content = path.read_bytes()
        for at in (0, len(content) // 2, len(content) - 2):
            path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            try:
                assert main(["verify", str(directory), "--random", "10"]) != 0, (path.name, at)
            finally:
                path.write_bytes(content)


def test_missing_file_fails_and_says_which(bundle):
    directory = bundle("tree")
    (directory / "tree.h").unlink()
    report = verify(directory, QUICK)
    assert not report["ok"]
    assert report["problems"] == ["tree.h: missing"]


@needs_compiler
@pytest.mark.parametrize("step", [-1, 1])
def test_every_threshold_off_by_one_is_found(step, bundle):
    directory = bundle("tree")
    header = directory / "tree.h"
    text = header.read_text()
    found = list(re.finditer(r"<= (-?\d+)", text))
    assert len(found) > 10
    rewrite(directory, lambda m: m.update(targets={"c": m["targets"]["c"]}))
    for match in found[:: len(found) // 4]:
        moved = f"<= {int(match[1]) + step}"
        header.write_text(text[: match.start()] + moved + text[match.end() :])
        rewrite(directory)
        assert not verify(directory, QUICK)["ok"], match[0]
        report = answered(directory, "c")
        assert report["mismatches"] > 0
        assert report["first_mismatch"]["expected"]


@needs_compiler
@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda text: text.replace("return", "retrun", 1), "refuses the code"),
        (lambda text: text.replace("int32_t tree_score", "double tree_score"), "refuses the code"),
        (lambda text: text.replace("> TREE_CUT", "> 0 * *(volatile int *)0"), "failed"),
    ],
    ids=["syntax", "floating point", "crash"],
)
def test_code_that_cannot_run_fails_with_a_reason(edit, said, bundle):
    directory = bundle("tree")
    header = directory / "tree.h"
    header.write_text(edit(header.read_text()))
    rewrite(directory, lambda m: m.update(targets={"c": m["targets"]["c"]}))
    assert not verify(directory, QUICK)["ok"]
    assert said in answered(directory, "c")["error"]


def test_code_that_hangs_is_stopped(bundle):
    directory = bundle("tree")
    module = directory / "tree.py"
    module.write_text(module.read_text() + "\nwhile True: pass\n")
    rewrite(directory, lambda m: m.update(targets={"python": m["targets"]["python"]}))
    report = answered(directory, "python", VerifyParams(random=10, timeout_s=3))
    assert "longer than 3 s" in report["error"]


def test_forged_answers_fail(bundle):
    directory = bundle("tree")

    def forged(manifest):
        manifest["vectors"][3].update(score=1)
        manifest.update(targets={"json": manifest["targets"]["json"]})

    rewrite(directory, forged)
    report = verify(directory, QUICK)
    assert not report["ok"]
    assert report["problems"] == ["stored vectors: 1 answers aren't the model's"]


def test_another_models_onnx_fails(bundle, bundles):
    directory = bundle("tree")
    shutil.copy(bundles / "forest" / "forest.onnx", directory / "tree.onnx")
    rewrite(directory, lambda m: m.update(targets={"onnx": m["targets"]["onnx"]}))
    report = verify(directory, QUICK)
    assert not report["ok"]
    assert report["targets"][0]["mismatches"] > 0


def test_broken_onnx_is_an_error_not_a_traceback(bundle):
    directory = bundle("svm")
    (directory / "svm.onnx").write_bytes(b"\x00not onnx")
    rewrite(directory)
    report = verify(directory, QUICK)
    assert not report["ok"]
    assert "svm.onnx: not an ONNX file" in report["problems"][0]


def test_without_a_compiler_it_says_what_to_install(bundle, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CC", raising=False)
    directory = str(bundle("tree"))
    assert main(["verify", directory, "--random", "10", "--json"]) == 0
    said = capsys.readouterr()
    assert "c" in json.loads(said.out)["unproved"]
    assert main(["verify", directory, "--random", "10", "--strict"]) == 1
    assert "UNPROVED c: no C compiler found: install gcc or clang" in capsys.readouterr().err


def test_a_bundle_of_which_nothing_can_be_proved_is_not_ok(zoo, tmp_path, monkeypatch):
    out = tmp_path / "out"
    assert main(["export", str(zoo / "tree"), "-t", "c", "--out", str(out)]) == 0
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CC", raising=False)
    assert main(["verify", str(out), "--random", "10"]) == 1


def test_command_line(zoo, tmp_path, capsys):
    out = tmp_path / "out"
    model = str(zoo / "linear")
    assert (
        main(["export", model, "--target", "json", "-t", "python", "--out", str(out), "--json"])
        == 0
    )
    result = json.loads(capsys.readouterr().out)
    assert result["files"] == ["linear.py", "manifest.json", "model.json"]
    assert main(["verify", str(out), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is True
    assert [t["target"] for t in report["targets"]] == ["json", "python"]
    manifest = (out / MANIFEST).read_text()
    assert main(["export", model, "-t", "json", "-t", "python", "--out", str(out)]) == 0
    assert (out / MANIFEST).read_text() == manifest, "the same export gives the same bytes"
    assert main(["export", "--list", "--json", model]) == 0
    listed = json.loads(capsys.readouterr().out.split("\n", 1)[1])
    assert {row["target"] for row in listed} == set(TARGETS) - {"mlp-c"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["export", "smartsbd-no", "-t", "c", "--out", "x"], "unknown model 'smartsbd-no'"),
        (["export", "{zoo}/tree", "-t", "cc", "--out", "x"], "did you mean 'c'?"),
        (["export", "{zoo}/svm", "-t", "c", "--out", "x"], "try lut, onnx"),
        (["export", "{zoo}/tree", "-t", "c"], "--out is missing"),
        (["export", "{zoo}/tree", "--out", "x"], "--target is missing"),
        (["export", "{zoo}/tree", "-t", "c", "--out", "{zoo}"], "which cczoo export didn't write"),
        (["export", "{zoo}/tree", "-t", "c", "--out", "x", "--layout", "heap"], "layout"),
        (["export", "{zoo}", "-t", "c", "--out", "x"], "not a model's directory"),
        (["verify", "{zoo}"], "made by cczoo export"),
        (["verify", "/nowhere"], "made by cczoo export"),
    ],
)
def test_mistakes_get_one_line_and_status_2(arguments, said, zoo, capsys):
    assert main([a.replace("{zoo}", str(zoo)) for a in arguments]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.strip().splitlines()) == 1
