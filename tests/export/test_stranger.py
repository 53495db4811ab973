"""Bundles of strangers: what isn't emitted here isn't run, whatever its manifest says."""

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from unittest import mock

import pytest
from test_export_verify import rewrite

from data.errors import UserError
from export.bpf.live import open_bundle
from export.bundle.certificate import CERTIFICATE
from export.bundle.manifest import MANIFEST, _sha256, read_bundle
from export.bundle.plain_files import Broken
from export.bundle.reemit import differing, source_of
from export.document import canonical, dumps, loads
from export.feature_code.agreement import agreement
from export.forms.grid import Grid
from export.params import VerifyParams
from export.targets.lut import _header
from export.toolchain import sandbox
from export.verify import verify
from features.spec import Feature, schema_hash
from pipelines.cli import main

QUICK = VerifyParams(random=20, timeout_s=600)
no_sandbox = sandbox.why_not()
needs_sandbox = pytest.mark.skipif(bool(no_sandbox), reason=no_sandbox or "there is one")


@pytest.fixture
def bundle(bundles, tmp_path):
    return shutil.copytree(bundles / "tree", tmp_path / "tree")


@pytest.fixture
def canary(tmp_path):
    """A file that the attacks write; and how to write it in C and in Python."""
    return tmp_path / "canary"


def constructor(canary):
    return (
        "extern int system(const char *);\n"
        "__attribute__((constructor)) static void first(void)\n"
        f'{{ if (system("touch {canary} 2>/dev/null")) return; }}\n'
    )


def refused(directory, capsys, *said):
    """Verify says no, in single lines, and has run nothing."""
    status = main(["verify", str(directory), "--random", "10"])
    shown = capsys.readouterr()
    assert status in (1, 2), shown
    assert "Traceback" not in shown.err
    for text in said:
        assert text in shown.err, shown.err
    return shown.err


def test_what_is_exported_is_emitted_again(bundles):
    for directory in sorted(bundles.iterdir()):
        assert differing(read_bundle(directory)) == {}, directory.name


def test_a_constructor_in_the_header_never_runs(bundle, canary, capsys):
    header = bundle / "tree.h"
    header.write_text(header.read_text() + constructor(canary))
    rewrite(bundle)
    refused(bundle, capsys, "tree.h: isn't what this cczoo emits", "export again")
    assert not canary.exists()
    certificate = json.loads((bundle / CERTIFICATE).read_text())
    assert certificate["ok"] is False
    assert certificate["targets"] == []


def test_a_line_in_the_python_module_never_runs(bundle, canary, capsys):
    module = bundle / "tree.py"
    module.write_text(module.read_text() + f"\nopen({str(canary)!r}, 'w')\n")
    rewrite(bundle)
    refused(bundle, capsys, "tree.py: isn't what this cczoo emits")
    assert not canary.exists()


@pytest.mark.parametrize("name", ["Kbuild", "cczoo_table.c", "tree_kmod.c", "tree.cct"])
def test_no_file_of_the_kernel_module_is_taken_from_the_bundle(name, bundle, canary, capsys):
    path = bundle / name
    path.write_bytes(path.read_bytes() + f"\n$(shell touch {canary})\n".encode())
    rewrite(bundle)
    refused(bundle, capsys, f"{name}: isn't what this cczoo emits")
    assert not canary.exists()


def test_the_message_says_which_cczoo_made_it(bundle, capsys):
    header = bundle / "tree.h"
    header.write_text(header.read_text().replace("classify", "decide"))
    rewrite(bundle, lambda m: m.update(cczoo_version="7.8.9"))
    refused(bundle, capsys, "made by cczoo 7.8.9: export again")


