"""Families that a user's files make: capacity traces of a folder, and scenario files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from data.errors import UserError
from data.files import file_hash, write_text
from data.netsim import runner, scenario, traces
from data.netsim.scenario import Scenario
from pipelines.league.cut import cut
from pipelines.league.draw import EACH, SEED, Drawn, packets, pick, tree
from pipelines.league.families import FAMILIES

SEEDS = 3
"""Runs of a scenario file, which may leave starts and losses to chance."""


def of_traces(
    folder: Path, work: Path, seed: int = SEED, each: int = EACH
) -> tuple[list[Drawn], list[str]]:
    """Scenarios of one flow on each capacity trace of a folder, and what could not be read.

    Each trace is played from a drawn start, with base RTT and queue of the ranges of the family
    ``traces``; several times if there are fewer traces than ``each``.

    Parameters
    ----------
    folder : Path
        Files that `data.netsim.traces.read` knows; hidden ones are left out.
    work : Path
        Where the parts that are played are written.

    Returns
    -------
    drawn : list of Drawn
    refused : list of str
        One line for each file that is no capacity trace.

    Raises
    ------
    UserError
        When the folder isn't one or holds no capacity trace at all.
    """
    if not folder.is_dir():
        raise UserError(f"--traces {folder}: no such folder: give one with capacity traces")
    files = sorted(
        path for path in folder.rglob("*")
        if path.is_file() and not any(p.startswith(".") for p in path.relative_to(folder).parts)
    )  # fmt: skip
    good: dict[Path, traces.Series] = {}
    refused = []
    for path in files:
        try:
            good[path] = traces.read(path)
        except UserError as error:
            refused.append(str(error))
    if not good:
        why = f": {refused[0]}" if refused else ""
        raise UserError(f"--traces {folder}: no capacity trace among {len(files)} files{why}")
    drawn = []
    for path, series in good.items():
        source = file_hash(path)
        for i in range(-(-each // len(good))):
            label = f"own-traces/{path.relative_to(folder)}-{i:02d}"
            rng = np.random.default_rng([seed, int(source[:8], 16), i])
            part = work / "traces" / f"{source[:16]}-{seed}-{i:02d}.trace"
            spec = _on_trace(series, part, rng, label)
            drawn.append(Drawn("own-traces", label, i, spec, f"{source} {i}"))
    return drawn, refused


def _on_trace(series: traces.Series, part: Path, rng: np.random.Generator, label: str) -> Scenario:
    ranges = FAMILIES["traces"].ranges
    rtt, span_ms = pick(rng, ranges, "rtt_ms"), pick(rng, ranges, "queue_ms")
    lines, mean_mbps = cut(series, rng)
    write_text(part, "\n".join(lines) + "\n")
    link = {"trace": str(part), "delay_ms": rtt / 2, "queue_packets": packets(mean_mbps, span_ms)}
    # The window is reckoned with the mean rate, as the queue is.
    reckoned = tree({"link": {**link, "rate_mbps": mean_mbps}}, ["link"])
    reckoned["links"] = {"link": link, "link_back": {"delay_ms": rtt / 2}}
    return Scenario.parse({**reckoned, "bottleneck": "link"}, label)


def of_scenarios(names: Sequence[str]) -> list[Drawn]:
    """Scenarios of a user's files or of the project's names, each variant with several seeds.

    Raises
    ------
    UserError
        For an unreadable or unknown one, one that is given twice, or one in which no flow
        runs the control under test.
    """
    drawn = []
    seen: set[Path] = set()
    for name in names:
        if Path(name).resolve() in seen:
            raise UserError(f"--scenario: {name} is there twice: name each file once")
        seen.add(Path(name).resolve())
        for label, spec in scenario.load(name).items():
            runner.check(spec)
            if not any(flow.measure and flow.cc is None and not flow.ccs for flow in spec.flows):
                raise UserError(f"{name}: every flow names its control: leave cc out of one")
            shown = " ".join(filter(None, [f"own-scenarios/{name}", label]))
            drawn += [Drawn("own-scenarios", f"{shown} seed {i}", i, spec) for i in range(SEEDS)]
    return drawn


def report(refused: Sequence[str], folder: Path) -> None:
    """Tell on stderr how many files were no capacity traces, and why the first few aren't."""
    if not refused:
        return
    print(f"{folder}: {len(refused)} files left out, which are no capacity traces:",
          file=sys.stderr)  # fmt: skip
    for line in refused[:5]:
        print(f"  {line}", file=sys.stderr)
    if len(refused) > 5:
        print(f"  and {len(refused) - 5} more", file=sys.stderr)
