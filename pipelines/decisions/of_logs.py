"""Turn ingested logs into decisions, as an agent would have seen them and been paid for them."""

from __future__ import annotations

import argparse

from data.errors import UserError


def run(args: argparse.Namespace) -> int:
    """Run ``cczoo features decisions``."""
    from data.inputs import check_outside
    from models.decisions import logs, source
    from pipelines.output import print_json, progress
    from pipelines.rl.changes import changes

    if args.agent is None:
        raise UserError("whose decisions? name an agent: tcco, nuwa or macc")
    made = source(args.agent)
    for name in ("store", "params", "model"):
        if getattr(args, name) is not None:
            raise UserError(f"--{name}: decisions take --events and --set alone")
    if args.out is None:
        raise UserError("--out is missing: name the Parquet file to write")
    if args.out.is_dir():
        raise UserError(f"--out {args.out}: is a directory: give a file name")
    check_outside(args.out, [args.events], "events")
    tree = changes(args.set or [])
    if args.behaviour is not None:
        tree["behaviour"] = args.behaviour
    settings = made.settings.parse(tree, "--set")
    counts = logs.write(args.events, args.agent, settings, args.out, progress)
    if args.json:
        print_json({**counts, "agent": args.agent, "out": str(args.out)})
        return 0
    of = ", ".join(f"{number} of {name}" for name, number in counts["decisions_of"].items())
    print(f"{counts['decisions']} decisions of {counts['runs']} connections → {args.out} ({of})")
    for reason, number in counts["reasons"].items():
        print(f"  refused: {number} ({reason})")
    return 0
