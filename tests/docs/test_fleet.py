"""docs/fleet.md, command by command, as its reader would, in one process for speed."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)

SOCKET = "cczoo.socket"
PASSED_ON = f"""#!{sys.executable} -IS
import json, socket, sys

with socket.socket(socket.AF_UNIX) as test:
    test.connect({SOCKET!r})
    test.sendall(json.dumps(sys.argv[1:]).encode() + b"\\n")
    code, out, err = json.loads(test.makefile().read())
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(code)
"""
"""A `cczoo` for scripts that has its words run by the test, whose imports are done."""

pytestmark = pytest.mark.xdist_group("registry")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_store: Path) -> Path:
    """A reader's folder: eight real logs of two days and two groups."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    monkeypatch.setenv("MODEL", "smartsbd-dt")
    # Processes of its own would cost each command more than what they do.
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    lines = ["source,label,isp"]
    sources = sorted((ROOT / "data" / "raw" / "smartsbd-paper" / "frankfurt").glob("*-sb-*"))
    for number, source in enumerate(sources[:4]):
        day = tmp_path / "logs" / f"2026-11-0{1 + number // 2}"
        day.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, day)
        lines.append(f"{source.name},SB,{'xy'[number % 2]}")
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def lines(block: str) -> list[str]:
    return block.replace("\\\n", " ").strip().splitlines()


def test_every_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for block in COMMANDS:
        if "<<" in block:
            run_script(block, folder, capsys)
            continue
        for line in lines(block):
            words = shlex.split(line)
            if words[0] != "cczoo":
                subprocess.run(["bash", "-ec", line], check=True, cwd=folder)
                continue
            to = words[words.index(">") + 1] if ">" in words else None
            capsys.readouterr()
            assert main(words[1 : words.index(">")] if to else words[1:]) == 0, line
            if to:
                Path(to).write_text(capsys.readouterr().out)
    again = json.loads(Path("again.json").read_text())
    assert again["logs"]["unchanged"] == 2
    assert json.loads(Path("nothing.json").read_text())["connections"] == 0
    assert json.loads(Path("store.json").read_text())["connections"] == 2


def run_script(block: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The nightly job as a shell runs it, where there are too few connections to tell of drift."""
    program = folder / "bin" / "cczoo"
    program.parent.mkdir()
    program.write_text(PASSED_ON)
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(SOCKET)
        server.listen()
        server.settimeout(0.05)
        shell = subprocess.Popen(
            ["bash", "-e", "-c", block], cwd=folder, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        while shell.poll() is None:
            try:
                asked, _ = server.accept()
            except TimeoutError:
                continue
            with asked, asked.makefile("rw") as stream:
                words = json.loads(stream.readline())
                capsys.readouterr()
                code = main(words)
                stream.write(json.dumps([code, *capsys.readouterr()]))
    out, err = shell.communicate()
    assert shell.returncode == 0, err
    assert "2 new" in out
    assert "can't tell" in err


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([\w/.-]+\.md)(?:#[\w-]+)?\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
