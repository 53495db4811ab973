"""Evaluate congestion controls on scenarios, over seeds, without any learning.

``python -m data.netsim.runner --scenario NAME[,NAME] --cc NAME[,NAME]|all --seeds N --json``
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from data import yaml_text
from data.errors import UserError, unknown_name
from data.netsim import scenario as scenarios
from data.netsim import traces
from data.netsim.cc import CONTROLS, module
from data.netsim.metrics import UNITS, simulate
from data.student import quantile

EXAMPLE = """examples:
  cczoo evaluate cc --list
  cczoo evaluate cc --scenario tcco-fig9-loss,macc-fig4 --cc cubic,bbr --seeds 10 --json
  cczoo evaluate cc --scenario my.yaml --cc all --set links.cell.trace=my.trace"""

MOST_SEEDS = 10_000
MOST_JOBS = 1024

Row = dict[str, Any]
Progress = Callable[[Iterable[Row], str, int], Iterable[Row]]
"""``progress(results, what, total)`` passes results on and shows how far they are."""


class Other(Protocol):
    """A control that acts from outside the simulator, such as a trained policy.

    Attributes
    ----------
    facts : mapping
        What its rows say besides.
    """

    facts: Mapping[str, Any]

    def check(self, scenario: scenarios.Scenario) -> object:
        """Refuse a scenario in which it can't be played, by a `UserError`."""
        ...

    def play(self, episodes: Sequence[tuple[scenarios.Scenario, int]]) -> list[Row]:
        """Run scenarios, each with a seed; as `data.netsim.metrics.simulate`."""
        ...


def evaluate(
    names: list[str],
    controllers: list[str],
    seeds: int = 10,
    settings: dict[str, Any] | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    others: Mapping[str, Other] | None = None,
) -> list[Row]:
    """Simulate every controller in every scenario.

    Parameters
    ----------
    names : list of str
        Scenario names or YAML files.
    controllers : list of str
        Names of `data.netsim.cc.CONTROLS` or of ``others``; ``["all"]`` for all of the former
        but ``agent``.
    seeds : int, optional
        Runs per scenario and controller, with seeds 0 to ``seeds - 1``.
    settings : mapping, optional
        Dotted key -> value laid over each scenario.
    jobs : int, optional
        Runs side by side (threads; the simulator holds no lock).
    progress : callable, optional
    others : mapping, optional
        Controls from outside, by the names that ``controllers`` gives them.

    Returns
    -------
    list of dict
        ``{scenario, variant, cc, seeds, metrics: {name: {mean, lo, hi}}, flows, paper}``, and the
        facts of a control from outside;
        lo and hi bound the mean with 95 % confidence (Student's t over seeds; None if there is
        one), ``paper`` has the publication's numbers by metric (``flows.NAME``: a flow's goodput).

    Raises
    ------
    UserError
        Unknown scenario, controller or setting; a scenario without flows to measure, or in which
        a control from outside can't be played.
    """
    others = others or {}
    if controllers == ["all"]:
        controllers = [name for name in CONTROLS if name != "agent"]
    for name in controllers:
        if name not in CONTROLS and name not in others:
            raise unknown_name("congestion control", name, [*CONTROLS, *others])
    plan = list(_plan(names, controllers, settings, others))
    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        tasks = [task for _, _, spec, _, run_with in plan
                 for task in _tasks(spec, run_with, seeds, others)]  # fmt: skip
        found: Iterable[Row] = chain.from_iterable(pool.map(lambda task: task(), tasks))
        results = iter(progress(found, "simulate", len(plan) * seeds) if progress else found)
        rows: list[Row] = []
        for name, label, spec, shown, _ in plan:
            runs = list(islice(results, seeds))
            rows.append(
                {
                    "scenario": name,
                    "variant": label,
                    "cc": shown,
                    "seeds": seeds,
                    "metrics": intervals([{**run, "flows": None} for run in runs]),
                    "flows": intervals([run["flows"] for run in runs]),
                    "paper": spec.paper.of(label, shown),
                    **(others[shown].facts if shown in others else {}),
                }
            )
        return rows


def _plan(
    names: list[str],
    controllers: list[str],
    settings: dict[str, Any] | None,
    others: Mapping[str, Other],
) -> Iterator[tuple[str, str, scenarios.Scenario, str, str]]:
    """Scenario, variant, what it is, the control to show and the one to run it with."""
    for name in names:
        for label, spec in scenarios.load(name, settings).items():
            if not any(flow.measure for flow in spec.flows):
                raise UserError(f"{name}: flows: none to measure: give at least one")
            check(spec)
            fixed, under_test = controls(spec, controllers)
            own = next((one for one in controllers if one not in others), "cubic")
            for controller in under_test:
                if controller in others:
                    others[controller].check(spec)
                yield name, label, spec, controller, own if fixed else controller


def _tasks(
    spec: scenarios.Scenario, control: str, seeds: int, others: Mapping[str, Other]
) -> list[Callable[[], list[Row]]]:
    """What is to be done for all seeds; controls from outside take them side by side."""
    if control in others:
        return [partial(others[control].play, [(spec, seed) for seed in range(seeds)])]
    return [partial(_simulated, spec, control, seed) for seed in range(seeds)]


def _simulated(spec: scenarios.Scenario, control: str, seed: int) -> list[Row]:
    return [simulate(spec, control, seed)]