@pytest.mark.parametrize(
    "name", ["../outside.py", "/etc/passwd", "..", ".", "", "a/b", ".hidden", "a\nb", "a\0b"]
)
def test_names_are_plain_files_inside_the_bundle(name, bundle, canary, capsys, tmp_path):
    (tmp_path / "outside.py").write_text(f"open({str(canary)!r}, 'w')\n")
    manifest = json.loads((bundle / MANIFEST).read_text())
    del manifest["manifest_hash"]
    manifest["targets"]["python"]["files"] = [name]
    manifest["files"][name] = "0" * 64
    del manifest["files"]["tree.py"]
    manifest["manifest_hash"] = _sha256(canonical(manifest).encode())
    (bundle / MANIFEST).write_text(canonical(manifest) + "\n")
    refused(bundle, capsys, "manifest.json: ")
    assert not canary.exists()


def test_links_pipes_and_folders_are_refused(bundle, tmp_path, capsys):
    module = bundle / "tree.py"
    content = module.read_bytes()
    (tmp_path / "same.py").write_bytes(content)
    module.unlink()
    module.symlink_to(tmp_path / "same.py")
    refused(bundle, capsys, "tree.py: a link")
    module.unlink()
    os.mkfifo(module)
    refused(bundle, capsys, "tree.py: isn't a plain file")
    module.unlink()
    module.mkdir()
    refused(bundle, capsys, "tree.py: isn't a plain file")


def test_a_link_as_manifest_is_refused(bundle, tmp_path, capsys):
    shutil.move(bundle / MANIFEST, tmp_path / "elsewhere.json")
    (bundle / MANIFEST).symlink_to(tmp_path / "elsewhere.json")
    refused(bundle, capsys, "manifest.json: a link")
    assert not (bundle / CERTIFICATE).exists()


def test_a_file_that_no_target_claims_is_refused(bundle, capsys):
    header = bundle / "tree.h"
    text = header.read_text()
    assert text.count("return") >= 3
    header.write_text(text.replace("return ", "return 1 + ", 3))
    rewrite(bundle, lambda m: m["targets"].pop("c"), keep=True)
    refused(bundle, capsys, "tree.h belongs to no target")
    rewrite(bundle, lambda m: m["targets"]["python"]["files"].append("tree.h"))
    refused(bundle, capsys, "isn't what this cczoo emits")


def test_a_target_lacks_no_file_of_its_emitter(bundle, capsys):
    (bundle / "tree_kmod.h").unlink()

    def drop(manifest):
        manifest["targets"]["table"]["files"].remove("tree_kmod.h")
        del manifest["files"]["tree_kmod.h"]

    rewrite(bundle, drop)
    refused(bundle, capsys, "tree_kmod.h: isn't what this cczoo emits")


def test_an_altered_grid_disagrees_with_its_model(bundle):
    table = bundle / "tree_lut.json"
    header = bundle / "tree_lut.h"
    grid = loads(table.read_bytes(), table.name)
    values = tuple(tuple(255 - v for v in row) for row in grid.values)
    turned = Grid(grid.features, grid.labels, grid.decision_threshold, grid.edges, values)
    table.write_text(dumps(turned))
    rewrite(bundle)
    source = source_of(read_bundle(bundle))
    named = dataclasses.replace(source, name=source.name + "-lut", form=turned)
    header.write_text(_header(named, turned))
    rewrite(bundle)
    reports = {r["target"]: r for r in verify(bundle, QUICK)["targets"]}
    assert "isn't what the manifest says" in reports["lut"]["error"]


def test_feature_code_of_other_settings_is_refused(zoo, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["export", "smartsbd-dt", "-t", "c", "--out", str(out)]) == 0
    capsys.readouterr()
    rewrite(out, lambda m: m["targets"]["c"]["companion"].update(min_samples=9))
    refused(out, capsys, "layout and feature code aren't those of its options")


def test_models_that_exist_as_onnx_alone_are_bound_to_their_file(bundles, tmp_path, capsys):
    directory = shutil.copytree(bundles / "svm", tmp_path / "svm")
    rewrite(directory, lambda m: m.update(model_hash="0" * 64))
    refused(directory, capsys, "svm.onnx: not the model that the manifest describes")


