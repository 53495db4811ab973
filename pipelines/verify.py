"""Build and run an exported bundle, compare it with its model and write certificate.json.

Every file is first made again from the bundle's model with this cczoo and compared byte for byte:
what differs is refused, and nothing of the bundle is run. So what runs is this cczoo's own code,
whoever sent the bundle. An ONNX file is data, run by ONNX Runtime. Verify proves that the files
are the model's and answer as it does; not who made the bundle (--signer does), nor that the model
is a good one.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from export.toolchain.sandbox import LIMITS
from pipelines.output import print_json

EXAMPLE = """examples:
  cczoo verify build/smartsbd-dt --json
  cczoo verify build/smartsbd-dt --budget ns=40,bytes=4000,insns=2000
  cczoo verify build/smartsbd-dt --signer release.pub"""

WARNING = (
    "WARNING  --run-foreign runs code that cczoo didn't emit. It runs as nobody, without network, "
    "on a read-only system, with bounded time, memory and files (memory per process: all of its "
    "processes together take up to their number times the limit); a hole in the kernel or in "
    "bubblewrap would still give it this machine."
)

MEASURED = {
    "ns_per_decision": "{:.1f} ns per decision",
    "object_bytes": "{} bytes",
    "verified_insns": "{} instructions verified",
    "jited_bytes": "{} bytes when jited",
    "stack_bytes": "{} bytes of stack",
}
"""Field of a target's report -> format in which it is printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("bundle", type=Path, help="directory made by cczoo export")
    parser.add_argument(
        "--random", type=int, help="random vectors (default: as --params, else 2000)"
    )
    parser.add_argument(
        "--seed", type=int, help="seed of the random vectors (default: as --params, else 20)"
    )
    parser.add_argument("--params", type=Path, help="YAML file with settings (export: verify: ...)")
    parser.add_argument(
        "--budget",
        metavar="KEY=LIMIT,...",
        help="fail what costs more: insns (BPF verifier), ns, bytes, stack",
    )
    parser.add_argument(
        "--strict", action="store_true", help="fail also what can't be run on this machine"
    )
    parser.add_argument(
        "--signer",
        metavar="PUB",
        type=Path,
        help="demand a signature: public SSH key, or file of allowed signers (ssh-keygen(1))",
    )
    parser.add_argument(
        "--run-foreign",
        action="store_true",
        help="DANGEROUS: also run code that isn't what this cczoo emits, as nobody in a sandbox "
        f"(bubblewrap) of at most {LIMITS['nproc']} processes with {LIMITS['as'] >> 30} GiB each; "
        "it is reported, never proved",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(args: argparse.Namespace) -> int:
    """Verify; returns 1 if anything differs, fails or exceeds the budget, or nothing was run."""
    from data.errors import UserError
    from export.budget import parse_budget
    from export.params import VerifyParams
    from export.verify import verify

    params = VerifyParams()
    if args.params is not None:
        from pipelines.params import load

        params = load(args.params).export.verify
    flags = {"random": args.random, "seed": args.seed}
    params = params.model_copy(update={k: v for k, v in flags.items() if v is not None})
    if params.random < 0 or params.seed < 0:
        raise UserError("--random and --seed can't be negative")
    budget = None if args.budget is None else parse_budget(args.budget)
    if args.run_foreign:
        print(WARNING, file=sys.stderr)
    report = verify(args.bundle, params, budget, signers=args.signer, run_foreign=args.run_foreign)
    if args.json:
        print_json(report)
    else:
        _print(report)
    return 0 if report["ok"] and not (args.strict and report["unproved"]) else 1


def _print(report: dict[str, Any]) -> None:
    budget = report["budget"] or {"problems": [], "silent": {}}
    if signer := report.get("signer"):
        print(f"{'ok':<7} signed by {signer['principal']}, {signer['key']}")
    for problem in [*report["problems"], *budget["problems"]]:
        print(f"FAILED  {problem}", file=sys.stderr)
    for target in report["targets"]:
        if "missing" in target:
            print(f"UNPROVED {target['target']}: {target['missing']}", file=sys.stderr)
            continue
        if "error" in target:
            print(f"FAILED  {target['target']}: {target['error']}", file=sys.stderr)
            continue
        found = [
            f"{target['target']}: {target['vectors']} vectors",
            f"{target['mismatches']} mismatches",
        ]
        found += [
            text.format(target[name])
            for name, text in MEASURED.items()
            if target.get(name) is not None
        ]
        print(f"{'FAILED' if target['mismatches'] else 'ok':<7} {', '.join(found)}")
    if report["budget"] and budget["met"]:
        limits = ",".join(f"{key}={limit:g}" for key, limit in budget["limits"].items())
        print(f"{'ok':<7} budget {limits}")
    for key, targets in budget["silent"].items():
        print(f"no figure for {key}: {', '.join(targets)}", file=sys.stderr)
