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
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from export.bpf.live import Controller
    from export.manifest import Bundle
    from pipelines.live.record import Task

LOG = "live.jsonl"
SCENARIOS = ("live-nsb", "live-nsb-greedy", "live-sb", "live-shift")
CONTROLS = ("smartsbd", "lia", "reno")
ATTEMPTS = 4
STAGGER_S = 0.7
# Ends of the traffic should not wait for whoever else uses the machine.
NICENESS = -10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("bundle", type=Path, help="made by cczoo export -t c -t bpf")
    parser.add_argument(
        "--scenario", default="live-nsb", help=f"one or more, by commas: {', '.join(SCENARIOS)}"
    )
    parser.add_argument("--cc", default=",".join(CONTROLS), help="by commas (default: %(default)s)")
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
    """Run what is not yet in ``<out>/live.jsonl``, then sum up; 1 where a run is missing."""
    from data.errors import UserError
    from export.bpf import live as live_kernel
    from pipelines.live import figures as live_figures
    from pipelines.live import summary as live_summary
    from pipelines.live import tables
    from pipelines.output import print_json

    if os.geteuid():
        raise UserError("the lab needs root for network namespaces; run it with sudo")
    bundle = live_kernel.open_bundle(args.bundle)
    model = str(bundle.manifest["model_hash"])
    args.out.mkdir(parents=True, exist_ok=True)
    records = read(args.out / LOG)
    asked = tasks(args)
    todo = [task for task in asked if task.key not in done(records, model)]
    if todo:
        print(f"{len(todo)} runs, {args.jobs} at once", file=sys.stderr)
        with (
            tempfile.TemporaryDirectory(prefix="cczoo-live-") as work,
            live_kernel.loaded(bundle, Path(work)) as controller,
        ):
            Campaign(args, bundle, controller).carry_out(todo)
        records = read(args.out / LOG)
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


def read(log: Path) -> list[dict[str, Any]]:
    """Records so far; none where there is no file. The unfinished end of a killed run is cut."""
    if not log.exists():
        return []
    text = log.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if len(whole) < len(text):
        os.truncate(log, len(whole))
    return [json.loads(line) for line in whole.splitlines()]


def done(records: list[dict[str, Any]], model: str) -> set[tuple[str, str, str, int]]:
    """Keys of valid runs of a model."""
    return {
        (r["scenario"], r["site"], r["cc"], r["repeat"])
        for r in records
        if r["kind"] == "run" and r["valid"] and r["model"] == model
    }


def tasks(args: argparse.Namespace) -> list[Task]:
    """Everything asked for; the controls of one repeat, which share its seed, side by side.

    Raises
    ------
    UserError
        Unknown scenario, site or congestion control.
    """
    from data.errors import unknown_name
    from data.lab import plan
    from pipelines.live.record import Task

    controls = args.cc.split(",")
    for cc in controls:
        if cc not in CONTROLS:
            raise unknown_name("congestion control", cc, CONTROLS)
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


class Campaign:
    """Runs side by side; what the host spoilt is run again."""

    def __init__(self, args: argparse.Namespace, bundle: Bundle, controller: Controller) -> None:
        from export.feature_code.sbd import made_for

        self.out: Path = args.out
        self.jobs: int = args.jobs
        self.slots = deque(range(args.first_slot, args.first_slot + args.jobs))
        self.model = str(bundle.manifest["model_hash"])
        self.features = bundle.features
        self.settings = made_for(bundle)[0]
        self.check: bool = args.check
        self.controller = controller
        self.lock = threading.Lock()
        self.next_start_s = 0.0

    def carry_out(self, todo: list[Task]) -> None:
        """Do all tasks; what the kernel's counters say of the time is a record too."""
        from data.lab import build, coupled
        from export.bpf import live as live_kernel

        coupled.ensure(build.TARGETS["lia"])
        programs = {
            "cczoo_sbd": self.controller.programs,
            "bpf_lia": live_kernel.operations(coupled.NAME),
        }
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
        with live_kernel.statistics():
            before = {name: live_kernel.counts(p) for name, p in programs.items()}
            with ThreadPoolExecutor(self.jobs) as pool:
                list(pool.map(self._do, todo))
            bpf = {
                name: live_kernel.since(before[name], live_kernel.counts(p))
                for name, p in programs.items()
            }
        self._append({"kind": "session", "model": self.model, "runs": len(todo), "bpf": bpf})

    def _do(self, task: Task) -> None:
        from dataclasses import replace

        with self.lock:
            slot = self.slots.popleft()
        try:
            for attempt in range(ATTEMPTS):
                kept = self._attempt(replace(task, attempt=attempt), slot)
                self._append(kept)
                self._say(task, kept)
                if kept["valid"]:
                    return
        finally:
            with self.lock:
                self.slots.append(slot)

    def _attempt(self, task: Task, slot: int) -> dict[str, Any]:
        from data.lab import agent
        from data.lab.measure import Live
        from data.lab.run import run as run_lab
        from pipelines.live import check
        from pipelines.live.record import record

        logs = self.out / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        verdicts = logs / f"{task.name}.verdicts.jsonl"
        samples = logs / f"{task.name}.samples" if self.check else None
        controller = self.controller
        live = Live(task.cc)
        if task.cc == "smartsbd":
            live = Live(
                controller.name,
                lambda where: agent.command(
                    controller.agent,
                    controller.decisions,
                    where,
                    task.drawn.first,
                    verdicts,
                    samples,
                ),
            )
        with self.lock:
            now_s = time.monotonic()
            self.next_start_s = max(now_s, self.next_start_s + STAGGER_S)
            wait_s = self.next_start_s - now_s
        time.sleep(wait_s)
        result = run_lab(
            task.drawn, logs, slot, task.seed, task.name, probe="bpf", live=live
        )  # fmt: skip
        log = verdicts if live.agent and "traffic" in result.record else None
        kept = record(task, result.record, log, self.model)
        if log and samples:
            kept["check"] = check.compare(kept, samples, self.features, self.settings)
        return kept

    def _append(self, kept: dict[str, Any]) -> None:
        with self.lock, (self.out / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(kept, separators=(",", ":")) + "\n")

    def _say(self, task: Task, kept: dict[str, Any]) -> None:
        what = "valid" if kept["valid"] else f"invalid ({', '.join(kept['reasons'])})"
        print(f"{task.name}: {what}", file=sys.stderr, flush=True)