def test_onnx_files_that_reach_outside_are_refused(bundles, tmp_path, capsys):
    import onnx

    directory = shutil.copytree(bundles / "forest", tmp_path / "forest")
    path = directory / "forest.onnx"
    plain = onnx.load(path)

    def attempt(alter, said):
        model = onnx.ModelProto()
        model.CopyFrom(plain)
        alter(model)
        path.write_bytes(model.SerializeToString())
        rewrite(directory)
        refused(directory, capsys, said)

    def outside(model):
        tensor = model.graph.initializer.add()
        tensor.name, tensor.data_type = "secret", onnx.TensorProto.UINT8
        tensor.dims.append(8)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="../../../etc/passwd")

    def inner(model):
        node = model.graph.node.add(op_type="If", input=["x"], output=["y"])
        graph = onnx.helper.make_graph([], "inner", [], [])
        graph.node.add(op_type="Loop")
        node.attribute.append(onnx.helper.make_attribute("then_branch", graph))

    attempt(outside, "keeps weights in other files")
    attempt(lambda m: m.graph.node.add(op_type="Shell", domain="evil"), "operators of 'evil'")
    attempt(inner, "has the operator Loop")


def test_without_targets_nothing_is_proved(bundle, capsys):
    def empty(manifest):
        manifest["targets"] = {}
        manifest["files"] = {"model.json": ""}

    rewrite(bundle, lambda m: m.update(targets=[]), keep=True)
    refused(bundle, capsys, "targets: input should be a valid dictionary")
    for path in bundle.iterdir():
        if path.name not in (MANIFEST, "model.json"):
            path.unlink()
    rewrite(bundle, empty)
    refused(bundle, capsys, "no targets: nothing was proved")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"threshold": 1e308}, "threshold"),
        ({"threshold": -3.0}, "threshold"),
        ({"threshold": 7.5}, "threshold"),
        ({"feature_settings": {"window_factor": -5, "nonsense": "x"}}, "feature_settings"),
        ({"feature_settings": {}}, "feature_settings"),
    ],
)
def test_thresholds_and_settings_are_such_as_can_be_meant(change, said, tmp_path, capsys):
    out = tmp_path / "bundle"
    assert main(["export", "smartsbd-dt", "-t", "json", "--out", str(out)]) == 0

    def altered(manifest):
        manifest.update(change)
        features = [Feature(**column["spec"]) for column in manifest["features"]]
        settings = manifest["feature_settings"]
        manifest["schema_hash"] = schema_hash(features, settings)

    rewrite(out, altered)
    refused(out, capsys, said)


def test_foreign_code_needs_a_sandbox(bundle, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["verify", str(bundle), "--run-foreign"]) == 2
    assert "install bubblewrap" in capsys.readouterr().err


@needs_sandbox
def test_foreign_code_runs_in_the_sandbox_alone(bundle, canary, tmp_path, capsys):
    module = bundle / "tree.py"
    secret = tmp_path / "secret"
    secret.write_text("of the user")
    spy = (
        "import os, socket\n"
        "def attempt(what, function):\n"
        "    try:\n"
        "        function()\n"
        "    except OSError:\n"
        "        return\n"
        "    raise SystemExit('escaped: ' + what)\n"
        f"attempt('canary', lambda: open({str(canary)!r}, 'w'))\n"
        f"attempt('secret', lambda: open({str(secret)!r}))\n"
        "attempt('passwords', lambda: open('/etc/shadow'))\n"
        "attempt('system', lambda: open('/usr/canary', 'w'))\n"
        "attempt('network', lambda: socket.create_connection(('127.0.0.1', 1)))\n"
        "attempt('root', lambda: os.setuid(0))\n"
        "attempt('own folder', lambda: open(os.getcwd() + '/canary', 'w'))\n"
        "if os.getuid() != 65534: raise SystemExit('escaped: user')\n"
        "attempt('large file', lambda: open('/tmp/large', 'wb').write(bytes(1 << 28)))\n"
    )
    module.write_text(module.read_text() + spy)
    header = bundle / "tree.h"
    header.write_text(header.read_text().replace("> TREE_CUT", "<= TREE_CUT") + constructor(canary))
    rewrite(bundle, lambda m: [m["targets"].pop(t) for t in ("bpf",) if t in m["targets"]])
    assert main(["verify", str(bundle), "--random", "20", "--run-foreign", "--json"]) == 1
    shown = capsys.readouterr()
    assert "runs code that cczoo didn't emit" in shown.err
    report = json.loads(shown.out)
    assert report["ok"] is False
    assert "python: foreign code, run in a sandbox: not proved" in report["problems"]
    found = {target["target"]: target for target in report["targets"]}
    assert found["python"].get("error") is None, found["python"]
    assert found["python"]["mismatches"] == 0
    assert found["python"]["foreign"] == ["tree.py"]
    if "missing" not in found["c"]:
        assert found["c"]["mismatches"] > 0, found["c"].get("error")
    assert "foreign" not in found["json"]
    assert not canary.exists()


