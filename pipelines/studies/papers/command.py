"""Simulate what the papers report of congestion controls, and print both side by side.

Every scenario of ``data/scenarios/netsim`` with ``paper.controllers`` becomes a section of the
page: our means with 95 % intervals over seeds, the paper's numbers, and which of its statements
hold. Trained agents play wherever the papers have theirs. Finished runs are kept: a command that
was killed goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.files import write_text
from pipelines.output import print_json, progress
from pipelines.standalone import answer, command_parser

if TYPE_CHECKING:
    from data.netsim.scenario import Scenario
    from models.closedloop import Player
    from pipelines.studies.papers.runs import Results

EXAMPLE = """\
examples:
  python -m pipelines.studies.papers.command --seeds 10 --out docs/papers.md
  python -m pipelines.studies.papers.command --scenario tcco-table2 --seeds 20 --json
  python -m pipelines.studies.papers.command --scenario macc-fig4 --json \\
      --agent macc=reports/rl/macc/seed-7"""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns 2 if the user's input is wrong."""
    from pipelines.studies.acting import add_argument

    parser = command_parser("pipelines.studies.papers.command", __doc__, EXAMPLE)
    parser.add_argument("--scenario", help="names or YAML files, with commas between (default all)")
    add_argument(parser)
    parser.add_argument("--seeds", type=int, default=10, help="runs of each (default 10)")
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side (default 2)")
    parser.add_argument("--work", type=Path, default=Path("data/interim/papers"),
                        help="where finished runs are kept")  # fmt: skip
    parser.add_argument("--out", type=Path, help="Markdown page to write; figures beside it")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    return answer(parser, run, argv)


def run(args: argparse.Namespace) -> int:
    """Do the simulations that aren't kept yet, judge the statements, write page and figures."""
    from data.errors import UserError
    from pipelines.studies.papers import figures as papers_figures
    from pipelines.studies.papers import page, rewards
    from pipelines.studies.papers.claims import judge

    if args.seeds < 2:
        raise UserError("--seeds: give a whole number of at least 2: an interval needs two runs")
    if args.out is None and not args.json:
        raise UserError("give --out FILE for the page, or --json to print the figures")
    from pipelines.studies import acting as trained

    agents = trained.with_untrained(trained.given(args.agent))
    sections = load(args.scenario.split(",") if args.scenario else None)
    results = simulate_all(sections, args.seeds, args.jobs, args.work, agents)
    if not args.scenario or rewards.NAME in args.scenario.split(","):
        rewards.add(sections, results, agents, args.seeds, args.work)
    verdicts = {name: judge(variants, results[name]) for name, variants in sections.items()}
    if args.out is not None:
        folder = args.out.with_suffix("")
        figures = papers_figures.write(sections, results, folder, args.seeds, agents)
        played = {cc for found in results.values() for _, cc in found}
        lines = [trained.line(name, one) for name, one in agents.items() if name in played]
        text = page.page(sections, results, verdicts, figures, args.seeds, lines)
        write_text(args.out, text)
    if args.json:
        print_json(page.figures_of(sections, results, verdicts))
    else:
        held = [v.verdict for found in verdicts.values() for v in found]
        print(f"{held.count('holds')} of {len(held)} statements hold → {args.out}")
    return 0


def load(names: list[str] | None) -> dict[str, dict[str, Scenario]]:
    """Scenarios to compare, by name, with the variants that other readings make.

    Raises
    ------
    UserError
        When a name is unknown, or a scenario's paper names no controls.
    """
    from data.errors import UserError
    from data.netsim import scenario as scenarios
    from pipelines.studies.papers.rewards import NAME

    found: dict[str, dict[str, Scenario]] = {}
    for name in names or scenarios.names():
        if name == NAME:
            continue
        variants = scenarios.load(name)
        paper = next(iter(variants.values())).paper
        if not paper.controllers:
            if names:
                raise UserError(f"{name}: no paper.controllers: nothing to compare it with")
            continue
        found[name] = dict(variants)
        for reading, other in paper.readings.items():
            for label, spec in scenarios.load(name, other.set).items():
                found[name][f"{label}, {reading}" if label else reading] = spec
    return found


def controllers(spec: Scenario, label: str) -> list[str]:
    """Controls that a variant is run with, which another reading may narrow."""
    for reading, other in spec.paper.readings.items():
        if label.endswith(reading) and other.controllers:
            return other.controllers
    return spec.paper.controllers


def simulate_all(
    sections: dict[str, dict[str, Scenario]],
    seeds: int,
    jobs: int,
    work: Path,
    agents: dict[str, Player] | None = None,
) -> dict[str, Results]:
    """Runs of all scenarios, variants, controls and seeds: those that are kept, or new ones.

    Returns
    -------
    dict
        Scenario -> (variant, control or agent) -> one dict of metrics for each seed.
    """
    from concurrent.futures import ThreadPoolExecutor
    from contextlib import nullcontext

    from pipelines.studies.papers import learned
    from pipelines.studies.papers.runs import Kept, Task

    tasks = [
        Task(name, label, cc, seed, spec)
        for name, variants in sections.items()
        for label, spec in variants.items()
        for cc in controllers(spec, label)
        for seed in range(seeds)
    ]
    more = [
        one
        for name, variants in sections.items()
        for one in learned.tasks(name, variants, agents or {}, seeds)
    ]
    results: dict[str, Results] = {name: {} for name in sections}
    alone: Any = nullcontext()
    if more:
        from models.one_thread import one_thread

        # Once for all threads: each would set back what another one needs.
        alone = one_thread()
    with Kept(work) as kept, alone, ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        done: Any = pool.map(kept.run, tasks)
        for task, run_ in zip(tasks, progress(done, "simulating", len(tasks)), strict=True):
            results[task.scenario].setdefault((task.label, task.cc), []).append(run_)
        done = pool.map(lambda one: learned.run(one, kept), more)
        for one, run_ in zip(more, progress(done, "agents", len(more)), strict=True):
            task = one.task
            results[task.scenario].setdefault((task.label, task.cc), []).append(run_)
    return results


if __name__ == "__main__":
    sys.exit(main())
