"""Certificates: for one manifest alone, and not to be had for a bundle that isn't whole."""

import json
import shutil

import numpy as np
import pytest

from export.bundle.certificate import CERTIFICATE
from export.params import VerifyParams
from export.targets import TARGETS
from export.vectors import extremes
from export.verify import verify
from pipelines.cli import main

QUICK = VerifyParams(random=20)
pytestmark = pytest.mark.usefixtures("no_kernel_headers")
needs_compiler = pytest.mark.skipif(
    not (shutil.which("gcc") or shutil.which("clang")), reason="no C compiler on this machine"
)


@pytest.fixture(scope="module")
def certified(bundles, tmp_path_factory):
    directory = shutil.copytree(bundles / "tree", tmp_path_factory.mktemp("certified") / "tree")
    assert verify(directory, QUICK)["ok"]
    return directory


@pytest.fixture
def bundle(certified, tmp_path):
    return shutil.copytree(certified, tmp_path / "tree")


@pytest.fixture
def light(zoo, tmp_path):
    """A certified bundle that needs neither compiler nor kernel."""
    directory = tmp_path / "light"
    targets = ["-t", "json", "-t", "python"]
    assert main(["export", str(zoo / "tree"), *targets, "--out", str(directory)]) == 0
    assert verify(directory, QUICK)["ok"]
    return directory


@needs_compiler
def test_what_a_certificate_says(bundle):
    found = json.loads((bundle / CERTIFICATE).read_text())
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert found["ok"] is True
    assert found["model_hash"] == manifest["model_hash"]
    assert found["budget"] is None
    assert {target["target"] for target in found["targets"]} == set(manifest["targets"])
    (c,) = [target for target in found["targets"] if target["target"] == "c"]
    assert set(c["by_origin"]) == {"stored", "random", "extremes", "thresholds", "leaves"}
    assert sum(c["by_origin"].values()) == c["vectors"]
    assert c["compiler"]
    assert c["ns_per_decision"] > 0
    assert c["object_bytes"] > 0
    assert len(c["target_hash"]) == 64


@needs_compiler
def test_one_altered_byte_in_any_file_fails(bundle):
    paths = sorted(bundle.iterdir())
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert set(manifest["targets"]) <= set(TARGETS)
    assert {p.name for p in paths} == {*manifest["files"], "manifest.json", CERTIFICATE}
    # The certificate last: of its bundle everything is proved, and so everything else was restored.
    for path in sorted(paths, key=lambda p: p.name == CERTIFICATE):
        content = path.read_bytes()
        # In the manifest a digit of a hash: elsewhere it would be no JSON any more.
        digit = content.find(b'"model_hash": "') + 20
        at = digit if path.name == "manifest.json" else len(content) // 3
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        report = verify(bundle, QUICK)
        assert not report["ok"], path.name
        assert report["problems"][0].startswith(path.name)
        if path.name != CERTIFICATE:
            assert report["targets"] == []
            path.write_bytes(content)
    assert len(report["problems"]) == 1
    assert {target["target"] for target in report["targets"]} == set(manifest["targets"])
    assert not any(t["mismatches"] or "error" in t for t in report["targets"])


@pytest.mark.parametrize("name", ["stdint.h", ".hidden", "__pycache__"])
def test_an_added_entry_fails(name, light):
    (light / name).mkdir() if name == "__pycache__" else (light / name).write_text("")
    assert verify(light, QUICK)["problems"] == [
        f"{name}: isn't of this bundle: remove it, and build elsewhere"
    ]


def test_a_stale_certificate_fails_once_and_is_made_anew(light, zoo, tmp_path):
    other = tmp_path / "other"
    assert main(["export", str(zoo / "linear"), "-t", "json", "--out", str(other)]) == 0
    shutil.copy(light / CERTIFICATE, other / CERTIFICATE)
    report = verify(other, QUICK)
    assert not report["ok"]
    assert "of another bundle" in report["problems"][0]
    assert verify(other, QUICK)["ok"]


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace('"mismatches": 0', '"mismatches": 1', 1),
        lambda text: text.replace("\n", "\r\n", 1),
        lambda text: text + "\n",
        lambda text: "[]",
        lambda text: "",
        lambda text: text.replace('"ok": true', '"ok": false', 1),
    ],
    ids=["figure", "white space", "appended", "no object", "empty", "ok"],
)
def test_an_edited_certificate_is_recognised(edit, light):
    path = light / CERTIFICATE
    path.write_bytes(edit(path.read_text()).encode())
    problems = verify(light, QUICK)["problems"]
    assert problems == ["certificate.json: altered since it was written; verify has made it anew"]


def test_a_broken_bundle_loses_its_certificate(light):
    (light / "model.json").write_text("{}")
    assert not verify(light, QUICK)["ok"]
    found = json.loads((light / CERTIFICATE).read_text())
    assert found["ok"] is False
    assert found["problems"] == ["model.json: altered since export"]


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_vectors_reach_the_ends_of_every_integer_type(kind, features):
    bounds = np.iinfo(kind)
    ends = np.array([bounds.min, bounds.max]).astype(np.int64).astype(np.int32).tolist()
    beyond = [bounds.min - 1, bounds.max + 1] if bounds.bits < 32 else []
    x = extremes(features)
    for column in range(len(features)):
        assert set(ends + beyond) <= set(x[:, column].tolist()), column


def test_float32_would_be_caught(features):
    x = extremes(features)
    assert (x != x.astype(np.float32)).any(axis=0).all()
