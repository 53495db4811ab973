"""What the native programs say when something is wrong, and that none outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from native_lab import PATIENCE_S, MakeLab

from data.errors import UserError
from data.lab.build import build

pytestmark = pytest.mark.kernel


def test_a_missing_compiler_comes_with_the_line_that_mends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needed = {"no-such-compiler": "clang-99"}
    monkeypatch.setattr("data.lab.build.REQUIREMENTS", needed)
    with pytest.raises(UserError, match=r"no-such-compiler.*apt-get install -y clang-99"):
        build(force=True)


BAD_CONFIGS = {
    "tun wifi c": "line 1: no netns 'c' was named above",
    "netns c /nowhere\ntun wifi c\npath wifi wifi": "line 2: open netns c (/nowhere): No such file",
    "stage a rate_mbps=fast": "line 1: rate_mbps=fast is not a number",
    "stage a queue_packets=3": "line 1: stage a: a queue needs a rate",
    "# nothing\nstage a rate=3": "line 2: stage a: unknown key 'rate'",
    "stage a trace=/nowhere": "line 1: stage a: open /nowhere: No such file",
    "link a": "line 1: unknown directive 'link'",
    "netns c /x\ntun d c\nstage a\npath d e": "line 4: no tun 'e' was named above",
    "netns c /x\ntun d c\npath d d stages=q": "line 3: no stage 'q' was named above",
    "netns c /x\nnetns s /y\ntun d c\ntun d s\npath d d": "line 5: several devices are named 'd'",
    "netns c /x\ntun d c\npath d d src=1.2.3": "line 3: src=1.2.3 is not an IPv4 address",
    "stage a": "no path",
}


@pytest.mark.parametrize("config", BAD_CONFIGS)
def test_errors_say_where_and_what(config: str, programs: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "config").write_text(config + "\n")
    done = subprocess.run(
        [str(programs["klink"]), "config", "--log", "log", "--stats", "stats"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("klink: ")
    assert BAD_CONFIGS[config] in done.stderr


# --- the end of the parent -------------------------------------------------------------------

STARTER = """\
import subprocess, sys, time
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)
assert child.stdout.readline() == "ready\\n"
print(child.pid, flush=True)
time.sleep(600)
"""


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def command_of(folder: Path, programs: dict[str, Path], make_lab: MakeLab) -> list[str]:
    """A klink of its own for two namespaces whose first klink has ended."""
    lab = make_lab("path wifi srv\n")
    lab.finish()
    config = str(lab.folder / "config")
    return [str(programs["klink"]), config, "--log", f"{folder}/l", "--stats", f"{folder}/s"]


def test_klink_ends_with_a_killed_parent(
    programs: dict[str, Path], make_lab: MakeLab, tmp_path: Path
) -> None:
    command = command_of(tmp_path, programs, make_lab)
    parent = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", STARTER, *command], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    klink = int(parent.stdout.readline())
    assert not gone(klink)
    parent.send_signal(signal.SIGKILL)
    parent.communicate(timeout=PATIENCE_S)
    deadline = time.monotonic() + PATIENCE_S
    while not gone(klink) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert gone(klink)
    assert list(tmp_path.iterdir()) == []


def test_klink_refuses_to_start_where_nobody_waits_for_it(
    programs: dict[str, Path], make_lab: MakeLab, tmp_path: Path
) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        command_of(tmp_path, programs, make_lab),
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_S,
    )
    os.close(write_end)
    assert done.returncode == 1
    assert "say ready on stdout: Broken pipe" in done.stderr
