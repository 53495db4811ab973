"""``cczoo train sbd neural``: train the classifier on raw series, in steps."""

from __future__ import annotations

import argparse
from pathlib import Path

from pipelines import names, selection
from pipelines.sbd.train import shared

OUT = Path("reports/neural")
STEPS: dict[str, tuple[tuple[str, ...], str]] = {
    "all": (("protocol", "fit"), "protocol, then fit; the search is done on purpose only"),
    "search": (("search",), "try the variants on connections and families that are left out"),
    "protocol": (("protocol",), "every split of the protocol, beside the other models"),
    "fit": (("fit",), "train the network that is kept and write it as an entry"),
}
"""Name -> (steps that are run, one line of help)."""

EXAMPLE = "example: cczoo train sbd neural fit --out build/neural    # docs/neural.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo train sbd neural``."""
    steps = parser.add_subparsers(
        dest="step", required=True, metavar="|".join(STEPS), parser_class=names.Parser
    )
    for name, (run_, line) in STEPS.items():
        step = steps.add_parser(
            name,
            help=line,
            description=line,
            epilog=f"example: cczoo train sbd neural {name} --params params.yaml --out build/mine",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        step.add_argument(
            "--features",
            type=Path,
            default=shared.SERIES,
            help="table of `cczoo features series` (default: %(default)s)",
        )
        selection.add_arguments(step, "series")
        step.add_argument("--out", type=Path, default=OUT, help="results (default: %(default)s)")
        step.set_defaults(zoo=None)
        if "fit" in run_:
            shared.zoo(step, default="--out")
        shared.settings(step)


def run(args: argparse.Namespace) -> int:
    """Run the steps asked for."""
    from pipelines.sbd import neural

    steps, _ = STEPS[args.step]
    return neural.run(args, steps)
