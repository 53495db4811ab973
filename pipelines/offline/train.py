"""``cczoo train offline AGENT``: learn a policy from logged decisions alone."""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.output import LINE_S

if TYPE_CHECKING:
    from models.offline.source import Source
    from models.offline.training import Learned

EXAMPLE = """examples:
  cczoo train offline tcco --method bc --decisions data/decisions/mine
  cczoo train offline tcco --method cql --decisions decisions.parquet --seeds 5 --set alpha=0.5
  cczoo train offline tcco --method iql --decisions data/decisions/mine --resume --json
  cczoo train offline tcco --method cql --decisions STORE --where "day >= 2026-11-01 and isp = 'x'"
  cczoo evaluate cc --scenario tcco-fig9a --cc cubic,reports/offline/tcco-bc/seed-7
  cczoo train tcco --start reports/offline/tcco-cql/seed-7    # go on online"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    from models.offline.methods import METHODS

    parser.add_argument("agent", choices=("tcco",), help="whose decisions these are")
    parser.add_argument(
        "--method",
        required=True,
        choices=tuple(METHODS),
        help="; ".join(f"{name}: {line.summary}" for name, line in METHODS.items()),
    )
    parser.add_argument(
        "--decisions",
        required=True,
        help="a file of decisions, a folder of them, or a store that has some",
    )
    parser.add_argument(
        "--where",
        metavar="CONDITION",
        help="with a store: the runs to take, as in \"day >= 2026-11-01 and behaviour = 'cubic'\"",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting (see models/offline/params.py); repeat it",
    )
    parser.add_argument("--seeds", type=int, default=1, help="trainings, one after the other")
    parser.add_argument(
        "--out", type=Path, help="checkpoints, curves (default: reports/offline/AGENT-METHOD)"
    )
    parser.add_argument("--resume", action="store_true", help="leave out seeds that are done")
    parser.add_argument("--no-track", action="store_true", help="send no curves to MLflow")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")


def run(args: argparse.Namespace) -> int:
    """Train all seeds."""
    from data.errors import UserError
    from models.offline import methods
    from models.offline.source import Source
    from pipelines import tracking
    from pipelines.fleet.decided import chosen
    from pipelines.output import print_json
    from pipelines.rl.changes import changes

    if args.seeds < 1:
        raise UserError("--seeds must be at least 1")
    settings = methods.settings(args.method, changes(args.set))
    out = args.out or Path("reports/offline") / f"{args.agent}-{args.method}"
    if not args.no_track:
        tracking.check_store()
    result: dict[str, Any] = {"agent": args.agent, "method": args.method, "runs": {}}
    with chosen(args.decisions, args.agent, args.where) as (path, selection):
        result["split"] = Source(path, settings, selection).key
        if selection is not None:
            result["selection"] = selection.plain()
        for seed in range(settings.seed, settings.seed + args.seeds):
            one = Source(path, settings.model_copy(update={"seed": seed}), selection)
            found = _trained(args, one, out / f"seed-{seed}")
            result["runs"][str(seed)] = {"folder": str(found.folder), **found.curve[-1]}
            print(f"kept {found.checkpoint}", file=sys.stderr)
    if args.json:
        print_json(result)
    return 0


def _trained(args: argparse.Namespace, source: Source, out: Path) -> Learned:
    from models.offline.training import learn
    from pipelines import tracking

    selected = source.selection
    shown = Shown(f"{args.method}, seed {source.settings.seed}")
    if args.no_track:
        return learn(args.method, source, out, resume=args.resume, watch=shown)
    with (
        tracking.reported(),
        tracking.run(
            "offline",
            f"{args.agent}-{args.method}-{source.settings.seed}",
            source.settings.model_dump(mode="json"),
            dataset_hash=fingerprint(source.files) if selected is None else selected.fingerprint,
            selection=None if selected is None else selected.plain(),
        ) as kept,
    ):
        found = learn(args.method, source, out, resume=args.resume, watch=shown)
        for point in found.curve:
            kept.log_metrics(point, step=int(point["updates"]))
    return found


class Shown:
    """Tells how far a training is: a line every ten seconds."""

    def __init__(self, what: str) -> None:
        self.what, self.begun = what, time.monotonic()
        self.last = self.begun

    def __call__(self, done: int, total: int, point: dict[str, float]) -> None:
        """Tell it, if the last time was long ago or this is the end."""
        now = time.monotonic()
        if now - self.last < LINE_S and done < total:
            return
        self.last = now
        left = (now - self.begun) / done * (total - done)
        losses = ", ".join(
            f"{name} {value:.3g}" for name, value in point.items() if name != "updates"
        )
        print(f"{self.what}: {done}/{total} updates, {left:.0f} s left; {losses}", file=sys.stderr)


def fingerprint(files: list[Path]) -> str:
    """SHA-256 of files' contents, in their order."""
    from data.files import file_hash

    return hashlib.sha256("".join(map(file_hash, files)).encode()).hexdigest()
