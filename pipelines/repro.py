"""``make repro``: run the pipeline, and keep this checkout's ``dvc.lock`` apart from git's.

``dvc.lock`` holds hashes of everything that the pipeline makes. The one in git is of the run that
the released models come from; times, dates and last digits of floats are each machine's own, so a
run anywhere else has another. It is kept in ``.make/dvc.lock``, where the next run goes on from,
and git's comes back into its place. If ``dvc.lock`` has been changed already (``dvc repro``,
``dvc exp run``), it is DVC's and the user's business, and stays.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

LOCK = Path("dvc.lock")
OWN = Path(".make/dvc.lock")
BUSY = Path(".make/dvc.lock.busy")
"""Exists while ``dvc.lock`` is this checkout's own; a run that was killed leaves it behind."""


def main(arguments: Sequence[str]) -> int:
    """Run ``dvc repro`` with the arguments given; returns its exit status."""
    ours = BUSY.is_file() or _as_in_git()
    if ours:
        OWN.parent.mkdir(exist_ok=True)
        if OWN.is_file() and not BUSY.is_file():
            shutil.copy(OWN, LOCK)
        BUSY.touch()
    try:
        # DVC runs in a process of its own: an interrupt reaches both, and it ends first.
        return subprocess.run(["dvc", "repro", *arguments], check=False).returncode
    except KeyboardInterrupt:
        return 130
    finally:
        if ours:
            _give_back()


def _give_back() -> None:
    if LOCK.is_file():
        part = OWN.with_name(f"{OWN.name}.part")
        shutil.copy(LOCK, part)
        part.replace(OWN)
    _git("checkout", "--quiet", "--", str(LOCK))
    BUSY.unlink()


def _as_in_git() -> bool:
    """Whether ``dvc.lock`` is tracked and unchanged; never without git."""
    tracked = _git("ls-files", "--error-unmatch", str(LOCK)) == 0
    return tracked and _git("diff", "--quiet", "HEAD", "--", str(LOCK)) == 0


def _git(*arguments: str) -> int:
    try:
        return subprocess.run(["git", *arguments], capture_output=True, check=False).returncode
    except FileNotFoundError:
        return 127


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
