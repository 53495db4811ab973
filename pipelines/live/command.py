"""`cczoo lab live`: an exported model switches a live connection's congestion control.

The shapes of smartsbd.txt section 5.3: throughput without a shared bottleneck (Fig. 8),
friendliness at one (Fig. 9), a bottleneck that moves (Fig. 10); costs as in section 5.4.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.live.record import Task

SCENARIOS = ("live-nsb", "live-nsb-greedy", "live-sb", "live-shift")
CONTROLS = ("smartsbd", "lia", "reno")
KNOWN = (*CONTROLS, "mpcdg")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("bundle", type=Path, help="made by cczoo export -t c -t bpf")
    parser.add_argument(
        "--scenario", default="live-nsb", help=f"one or more, by commas: {', '.join(SCENARIOS)}"
    )
    parser.add_argument(
        "--cc",
        default=",".join(CONTROLS),
        help=f"by commas, of {', '.join(KNOWN)} (default: %(default)s)",
    )
    parser.add_argument("--sites", help="only these of the scenario's, by commas")
    parser.add_argument("--repeats", type=int, help="of each site (default: the scenario's, 5)")
    parser.add_argument(
        "--duration", type=float, help="of a run in s (default: the scenario's; not of live-shift)"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for records and figures")
    parser.add_argument("--jobs", type=int, default=4, help="labs at once (default 4)")
    parser.add_argument(
        "--check", action="store_true", help="compute each window's features in Python too"
    )
    parser.add_argument("--first-slot", type=int, default=60, help="number of the first lab")


def run(args: argparse.Namespace) -> int:
    """Do the runs not yet in ``<out>/live.jsonl``, then sum up; returns 1 if one is missing."""
    from data.errors import UserError
    from data.lab.runs import resume
    from export.bpf import live as live_kernel
    from pipelines.live import figures as live_figures
    from pipelines.live import runs as live_runs
    from pipelines.live import summary as live_summary
    from pipelines.live import tables
    from pipelines.output import print_json

    if os.geteuid():
        raise UserError("the lab needs root for network namespaces; run it with sudo")
    bundle = live_kernel.open_bundle(args.bundle)
    model = str(bundle.manifest["model_hash"])
    args.out.mkdir(parents=True, exist_ok=True)
    log = args.out / live_runs.LOG
    records = resume(log)
    asked = tasks(args)
    todo = [task for task in asked if task.key not in done(records, model)]
    if todo:
        print(f"{len(todo)} runs, {args.jobs} at once", file=sys.stderr)
        with (
            tempfile.TemporaryDirectory(prefix="cczoo-live-") as work,
            live_kernel.loaded(bundle, Path(work)) as controller,
        ):
            slots = range(args.first_slot, args.first_slot + args.jobs)
            live_runs.carry_out(todo, slots, args.out, bundle, controller, check=args.check)
        records = resume(log)
    summary = {
        "kernel": platform.release(),
        "name": bundle.manifest["name"],
        **live_summary.summarise([r for r in records if r["model"] == model]),
    }
    (args.out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    figures = live_figures.write([r for r in records if r["model"] == model], args.out)
    missing = {task.key for task in asked} - done(records, model)
    if args.json:
        print_json(summary)
    else:
        print(tables.markdown(summary))
        print(f"{args.out}: summary.json, {', '.join(figures)}", file=sys.stderr)
    for scenario, site, cc, repeat in sorted(missing):
        print(f"no valid run: {scenario} {site} {cc} {repeat}", file=sys.stderr)
    return 1 if missing else 0


def done(records: list[dict[str, Any]], model: str) -> set[tuple[str, str, str, int]]:
    """Keys of valid runs of a model."""
    return {
        (r["scenario"], r["site"], r["cc"], r["repeat"])
        for r in records
        if r["kind"] == "run" and r["valid"] and r["model"] == model
    }


def tasks(args: argparse.Namespace) -> list[Task]:
    """All tasks asked for; the controls of one repeat, which share its seed, are side by side.

    Raises
    ------
    UserError
        When a scenario, site or congestion control is unknown.
    """
    from data.errors import unknown_name
    from data.lab import plan
    from pipelines.live.record import Task

    controls = args.cc.split(",")
    for cc in controls:
        if cc not in KNOWN:
            raise unknown_name("congestion control", cc, KNOWN)
    found: list[Task] = []
    for scenario in args.scenario.split(","):
        if scenario not in SCENARIOS and not Path(scenario).is_file():
            raise unknown_name("live scenario", scenario, SCENARIOS)
        campaign = plan.load(scenario)
        sources = {source.name: source for source in plan.sources(campaign)}
        sites = args.sites.split(",") if args.sites else list(sources)
        for site in sites:
            if site not in sources:
                raise unknown_name("site", site, sources)
        most = args.repeats or max(sources[site].target for site in sites)
        for repeat in range(most):
            for site in sites:
                seed = plan.seed_of(campaign, site, repeat)
                drawn = sources[site].draw(seed)
                if args.duration and not any(s.schedule for s in drawn.stages.values()):
                    drawn = drawn.model_copy(update={"duration_s": args.duration})
                name = campaign.campaign
                found += [Task(name, site, cc, repeat, seed, drawn) for cc in controls]
    return found