@needs_sandbox
def test_an_ordinary_users_sandbox_holds_too(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("run as root, which can be an ordinary user for once")
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:
        if folder == folder.parent or not str(folder).startswith("/tmp/"):
            break
        folder.chmod(folder.stat().st_mode | 0o011)
    work = tmp_path / "work"
    work.mkdir()
    os.chown(work, 1, 1)
    wrapped = sandbox.Box(work, ())
    with mock.patch("os.geteuid", return_value=1), mock.patch("sys.base_prefix", "/usr"):
        command = wrapped.wrapped(["sh", "-c", "id -u; cat /etc/shadow || echo no; ls /root"], 5)
    done = subprocess.run(command, user=1, group=1, extra_groups=[], capture_output=True, text=True)
    if "Creating new namespace" in done.stderr or "No permissions" in done.stderr:
        pytest.skip(f"no namespaces for ordinary users here: {done.stderr.strip()}")
    assert done.stdout.split() == ["65534", "no"], done


NAMESPACES = "unshare -Urm true && echo escaped; unshare -U true && echo escaped; id -u"


@needs_sandbox
def test_no_namespace_is_made_in_the_sandbox(tmp_path):
    done = sandbox.Box(tmp_path, ()).run(["sh", "-c", NAMESPACES], 120)
    assert done.stdout.split() == [b"65534"], done


@needs_sandbox
def test_processes_are_bounded_and_end_with_their_time(tmp_path):
    box = sandbox.Box(tmp_path, ())
    many = "for i in $(seq 40); do sleep 99 & done; echo all"
    assert b"all" not in box.run(["sh", "-c", many], 120).stdout
    mark = f"{os.getpid()}.25"
    with pytest.raises(subprocess.TimeoutExpired):
        box.run(["sleep", mark], 1)
    until = time.monotonic() + 120
    while (left := _running(mark)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left


def _running(word):
    """Command lines that hold a word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = path.read_bytes()
            found += [line] if word.encode() in line.split(b"\0") else []
    return found


@needs_sandbox
def test_bpf_of_others_is_never_loaded(bundle):
    if "bpf" not in json.loads((bundle / MANIFEST).read_text())["targets"]:
        pytest.skip("no BPF here: the bundle has no such target")
    path = bundle / "tree.bpf.h"
    path.write_text(path.read_text() + "/* of a stranger */\n")
    rewrite(bundle, lambda m: m.update(targets={"bpf": m["targets"]["bpf"]}))
    (report,) = verify(bundle, QUICK, run_foreign=True)["targets"]
    assert report["error"] == "code of others is never loaded into this kernel"


def test_other_readers_of_bundles_refuse_too(bundle, tmp_path):
    header = bundle / "tree.h"
    header.write_text(header.read_text() + "/* of a stranger */\n")
    rewrite(bundle)
    with pytest.raises(UserError, match="isn't what this cczoo emits"):
        agreement([bundle], [], tmp_path)
    with pytest.raises(UserError, match="isn't what this cczoo emits"):
        open_bundle(bundle)


def test_what_was_compared_is_what_is_built(bundle, tmp_path):
    opened = read_bundle(bundle)
    (bundle / "tree.h").write_text("changed meanwhile")
    assert "changed" not in (opened.copied(tmp_path / "copy").directory / "tree.h").read_text()
    with pytest.raises(Broken):
        read_bundle(bundle)
