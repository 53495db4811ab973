"""The ns-3 program of the dumbbell: built where Debian's libns3-dev is there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PROGRAM = HERE / "build" / "dumbbell"
SOURCE = HERE / "dumbbell.cc"


def built() -> bool:
    """Whether the program is there and up to date, after building it where that can be done."""
    if PROGRAM.exists() and PROGRAM.stat().st_mtime >= SOURCE.stat().st_mtime:
        return True
    tools = shutil.which("g++") and shutil.which("pkg-config")
    if not tools or subprocess.run(["pkg-config", "--exists", "ns3-core"]).returncode != 0:
        return False
    print("building benchmarks/ns3/dumbbell.cc", file=sys.stderr)
    return subprocess.run(["sh", str(HERE / "build.sh")], stdout=sys.stderr).returncode == 0
