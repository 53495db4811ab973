"""`cczoo lab`: real kernel logs from real MPTCP over emulated paths."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from data.lab.state import Progress

EXAMPLE = """examples:
  cczoo lab doctor
  cczoo lab run smartsbd-sb --out /tmp/lab
  cczoo lab collect smartsbd-paper --out data/raw/smartsbd-paper --jobs 12"""
HELP = "collect real kernel logs from MPTCP over emulated paths (needs root)"
PLAIN_REPORT_S = 15.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare doctor, clean, run, collect, live and drive."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def action(name: str, text: str, example: str) -> argparse.ArgumentParser:
        sub = actions.add_parser(
            name,
            help=text,
            description=text,
            epilog=f"example: {example}",
        )
        sub.add_argument("--json", action="store_true", help="print the result as JSON alone")
        return sub

    action("doctor", "what the lab needs: found or missing", "cczoo lab doctor")
    clean = action("clean", "remove what a killed run left; safe twice", "cczoo lab clean")
    clean.add_argument("--slot", type=int, help="only this lab's remains (default: all labs)")
    one = action(
        "run", "collect one labelled connection", "cczoo lab run smartsbd-sb --out /tmp/lab"
    )
    one.add_argument("scenario", help="a YAML file or a name in data/scenarios")
    one.add_argument("--out", type=Path, required=True, help="folder for the log")
    one.add_argument("--seed", type=int, default=1, help="of the repetition (default 1)")
    one.add_argument("--slot", type=int, default=90, help="lab number on this machine")
    one.add_argument("--keep-csv", action="store_true", help="keep all that the probe wrote too")
    many = action(
        "collect",
        "collect a campaign, resumable",
        "cczoo lab collect smartsbd-paper --out data/raw/smartsbd-paper --jobs 12",
    )
    many.add_argument("campaign", help="a YAML file or a name in data/scenarios")
    many.add_argument("--out", type=Path, required=True, help="folder for logs and labels")
    many.add_argument("--jobs", type=int, default=12, help="labs at once (default 12)")
    many.add_argument("--limit", type=int, help="at most this many runs now")
    many.add_argument("--time-budget-s", type=float, help="begin no run that ends later")
    many.add_argument("--first-slot", type=int, default=1, help="number of the first lab")
    live = action(
        "live",
        "let an exported model switch a live connection's congestion control",
        "cczoo lab live build/smartsbd-dt --scenario live-nsb,live-sb --out /tmp/live",
    )
    from pipelines.live import command as live_action

    live_action.add_arguments(live)
    drive = action(
        "drive",
        "let an exported policy set the windows of live connections",
        "cczoo lab drive tcco --scenario drive-dual --out /tmp/drive",
    )
    from pipelines.drive import command as drive_action

    drive_action.add_arguments(drive)
    for sub in (one, many):
        sub.add_argument(
            "--probe", choices=("bpf", "ftrace"), help="default: bpf, or ftrace where it's missing"
        )


def run(args: argparse.Namespace) -> int:
    """Carry out one action; 0 when all is well, 1 when the work failed."""
    return ACTIONS[args.action](args)


def _emit(args: argparse.Namespace, result: Any, text: str) -> None:
    print(json.dumps(result, indent=2) if args.json else text)


def _doctor(args: argparse.Namespace) -> int:
    from data.lab import doctor

    checks = doctor.examine()
    ok = all(check.found for check in checks if check.needed)
    lines = [
        f"{'ok     ' if c.found else 'MISSING' if c.needed else 'absent '} {c.name}"
        + ("" if c.found else f"  -> {c.mend}")
        for c in checks
    ]
    _emit(args, {"ok": ok, "checks": [c.as_dict() for c in checks]}, "\n".join(lines))
    return 0 if ok else 1


def _clean(args: argparse.Namespace) -> int:
    from data.lab import clean

    removed = clean.clean(args.slot)
    text = "\n".join(f"removed {kind}: {', '.join(names)}" for kind, names in removed.items())
    _emit(args, removed, text or "nothing to remove")
    return 0


def _run(args: argparse.Namespace) -> int:
    from data.lab import scenario
    from data.lab.record import summary
    from data.lab.run import run as run_one

    drawn = scenario.load(args.scenario).varied(args.seed)
    what = drawn.label or drawn.case or "plain TCP"
    print(f"{what} for {drawn.duration_s:g} s ...", file=sys.stderr)
    result = run_one(
        drawn, args.out, args.slot, args.seed, keep_csv=args.keep_csv, probe=args.probe
    )
    short = summary(result)
    text = "\n".join(f"{key}: {value}" for key, value in short.items())
    _emit(args, short, text)
    return 0 if result.valid else 1


def _collect(args: argparse.Namespace) -> int:
    from data.lab import plan, schedule

    loaded = plan.load(args.campaign)
    show, close = _bar() if sys.stderr.isatty() else (_lines(), lambda: None)
    try:
        result = schedule.collect(
            loaded,
            args.out,
            args.jobs,
            limit=args.limit,
            time_budget_s=args.time_budget_s,
            first_slot=args.first_slot,
            probe=args.probe,
            report=show,
        )
    finally:
        close()
    text = "\n".join(f"{key}: {value}" for key, value in result.items())
    _emit(args, result, text)
    return 0 if result["valid"] else 1


def _live(args: argparse.Namespace) -> int:
    from pipelines.live import command

    return command.run(args)


def _drive(args: argparse.Namespace) -> int:
    from pipelines.drive import command

    return command.run(args)


def _words(now: Progress) -> str:
    eta = "?" if now.eta_s is None else f"{now.eta_s / 60:.0f} min"
    return (
        f"{now.valid}/{now.target} valid, {now.invalid} invalid, {now.running} running "
        f"(of {now.allowed}), steal {100 * now.steal:.1f} %, ETA {eta}"
    )


def _lines() -> Callable[[Progress], None]:
    last = 0.0

    def show(now: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= PLAIN_REPORT_S:
            last = time.monotonic()
            print(_words(now), file=sys.stderr, flush=True)

    return show


def _bar() -> tuple[Callable[[Progress], None], Callable[[], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TextColumn("{task.description}"))
    bar = Bar(*columns, console=Console(stderr=True))
    task = bar.add_task("starting")
    bar.start()

    def show(now: Progress) -> None:
        bar.update(task, completed=now.valid, total=now.target, description=_words(now))

    return show, bar.stop


ACTIONS = {"doctor": _doctor, "clean": _clean, "run": _run, "collect": _collect, "live": _live,
           "drive": _drive}  # fmt: skip


def main() -> int:
    """Run as `python -m pipelines.lab`."""
    from data.errors import UserError

    parser = argparse.ArgumentParser(
        prog="cczoo lab",
        description=HELP,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    try:
        return run(parser.parse_args())
    except UserError as error:
        print(f"cczoo lab: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
