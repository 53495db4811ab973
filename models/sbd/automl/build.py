"""Build the environment of auto-sklearn: ``make automl``.

auto-sklearn 0.15.0 is no longer maintained and wants packages that the rest of the project has
long left behind. Python 3.9 has wheels for most of them; with 3.11 scikit-learn is outside
auto-sklearn's own pin (docs/automl.md). Whatever has to be compiled is kept as a wheel: a killed
build is taken up again where it ended, and a second one does nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from data.errors import UserError
from models.sbd.automl import environment

VERSIONS = ("3.9", "3.11")
"""Versions of Python that can carry the environment, the better one first."""
COMPILED = ("pyrfr", "ConfigSpace", "auto-sklearn")
"""Packages without wheels; auto-sklearn has nothing to compile but comes as source too."""
TOOLS = ("pip", "setuptools", "wheel", "numpy", "Cython", "swig")
"""Packages that the former are built with."""
LOOK = (
    "import os, ssl, sys, sysconfig, ctypes, lzma; print('%d.%d' % sys.version_info[:2], "
    "os.path.isfile(os.path.join(sysconfig.get_paths()['include'], 'Python.h')))"
)


@dataclass(frozen=True)
class Interpreter:
    """A Python that could carry the environment."""

    path: str
    version: str
    headers: bool


def looked_at(path: str) -> Interpreter | None:
    """Version and headers of an interpreter; None if it doesn't run or lacks modules."""
    try:
        done = subprocess.run(
            [path, "-c", LOOK], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.split()
    if done.returncode or len(words) != 2:
        return None
    return Interpreter(path, words[0], words[1] == "True")


def candidates(uv: str) -> list[str]:
    """Paths at which interpreters of the wanted versions may be, the best first."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = []
    for version in VERSIONS:
        found.append(shutil.which(f"python{version}") or "")
        found += [str(path / "bin" / "python") for path in sorted(pyenv.glob(f"{version}.*"))]
        command = [uv, "python", "find", "--no-project", "--no-python-downloads", version]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found.append(done.stdout.strip())
    return [path for path in found if path]


def choose(given: str | None, uv: str) -> Interpreter:
    """Choose the interpreter to build with.

    Raises
    ------
    UserError
        When none fits.
    """
    usable = [looked_at(path) for path in ([given] if given else candidates(uv))]
    fitting = [one for one in usable if one and one.version in VERSIONS and one.headers]
    if fitting:
        return fitting[0]
    bare = [one for one in usable if one and one.version in VERSIONS]
    if bare:
        raise UserError(
            f"{bare[0].path} has no Python.h to compile against: install python"
            f"{bare[0].version}-dev, or name another with AUTOML_PYTHON=PATH"
        )
    where = f"{given} isn't one" if given else "none was found"
    raise UserError(
        f"auto-sklearn needs Python {' or '.join(VERSIONS)}, {where}: name one with "
        "AUTOML_PYTHON=PATH, or get one with `uv python install 3.9`"
    )


class Build:
    """A build of the environment, with its folder and its log."""

    def __init__(self, home: Path, uv: str, python: Interpreter) -> None:
        self.home, self.uv, self.python = home, uv, python
        self.env = environment.interpreter(home)
        self.wheels = home / "wheels" / f"py{python.version}"
        self.log = home / "build.log"

    def run(self) -> None:
        """Make what is missing; the stamp is written last."""
        self.wheels.mkdir(parents=True, exist_ok=True)
        self.log.write_text("", encoding="utf-8")
        begun = self.home / "begun.json"
        key = json.dumps([self.python.path, environment.requirements_hash()])
        (self.home / "stamp.json").unlink(missing_ok=True)
        if not begun.is_file() or begun.read_text(encoding="utf-8") != key:
            shutil.rmtree(self.env.parents[1], ignore_errors=True)
            begun.write_text(key, encoding="utf-8")
        if not self.env.exists():
            self._do("environment", self.uv, "venv", "--quiet", "--no-project", "--python",
                     self.python.path, str(self.env.parents[1]))  # fmt: skip
        pins = pinned()
        self._install("tools", [pin for name in TOOLS for pin in pins[name]])
        for name in COMPILED:
            self._wheel(name, pins[name][0])
        self._install("packages", ["-r", str(environment.REQUIREMENTS)])
        self._do("check", str(self.env), "-c", "import autosklearn.classification")
        stamp = {"python": self.python.version, "requirements": environment.requirements_hash()}
        part = self.home / "stamp.json.part"
        part.write_text(json.dumps(stamp) + "\n", encoding="utf-8")
        part.replace(self.home / "stamp.json")

    def _install(self, what: str, packages: Sequence[str]) -> None:
        self._do(what, self.uv, "pip", "install", "--no-config", "--python", str(self.env),
                 "--no-deps", "--no-build-isolation", "--find-links", str(self.wheels),
                 *packages)  # fmt: skip

    def _wheel(self, name: str, pin: str) -> None:
        plain = name.lower().replace("-", "_")
        if any(path.name.lower().startswith(f"{plain}-") for path in self.wheels.glob("*.whl")):
            print(f"automl: {name}: built before", flush=True)
            return
        with tempfile.TemporaryDirectory(dir=self.home) as held:
            self._do(f"compile {pin}", str(self.env), "-m", "pip", "wheel", "--quiet",
                     "--disable-pip-version-check", "--no-deps", "--no-build-isolation",
                     "--wheel-dir", held, pin)  # fmt: skip
            for wheel in Path(held).glob("*.whl"):
                wheel.replace(self.wheels / wheel.name)

    def _do(self, what: str, *command: str) -> None:
        print(f"automl: {what}", flush=True)
        search = os.pathsep.join([str(self.env.parent), os.environ.get("PATH", "")])
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            code = subprocess.run(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PATH": search, "PYTHONNOUSERSITE": "1"},
                check=False,
            ).returncode
        if code:
            last = self.log.read_text(encoding="utf-8").strip().splitlines()[-1]
            raise UserError(f"{what} failed: {last}: see {self.log}, then run it again")


def pinned() -> dict[str, list[str]]:
    """Lines of the requirements per package, one for each version of Python that differs."""
    found: dict[str, list[str]] = {}
    for line in environment.REQUIREMENTS.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            found.setdefault(line.split("==")[0], []).append(line)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Build the environment, unless it is there."""
    parser = argparse.ArgumentParser(description="Build the environment of auto-sklearn.")
    parser.add_argument("--python", help=f"interpreter ({' or '.join(VERSIONS)}) to build with")
    parser.add_argument("--uv", default="uv", help="uv's path (default: %(default)s)")
    parser.add_argument("--home", type=Path, default=environment.HOME)
    args = parser.parse_args(argv)
    home: Path = args.home.absolute()
    if environment.is_built(home):
        print(f"automl: {home} is built (Python {environment.stamp(home)['python']})")
        return 0
    try:
        if not shutil.which("g++"):
            raise UserError("no C++ compiler to build auto-sklearn's parts with: install g++")
        python = choose(args.python or os.environ.get("AUTOML_PYTHON"), args.uv)
        print(f"automl: into {home} with Python {python.version} ({python.path})", flush=True)
        Build(home, args.uv, python).run()
    except UserError as mistake:
        print(f"automl: {mistake}", file=sys.stderr)
        return 2
    print(f"automl: {home} is built (Python {environment.stamp(home)['python']})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
