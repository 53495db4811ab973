"""Advise on settings: those that make a wanted quality most probable."""

from __future__ import annotations

import argparse
import json

EXAMPLE = """examples:
  cczoo qos advise --target psnr=good,buffer=high
  cczoo qos advise --target psnr=good,buffer=high --given bw1=low,bw2=low --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("--target", required=True, help="what is wanted: psnr=good,buffer=high")
    parser.add_argument("--given", help="what is known or can't be chosen: bw1=low,delay2=high")
    parser.add_argument(
        "--model", default="qos-bn", help="zoo name or directory (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print the best settings, their probability of the target, and the runner-up."""
    from models.qos import advice

    target = advice.pairs(args.target, "--target")
    given = advice.pairs(args.given, "--given")
    ranked = advice.load(args.model).ranked(target, given)
    best, second = ranked[0], ranked[1] if len(ranked) > 1 else None
    if args.json:
        found = {
            "model": args.model,
            "target": target,
            "given": given,
            "settings": dict(best.settings),
            "probability": round(best.probability, 6),
            "runner_up": second
            and {"settings": dict(second.settings), "probability": round(second.probability, 6)},
        }
        print(json.dumps(found, indent=2))
        return 0
    wanted = ", ".join(f"{name}={value}" for name, value in target.items())
    print(f"{_described(best)}: {wanted} with probability {best.probability:.3f}")
    if second is not None:
        print(f"runner-up: {_described(second)}: {second.probability:.3f}")
    return 0


def _described(choice: object) -> str:
    settings = getattr(choice, "settings", {})
    return ", ".join(f"{name}={value}" for name, value in settings.items())
