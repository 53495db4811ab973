"""Turn ingested logs into decisions, as an agent would have seen them and been paid for them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from data.errors import UserError

if TYPE_CHECKING:
    from data.strict import Strict


def run(args: argparse.Namespace) -> int:
    """Run ``cczoo features decisions``."""
    from data.inputs import check_outside
    from models.decisions import logs, source
    from pipelines.featurize import check_place
    from pipelines.output import print_json, progress
    from pipelines.rl.changes import changes

    if args.agent is None:
        raise UserError("whose decisions? name an agent: tcco, nuwa or macc")
    made = source(args.agent)
    for name in ("params", "model"):
        if getattr(args, name) is not None:
            raise UserError(f"--{name}: decisions take their settings by --set")
    check_place(args)
    tree = changes(args.set or [])
    if args.behaviour is not None:
        tree["behaviour"] = args.behaviour
    settings = made.settings.parse(tree, "--set")
    if args.store is not None:
        return _in_store(args, settings)
    if args.out is None:
        raise UserError("--out is missing: name the Parquet file to write")
    if args.out.is_dir():
        raise UserError(f"--out {args.out}: is a directory: give a file name")
    check_outside(args.out, [args.events], "events")
    counts = logs.write(args.events, args.agent, settings, args.out, progress)
    if args.json:
        print_json({**counts, "agent": args.agent, "out": str(args.out)})
        return 0
    of = ", ".join(f"{number} of {name}" for name, number in counts["decisions_of"].items())
    print(f"{counts['decisions']} decisions of {counts['runs']} connections → {args.out} ({of})")
    for reason, number in counts["reasons"].items():
        print(f"  refused: {number} ({reason})")
    return 0


def _in_store(args: argparse.Namespace, settings: Strict) -> int:
    """Compute what is new in a store; a night without decisions is no mistake."""
    from pipelines.fleet.decisions import Decisions
    from pipelines.fleet.run import followed
    from pipelines.output import print_json

    found = followed(args, Decisions(args.agent, settings))
    made = found.computed
    of = dict(sorted(made.sums.items()))
    reasons = dict(made.reasons.most_common())
    if args.json:
        print_json(
            {
                "connections": found.connections,
                "decisions": made.rows,
                "decisions_of": of,
                "decisions_kept": found.kept,
                "connections_refused": sum(reasons.values()),
                "reasons": reasons,
                "refused": made.refused,
                "agent": args.agent,
                "settings": found.settings,
                "version": found.version,
            }
        )
        return 0
    shares = ", ".join(f"{number} of {name}" for name, number in of.items())
    print(
        f"{made.rows} decisions of {found.connections} connections computed, {found.kept} "
        f"decisions kept → {args.store}, version {found.version}"
        + (f" ({shares})" if shares else "")
    )
    for reason, number in reasons.items():
        print(f"  refused: {number} ({reason})")
    return 0