def check(spec: scenarios.Scenario) -> None:
    """Read what a scenario names besides itself, before the first run.

    Raises
    ------
    UserError
        For an unreadable trace, an unknown kind of link to generate or an unknown control.
    """
    for link in spec.links.values():
        if link.trace is not None:
            traces.read(Path(link.trace))
        if link.generate is not None:
            traces.generate(link.generate.kind, link.generate.mean_mbps, 0, 1.0)
    for flow in spec.flows:
        for name in [flow.cc, *(flow.ccs or [])]:
            if name is not None and name not in CONTROLS:
                raise unknown_name("congestion control", name, CONTROLS)


def controls(spec: scenarios.Scenario, controllers: list[str]) -> tuple[bool, list[str]]:
    """Whether a scenario names the control of all its flows, and what to run it with.

    Such a scenario is run once, under the names of its own controls.
    """
    named = {flow.cc for flow in spec.flows if flow.measure}
    if None in named:
        return False, controllers
    return True, [",".join(sorted(map(str, named)))]


def intervals(runs: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Mean of each metric over runs that all have it, with its 95 % bounds; None for one run's."""
    result: dict[str, dict[str, Any]] = {}
    for key in runs[0]:
        values = [float(run[key]) for run in runs if run.get(key) is not None]
        if len(values) < len(runs):
            continue
        mean = float(np.mean(values))
        if len(values) == 1:
            result[key] = {"mean": mean, "lo": None, "hi": None}
            continue
        spread = float(np.std(values, ddof=1))
        half = quantile(0.95, len(values) - 1) * spread / len(values) ** 0.5
        result[key] = {"mean": mean, "lo": mean - half, "hi": mean + half}
    return result


def catalogue() -> dict[str, dict[str, str]]:
    """Scenarios, controllers and metrics, each with a line on it."""
    return {
        "scenarios": {
            name: next(iter(scenarios.load(name).values())).title for name in scenarios.names()
        },
        "controllers": {name: str(module(name).SUMMARY) for name in CONTROLS},
        "metrics": dict(UNITS),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the evaluation of congestion controls."""
    parser.add_argument("--scenario", help="names or YAML files, with commas between")
    parser.add_argument("--cc", default="all", help="controllers, with commas between, or all")
    parser.add_argument("--seeds", type=int, default=10, help="runs of each (default 10)")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side (default 1)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                        help="change a setting, such as links.cell.trace=FILE")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="show scenarios and controllers")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(
    args: argparse.Namespace,
    progress: Progress | None = None,
    others: Mapping[str, Other] | None = None,
) -> int:
    """Evaluate and print; ``others`` as for `evaluate`."""
    if args.list:
        print_catalogue(catalogue(), args.json)
        return 0
    if not args.scenario:
        raise UserError("give --scenario NAME[,NAME], or --list to see the names")
    if not 1 <= args.seeds <= MOST_SEEDS:
        raise UserError(f"--seeds: give a whole number from 1 to {MOST_SEEDS}")
    settings = yaml_text.assigned(args.set)
    if not 1 <= args.jobs <= MOST_JOBS:
        raise UserError(f"--jobs: give a whole number from 1 to {MOST_JOBS}")
    names, controllers = args.scenario.split(","), args.cc.split(",")
    rows = evaluate(names, controllers, args.seeds, settings, args.jobs, progress, others)
    if args.json:
        print(json.dumps(rows))
    else:
        _print_rows(rows)
    return 0


def print_catalogue(found: dict[str, dict[str, str]], as_json: bool) -> None:
    """Print what `catalogue` returns."""
    if as_json:
        print(json.dumps(found))
        return
    for part, lines in found.items():
        print(f"{part}:")
        for name, line in lines.items():
            print(f"  {name:<16} {line}")


SHOWN = (
    "goodput_mbps",
    "rtt_ms",
    "rtt_p95_ms",
    "queue_delay_ms",
    "loss_rate",
    "fct_ms",
    "jain",
)
"""Metrics that are always printed; others if the paper has them."""


def _print_rows(rows: list[Row]) -> None:
    """A table; the paper's number, if there is one, stands behind ours."""
    extra = dict.fromkeys(name for row in rows for name in row["paper"] if name not in SHOWN)
    extra |= dict.fromkeys(
        ["decision_us"] if any("decision_us" in r["metrics"] for r in rows) else []
    )
    shown = (*SHOWN, *extra)
    table = [["scenario", "cc", *shown]]
    for row in rows:
        label = f"{row['scenario']} {row['variant']}".strip()
        table.append([label, row["cc"], *(_cell(row, name) for name in shown)])
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    for line in table:
        print(line[0].ljust(widths[0]), line[1].ljust(widths[1]),
              *(cell.rjust(w) for cell, w in zip(line[2:], widths[2:], strict=True)),
              sep="  ")  # fmt: skip
    if any(row["paper"] for row in rows):
        print("mean [95 % interval]; after the stroke the paper's number (all: make papers)")


def _cell(row: Row, name: str) -> str:
    kind, _, flow = name.partition(".")
    value = row["flows"].get(flow) if kind == "flows" else row["metrics"].get(name)
    text = "-" if value is None else f"{value['mean']:.4g}"
    if value is not None and value["lo"] is not None:
        text += f" [{value['lo']:.4g}, {value['hi']:.4g}]"
    return f"{text} | {row['paper'][name]:g}" if name in row["paper"] else text


def main(argv: list[str] | None = None) -> int:
    """Command line; 2 when the user's input is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m data.netsim.runner",
        description=__doc__,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    try:
        return run(parser.parse_args(argv))
    except UserError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
