"""``cczoo offline estimate``: what logs say that a policy is worth, and how far to trust it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.output import print_json, progress

if TYPE_CHECKING:
    from models.offline.acting import Acting
    from models.offline.params import Evaluation

EXAMPLE = """examples:
  cczoo offline estimate reports/offline/tcco-iql/seed-7 --decisions build/decisions.parquet
  cczoo offline estimate mine/seed-7 --decisions data/mine --against cubic --json
  cczoo offline estimate logged:cubic --decisions data/mine     # how near it comes to what is known
  cczoo offline estimate reports/offline/tcco-cql/seed-7 --decisions data/mine --out estimate.json

The policy is a training's folder, or logged:CONTROL, a clone of a control among the logs. Runs that
the training learned from aren't judged by. Exit status 1: nothing can be said, for the reasons
given."""
LOGGED = "logged:"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("policy", metavar="POLICY", help="a training's folder, or logged:CONTROL")
    parser.add_argument(
        "--decisions", type=Path, required=True, help="a file of decisions, or a folder of them"
    )
    parser.add_argument(
        "--against", metavar="CC", help="judge in runs of this control alone (default: in all)"
    )
    parser.add_argument(
        "--starts", choices=("every", "first"), default="every",
        help="from decisions all along a run on, or from its first alone (default %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="a setting (Evaluation in models/offline/params.py); repeat it",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, help="keep the figures as JSON")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def run(args: argparse.Namespace) -> int:
    """Fit, weigh and print."""
    import json

    from data.errors import UserError
    from data.files import write_text
    from models.offline.acting import opened, settings_of
    from models.one_thread import one_thread
    from pipelines.offline import identity
    from pipelines.offline.given import evaluation
    from pipelines.rl.changes import changes

    if args.out is not None and args.out.is_dir():
        raise UserError(f"--out {args.out}: is a directory: give a file name")
    logged = args.policy.startswith(LOGGED)
    folder = Path(args.policy)
    settings = evaluation({} if logged else settings_of(folder), changes(args.set))
    with one_thread():
        if logged:
            policy = _cloned(args, settings, args.policy.removeprefix(LOGGED))
        else:
            policy = opened(folder)
        found = estimated(policy, args.decisions, settings, args.starts, args.against)
    found = {**identity.of(None if logged else folder, args.decisions), **found}
    if args.out is not None:
        write_text(args.out, json.dumps(found, indent=2) + "\n")
    if args.json:
        print_json(found)
    else:
        show(found)
    for name, why in found["refused"].items():
        print(f"refused: {TITLES[name]}: {why}", file=sys.stderr)
    return 1 if len(found["refused"]) == len(TITLES) else 0


TITLES = {"fqe": "fitted Q evaluation", "wis": "importance weights"}


def estimated(
    policy: Acting, decisions: Path, settings: Evaluation, starts: Any, against: str | None
) -> dict[str, Any]:
    """All figures of one policy; see `models.offline.worth.estimate`."""
    from models.offline import evaluation, worth
    from models.offline.aside import Aside
    from models.offline.source import Source
    from models.offline.support import Support
    from pipelines.offline.train import Shown

    source = Source(decisions, settings)
    aside = Aside.of(source, settings, starts, against)
    runs = progress(source.runs(False), "counting")
    support = Support.of(runs, len(source.about.actions))
    who = evaluation.cloned(decisions, settings, watch=Shown("who decided"))
    behaviour = aside.taken(aside.odds(who))
    fits = []
    for number in range(settings.fits):
        own = settings.model_copy(update={"seed": settings.seed + number})
        shown = Shown(f"fit {number + 1} of {settings.fits}")
        # A single fit has nothing to be drawn against.
        resample = own.seed if settings.fits > 1 else None
        fits.append(evaluation.fitted(policy, decisions, own, resample, shown))
    known = evaluation.fitted(who, decisions, settings, None, Shown("who decided, evaluated"))
    return worth.estimate(policy, fits, behaviour, known, aside, support)


def _cloned(args: argparse.Namespace, settings: Evaluation, control: str) -> Acting:
    from models.offline import evaluation
    from pipelines.offline.train import Shown

    return evaluation.cloned(args.decisions, settings, control, Shown(f"a clone of {control}"))


def show(found: dict[str, Any]) -> None:
    """Print the figures for people."""
    held = found["coverage"]
    print(
        f"{found['policy']}: reward of a decision from {found['starts']} logged decisions on, in "
        f"{found['clusters']} scenarios or runs that nothing was learned from"
    )
    rows = (
        ("what was logged", found["logged"]),
        ("fitted Q evaluation", found["fqe"]),
        ("  over what was logged", found["fqe_gain"]),
        ("  off for what was logged", found["off"]),
        (f"what was logged, {found['horizon']} decisions", found["logged_short"]),
        ("importance weights", found["wis"]),
        ("  over what was logged", found["wis_gain"]),
    )
    for title, value in rows:
        text = "refused"
        if value is not None:
            text = f"{value['mean']:8.4f}   {value['low']:.4f} to {value['high']:.4f}"
        print(f"  {title:<32}{text}")
    print(
        f"  effective sample {found['effective']:.1f} of {found['starts']}; without support "
        f"{100 * held['outside']:.1f} % of states, {100 * held['rare_action']:.1f} % of actions"
    )
    beats = "beats" if found["verdict"]["beats"] else "doesn't beat"
    print(f"  {beats} what was logged: {found['verdict']['reason']}")
