"""Do the runs of the papers' scenarios, and keep each as soon as it is finished."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import data.netsim
from data.netsim.cc import CONTROLS

if TYPE_CHECKING:
    from data.netsim.scenario import Scenario

Run = dict[str, float]
"""Metric -> value of one seed; ``flows.NAME`` is a flow's goodput (Mbit/s)."""

Results = dict[tuple[str, str], list[Run]]
"""(variant, control) -> runs in the order of seeds."""

_UNREAD = ("runner.py", "paper.py", "from_lab.py", "capacity.py", "events.py")
"""Files of the simulator on which no result depends."""


@dataclass(frozen=True)
class Task:
    """A run: its place among the results, and what is simulated."""

    scenario: str
    label: str
    cc: str
    seed: int
    spec: Scenario

    def controls(self) -> frozenset[str]:
        """Names of the congestion controls that take part."""
        named = {cc for flow in self.spec.flows for cc in [*(flow.ccs or []), flow.cc] if cc}
        return frozenset({*named, self.cc} & set(CONTROLS))

    def key(self) -> str:
        """Hash of all that the result depends on: settings, traces, control, seed, sources."""
        tree = self.spec.model_dump(mode="json", exclude={"title", "source", "paper", "variants"})
        digest = hashlib.sha256(sources(self.controls()).encode())
        digest.update(json.dumps([tree, self.cc, self.seed], sort_keys=True).encode())
        for link in self.spec.links.values():
            if link.trace is not None and Path(link.trace).is_file():
                digest.update(Path(link.trace).read_bytes())
        return digest.hexdigest()


@functools.cache
def sources(controls: frozenset[str]) -> str:
    """Hash of the simulator's sources; of controls, only those given and what they import."""
    root = Path(data.netsim.__file__).parent
    own = {name: module.rpartition(".")[2] for name, module in CONTROLS.items()}
    needed = {"reno", *(own[name] for name in controls)}
    while True:
        texts = [(root / "cc" / f"{stem}.py").read_text(encoding="utf-8") for stem in needed]
        more = {stem for text in texts for stem in re.findall(r"data\.netsim\.cc\.(\w+)", text)}
        if more <= needed:
            break
        needed |= more
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        foreign = path.parent.name == "cc" and path.stem in {*own.values()} - needed
        if path.name not in _UNREAD and not foreign:
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


class Kept:
    """Finished runs in ``runs.jsonl``; a line that a killed command left unfinished is ignored.

    Parameters
    ----------
    directory : Path
        Folder of the file, which is made if it isn't there.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / "runs.jsonl"
        self._runs: dict[str, Run] = {}
        self._lock = threading.Lock()
        self._file: IO[str]

    def __enter__(self) -> Self:
        """Read the finished runs, and open the file for more."""
        whole = True
        if self._path.is_file():
            for line in self._path.read_text(encoding="utf-8").splitlines(keepends=True):
                whole = line.endswith("\n")
                try:
                    self._runs.update(json.loads(line))
                except json.JSONDecodeError:
                    continue
        self._file = self._path.open("a", encoding="utf-8")
        if not whole:
            self._file.write("\n")
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()

    def run(self, task: Task) -> Run:
        """Metrics of a run: those that are kept, or simulated and kept now."""
        from data.netsim.metrics import simulate

        key = task.key()
        found = self.found(key)
        return found or self.keep(key, flat(simulate(task.spec, task.cc, task.seed)))

    def found(self, key: str) -> Run | None:
        """Metrics of a run that is kept."""
        return self._runs.get(key)

    def keep(self, key: str, run: Run) -> Run:
        """Keep the metrics of a run."""
        with self._lock:
            self._runs[key] = run
            self._file.write(json.dumps({key: run}) + "\n")
            self._file.flush()
        return run


def flat(result: dict[str, Any]) -> Run:
    """Metrics of `data.netsim.metrics.simulate` with each flow's goodput as one of them."""
    flows = {f"flows.{name}": rate for name, rate in result["flows"].items()}
    return {**{name: value for name, value in result.items() if name != "flows"}, **flows}
