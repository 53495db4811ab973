"""Runs code of others with as few rights as the machine can take away (bubblewrap).

No network, nothing of the machine but its programs and libraries, read-only; the user is nobody,
no privilege can be gained, and time, memory, files and processes are bounded.
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

NOBODY = 65534
LIMITS = {
    "as": 4 << 30,
    "fsize": 64 << 20,
    "nproc": 64,
    "nofile": 256,
    "core": 0,
}
"""``prlimit``'s names; memory is per process. CPU time is as long as a command may take."""
SCRATCH_BYTES = 64 << 20
TOOLS = ("bwrap", "setpriv", "prlimit", "env")
SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Beside /usr; links into it on most distributions, folders on others."""


def why_not() -> str:
    """Why code can't be confined here, and what mends it; empty where it can."""
    missing = [name for name in TOOLS if not shutil.which(name)]
    if "bwrap" in missing:
        return "no sandbox here: install bubblewrap (apt-get install bubblewrap)"
    if missing:
        return f"no sandbox here: {missing[0]} is missing: install util-linux and coreutils"
    with tempfile.TemporaryDirectory(prefix="cczoo-sandbox-") as work:
        try:
            done = Box(Path(work), ()).run(["true"], 20)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"bubblewrap doesn't run here: {error}"
    said = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode:
        reason = said[0] if said else f"status {done.returncode}"
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
        """As ``subprocess.run`` with captured output.

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
        work = str(self.work)
        root = os.geteuid() == 0
        bwrap = ["bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
        bwrap += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv"]
        bwrap += ["--setenv", "PATH", "/usr/bin:/bin", "--setenv", "LC_ALL", "C"]
        bwrap += ["--ro-bind", "/usr", "/usr"]
        for place in SYSTEM:
            path = Path(place)
            if path.is_symlink():
                bwrap += ["--symlink", os.readlink(path), place]
            elif path.is_dir():
                bwrap += ["--ro-bind", place, place]
        for place in ("/etc/alternatives", "/etc/ld.so.cache"):
            bwrap += ["--ro-bind-try", place, place]
        bwrap += ["--proc", "/proc", "--dev", "/dev"]
        bwrap += ["--perms", "1777", "--size", str(SCRATCH_BYTES), "--tmpfs", "/tmp"]
        for folder in (Path(sys.base_prefix), *self.readable):
            for parent in reversed(folder.parents):
                if parent not in (Path("/"), Path("/usr"), Path("/tmp")):
                    bwrap += ["--perms", "0755", "--dir", str(parent)]
            bwrap += ["--ro-bind", str(folder), str(folder)]
        bwrap += ["--ro-bind" if own else "--bind", work, work, "--cap-drop", "ALL"]
        # Root makes the mounts itself and then becomes nobody; others get a namespace of users.
        drop = ["setpriv", "--no-new-privs"]
        if root:
            bwrap += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
            bwrap += ["--cap-add", "CAP_SETPCAP"]
            drop += [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
            drop += ["--inh-caps=-all", "--bounding-set=-all"]
        else:
            bwrap += ["--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY)]
        limits = LIMITS | {"cpu": max(1, int(timeout_s) + 1)}
        bound = ["prlimit", *(f"--{name}={limit}" for name, limit in limits.items()), "--"]
        program = os.path.realpath(command[0]) if command[0] == sys.executable else command[0]
        # Last, since root without its capabilities couldn't enter a folder of nobody's.
        inside = ["env", "-C", work, program, *command[1:]]
        return [*bwrap, "--", *drop, *bound, *inside]

    def _hand_over(self) -> None:
        """The folder and what is in it belong to nobody from now on."""
        for path in (self.work, *self.work.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


_box: ContextVar[Box | None] = ContextVar("box", default=None)


def box() -> Box | None:
    """Where commands are confined to now; None where they run as usual."""
    return _box.get()


@contextlib.contextmanager
def confined(work: Path, readable: Sequence[Path]) -> Iterator[None]:
    """Confine every command of :func:`export.harness.run_command` within this block."""
    token = _box.set(Box(work.resolve(), [path.resolve() for path in readable]))
    try:
        yield
    finally:
        _box.reset(token)
