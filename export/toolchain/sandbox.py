"""Runs code of others with as few rights as the machine can take away (bubblewrap).

Confined code has no network and sees nothing of the machine but its programs and libraries,
read-only. Its user is nobody, it can gain no privilege and make no namespace, and its time, memory,
files and processes are bounded.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from data.place import scratch

NOBODY = 65534
LIMITS = {
    "as": 4 << 30,
    "fsize": 64 << 20,
    "nproc": 16,
    "nofile": 256,
    "core": 0,
}
"""``prlimit``'s names; memory is per process: all together take up to ``nproc`` times ``as``.

CPU time is as long as a command may take.
"""
SCRATCH_BYTES = 64 << 20
TOOLS = ("bwrap", "setpriv", "prlimit", "unshare", "env")
SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Folders beside /usr: links into it on most distributions, folders of their own on others."""


def why_not() -> str:
    """Why code can't be confined here, and what mends it; empty if it can."""
    missing = [name for name in TOOLS if not shutil.which(name)]
    if "bwrap" in missing:
        return "no sandbox here: install bubblewrap (apt-get install bubblewrap)"
    if missing:
        return f"no sandbox here: {missing[0]} is missing: install util-linux and coreutils"
    with scratch("sandbox") as work:
        try:
            done = Box(work, ()).run(["true"], 20)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"bubblewrap doesn't run here: {error}"
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode:
        reason = lines[0] if lines else f"status {done.returncode}"
        return f"bubblewrap doesn't run here: {reason}: allow user namespaces, or run it as root"
    return ""


@dataclass(frozen=True)
class Box:
    """What confined commands see.

    Attributes
    ----------
    work : Path
        The one folder they may write to; a program built in it only reads it.
    readable : sequence of Path
        Folders that they may read besides the system's.
    """

    work: Path
    readable: Sequence[Path]

    def run(
        self, command: Sequence[str], timeout_s: float, stdin: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command as ``subprocess.run`` does with captured output.

        Raises
        ------
        subprocess.TimeoutExpired
            When it takes longer.
        """
        if os.geteuid() == 0:
            self._hand_over()
        # Into files, whose size the limits bound; a pipe would fill this process's memory.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            done = subprocess.run(
                self.wrapped(command, timeout_s),
                input=stdin, stdout=out, stderr=err, timeout=timeout_s, check=False,
            )  # fmt: skip
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(
                list(command), done.returncode, out.read(), err.read()
            )

    def wrapped(self, command: Sequence[str], timeout_s: float) -> list[str]:
        """The command line that runs ``command`` confined."""
        own = Path(command[0]).is_relative_to(self.work) or command[0] == sys.executable
        bwrap = ["bwrap", "--unshare-user", "--disable-userns", "--unshare-ipc", "--unshare-pid"]
        bwrap += ["--unshare-net", "--unshare-uts", "--unshare-cgroup-try", "--new-session"]
        bwrap += ["--uid", str(NOBODY), "--gid", str(NOBODY), "--cap-drop", "ALL"]
        bwrap += [*self._mounts(own), "--proc", "/proc", "--dev", "/dev"]
        limits = LIMITS | {"cpu": max(1, int(timeout_s) + 1)}
        bound = ["prlimit", *(f"--{name}={limit}" for name, limit in limits.items()), "--"]
        program = os.path.realpath(command[0]) if command[0] == sys.executable else command[0]
        inside = ["env", "-C", str(self.work), program, *command[1:]]
        confined = [*bwrap, "--", "setpriv", "--no-new-privs", *bound, *inside]
        return [*self._as_nobody(), *confined] if os.geteuid() == 0 else confined

    def _as_nobody(self) -> list[str]:
        """How root becomes nobody, whose processes are counted and bounded, unlike root's.

        Root mounts the folders first, at places that nobody may enter; the box proper is then
        built of these, as any user builds it.
        """
        # Who becomes another user forgets with whom to die. So process 1 of a namespace, a shell,
        # stays root and dies with this process, and all others with it.
        alone = ["setpriv", "--pdeathsig=KILL", "unshare", "--pid", "--fork", "--kill-child"]
        alone += ["--mount-proc", "sh", "-c", '"$@"; exit $?', "sh"]
        bwrap = ["bwrap", *self._mounts(own=False), "--bind", "/proc", "/proc"]
        bwrap += ["--dev-bind", "/dev", "/dev", "--cap-drop", "ALL"]
        for needed in ("SETUID", "SETGID", "SETPCAP"):
            bwrap += ["--cap-add", f"CAP_{needed}"]
        drop = ["setpriv", "--no-new-privs", f"--reuid={NOBODY}", f"--regid={NOBODY}"]
        drop += ["--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
        return [*alone, *bwrap, "--", *drop]

    def _mounts(self, own: bool) -> list[str]:
        """What is seen of the machine; ``own``: the folder to work in is only read."""
        work = str(self.work)
        bwrap = ["--die-with-parent", "--clearenv"]
        bwrap += ["--setenv", "PATH", "/usr/bin:/bin", "--setenv", "LC_ALL", "C"]
        bwrap += ["--ro-bind", "/usr", "/usr"]
        for place in SYSTEM:
            path = Path(place)
            if path.is_symlink():
                bwrap += ["--symlink", os.readlink(path), place]
            elif path.is_dir():
                bwrap += ["--ro-bind", place, place]
        bwrap += ["--perms", "0755", "--dir", "/etc"]
        for place in ("/etc/alternatives", "/etc/ld.so.cache"):
            bwrap += ["--ro-bind-try", place, place]
        bwrap += ["--perms", "1777", "--size", str(SCRATCH_BYTES), "--tmpfs", "/tmp"]
        for folder in (Path(sys.base_prefix), *self.readable):
            bwrap += [*_folders_above(folder), "--ro-bind", str(folder), str(folder)]
        bwrap += _folders_above(self.work)
        return [*bwrap, "--ro-bind" if own else "--bind", work, work]

    def _hand_over(self) -> None:
        """The folder and what is in it belong to nobody from now on."""
        for path in (self.work, *self.work.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def _folders_above(path: Path) -> list[str]:
    """Empty folders that nobody may walk through, if the system has none."""
    known = (Path("/"), Path("/usr"), Path("/tmp"))
    above = [str(folder) for folder in reversed(path.parents) if folder not in known]
    return [word for folder in above for word in ("--perms", "0755", "--dir", folder)]


_box: ContextVar[Box | None] = ContextVar("box", default=None)


def box() -> Box | None:
    """Where commands are confined to now; None if they run as usual."""
    return _box.get()


@contextlib.contextmanager
def confined(work: Path, readable: Sequence[Path]) -> Iterator[None]:
    """Confine every command of :func:`export.toolchain.harness.run_command` within this block."""
    token = _box.set(Box(work.resolve(), [path.resolve() for path in readable]))
    try:
        yield
    finally:
        _box.reset(token)
