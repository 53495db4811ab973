"""What the doctor says to an ordinary user, and what `make tools` does where it can't install."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from data.lab import build, doctor, ftrace_probe, tools
from pipelines import cli

# All is imported before the change of user: the interpreter may lie where only root can read.
AS_NOBODY = """
import encodings.ascii, json, os, sys
from data.lab import doctor
from pipelines import cli, lab
os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(cli.main(["lab", "doctor"]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_an_ordinary_user_gets_a_line_per_check():
    done = subprocess.run([sys.executable, "-c", AS_NOBODY], capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    lines = done.stdout.splitlines()
    assert "MISSING root  -> run it with sudo" in lines
    assert all(line.split()[0] in {"ok", "MISSING", "absent"} for line in lines)
    assert len(lines) == len(doctor.examine())


def test_what_a_user_may_not_look_at_is_not_found(monkeypatch, tmp_path, capsys):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", "/sys/kernel/tracing/instances")

    def closed(path, *, follow_symlinks=True):
        if str(path).startswith(str(tmp_path / "tracing")):
            refuse()
        return real(path, follow_symlinks=follow_symlinks)

    real = os.stat
    monkeypatch.setattr(ftrace_probe, "PLACES", (tmp_path / "tracing",))
    monkeypatch.setattr(os, "stat", closed)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(doctor, "_mptcp", refuse)
    assert cli.main(["lab", "doctor"]) == 1
    said = capsys.readouterr().out
    assert "MISSING MPTCP" in said
    assert "only root may look into tracefs" in said


def test_the_doctor_names_make_tools_where_there_is_a_makefile(monkeypatch, tmp_path):
    monkeypatch.setattr(build, "missing_requirements", lambda: {"clang-14": "clang-14"})
    missing = next(check for check in doctor.examine() if check.name == "clang-14")
    assert missing.mend == "make tools (or apt-get install -y clang-14)"
    monkeypatch.setattr(tools, "MAKEFILE", tmp_path / "Makefile")
    missing = next(check for check in doctor.examine() if check.name == "clang-14")
    assert missing.mend == "apt-get install -y clang-14"


def test_every_package_the_lab_asks_for_is_installed_by_make_tools():
    from export.bpf.build import CLANGS, PACKAGES

    provided = {*tools.PACKAGES, "linux-libc-dev"}  # gcc brings the kernel's headers
    assert {*build.REQUIREMENTS.values(), *PACKAGES.values(), CLANGS[0]} <= provided


@pytest.fixture
def commands(monkeypatch, tmp_path):
    """A PATH of our own programs: dpkg, apt and mount as a test says."""
    folder = tmp_path / "bin"
    folder.mkdir()
    log = tmp_path / "calls"

    def program(name, script):
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {log}\n{script}\n')
        (folder / name).chmod(0o755)

    program("dpkg", "echo amd64")
    program("dpkg-query", 'shift 3; for p in "$@"; do echo "$p installed"; done')
    program("apt-cache", 'test "$2" = clang-14 || echo "Package: $2"')
    program("apt-get", "exit 0")
    program("mount", "echo 'mount: permission denied' >&2; exit 32")
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(ftrace_probe, "root", lambda: Path("/sys/kernel/tracing"))
    program.calls = lambda: log.read_text().splitlines()
    return program


def test_nothing_is_called_where_all_is_there(commands, capsys):
    assert tools.main() == 0
    assert not [call for call in commands.calls() if call.startswith(("apt", "mount"))]
    assert capsys.readouterr().out == ""


def test_a_failing_apt_is_told_and_not_fatal(commands, capsys):
    commands("dpkg-query", "exit 1")
    commands("apt-get", "echo 'E: Could not get lock /var/lib/dpkg/lock-frontend' >&2; exit 100")
    assert tools.main() == 0
    said = capsys.readouterr().out
    assert "Could not get lock" in said
    assert "not known to apt here: clang-14" in said
    installs = [call for call in commands.calls() if " install " in call]
    assert "DPkg::Lock::Timeout=60" in installs[0]
    assert "clang-14" not in installs[0].split()
    assert "linux-headers-amd64" in installs[0].split()


def test_who_is_not_root_gets_the_line_to_run(commands, capsys, monkeypatch):
    commands("dpkg-query", "exit 1")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert tools.main() == 0
    assert "run: sudo apt-get install -y" in capsys.readouterr().out
    assert not [call for call in commands.calls() if call.startswith("apt")]


def test_tracefs_that_cannot_be_mounted_is_told(commands, capsys, monkeypatch):
    monkeypatch.setattr(ftrace_probe, "root", lambda: None)
    assert tools.main() == 0
    assert "tracefs can't be mounted: mount: permission denied" in capsys.readouterr().out
