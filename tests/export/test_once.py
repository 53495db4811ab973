"""The same bytes are compiled once, and nothing else is taken for them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from export.bpf import build
from export.bundle.manifest import bundle_files
from export.params import Options, VerifyParams
from export.source import source_of
from export.toolchain import harness, once, sandbox
from export.toolchain.harness import CannotRun, compile_once
from export.verify import verify
from models.store import ZOO, load, replace_directory

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="no C compiler on this machine")


@pytest.fixture
def compiled(monkeypatch):
    """Commands that compilers were given."""
    commands = []
    run = harness.run_command
    monkeypatch.setattr(
        harness, "run_command", lambda *given: commands.append(given[0]) or run(*given)
    )
    return commands


def make(folder, text="int f(void) { return N; }\n", header="#define N 1\n", flags=("-O1",)):
    folder.mkdir()
    (folder / "a.c").write_text('#include "a.h"\n' + text)
    (folder / "a.h").write_text(header)
    command = ["gcc", *flags, "-fstack-usage", "-c"]
    compile_once(command, [folder / "a.c"], folder / "a.o", 60, [folder / "a.h"])
    return (folder / "a.o").read_bytes(), (folder / "a.su").read_text()


def test_the_same_is_compiled_once_wherever_it_lies(compiled, tmp_path):
    text = f"int f(void) {{ return N; }} /* {tmp_path} */\n"
    first, again = make(tmp_path / "one", text), make(tmp_path / "two", text)
    assert first == again
    assert len(compiled) == 1


@pytest.mark.parametrize(
    "other",
    [{"text": "int g(void) { return N; }\n"}, {"header": "#define N 2\n"}, {"flags": ("-O2",)}],
    ids=["source", "header", "flags"],
)
def test_what_differs_is_compiled(other, compiled, tmp_path):
    once._products.clear()
    first = make(tmp_path / "one")
    assert make(tmp_path / "two", **other) != first
    assert len(compiled) == 2


def test_what_is_refused_is_refused_again(tmp_path):
    for name in ("one", "two"):
        with pytest.raises(CannotRun, match="refuses the code"):
            make(tmp_path / name, "int f(void) { retrun N; }\n")


def test_another_compiler_of_the_same_name_compiles(tmp_path, monkeypatch):
    text = f"int f(void) {{ return N; }} /* {tmp_path} */\n"
    make(tmp_path / "one", text)
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "gcc"
    fake.write_text("#!/bin/sh\necho error: another one >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    with pytest.raises(CannotRun, match="another one"):
        make(tmp_path / "two", text)


def test_a_strangers_code_is_neither_kept_nor_answered_by_what_is(compiled, tmp_path):
    text = f"int f(void) {{ return N; }} /* {tmp_path} */\n"
    make(tmp_path / "one", text)
    if missing := sandbox.why_not():
        pytest.skip(missing)
    compiled.clear()
    with sandbox.confined(tmp_path / "two", ()):
        make(tmp_path / "two", text)
    assert len(compiled) == 1


@pytest.mark.usefixtures("no_kernel_headers")
@pytest.mark.parametrize(
    ("model", "targets", "compiled"),
    [
        ("tree", ["bpf", "c", "table"], {"model.c", "driver.c", "table_damage.c", "empty.c"}),
        ("smartsbd-dt", ["c"], {"model.c", "unit.c", "sbd_driver.c"}),
    ],
)
def test_every_file_that_goes_in_is_told(model, targets, compiled, zoo, monkeypatch, tmp_path):
    """One that is included and not told would be taken for another of its name."""
    asked, untold = [], []

    def checked(command, inputs, made, make):
        told = {(path.name, path.read_bytes()) for path in inputs}
        flags = [word for word in command if word != "-c" and not word.startswith("-l")]
        folders = [f"-I{folder}" for folder in {path.parent for path in inputs}]
        for source in (path for path in inputs if path.suffix == ".c"):
            command = [*flags, *folders, "-MM", str(source)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            needed = map(Path, done.stdout.replace("\\\n", "").partition(":")[2].split())
            untold.extend(path for path in needed if (path.name, path.read_bytes()) not in told)
            asked.append(source.name)
        make()

    monkeypatch.setattr(harness, "once", checked)
    source = source_of(load(model, zoo if model == "tree" else ZOO))
    replace_directory(tmp_path / "bundle", bundle_files(source, targets, Options(), "the tests"))
    assert verify(tmp_path / "bundle", VerifyParams(random=20))["ok"]
    assert not untold
    assert compiled <= set(asked)
    if "bpf" in targets and build.why_not() is None:
        assert {"tree_load.c", "bpf_run.c", "bpf_register.c"} <= set(asked)
