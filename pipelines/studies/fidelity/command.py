"""Compare the simulator with the kernel: the lab's connections simulated again.

Each run of the comparison's own campaign (plain TCP over one path, MPTCP over two) and each kept
run of the campaigns for training is simulated with the stages, paths, background traffic and
congestion control that it had; the latter's logs also go through the same features. Writes a page
of tables.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from data.files import write_text
from pipelines.output import print_json
from pipelines.standalone import answer, command_parser
from pipelines.studies.fidelity import runs

EXAMPLE = """\
example: python -m pipelines.studies.fidelity.command --events data/interim/events \\
    --features data/processed/sbd.parquet --out docs/fidelity-linux.md"""

LOADS = ((10.0, "up to 10"), (25.0, "10 to 25"), (float("inf"), "above 25"))
"""Classes of the host's load average (1 min) at the beginning of a run."""
CAMPAIGNS = ("smartsbd-paper", "smartsbd-table6", "smartsbd-random")


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns 2 if the user's input is wrong."""
    parser = command_parser("pipelines.studies.fidelity.command", __doc__, EXAMPLE)
    parser.add_argument("--reference", type=Path, default=Path("data/reference/linux"),
                        help="the comparison's own campaign")  # fmt: skip
    parser.add_argument("--raw", type=Path, default=Path("data/raw"), help="the campaigns")
    parser.add_argument("--events", type=Path, required=True, help="their ingested directory")
    parser.add_argument("--features", type=Path, required=True, help="their features table")
    parser.add_argument("--work", type=Path, default=Path("data/interim/netsim"),
                        help="where the simulated logs go")  # fmt: skip
    parser.add_argument(
        "--every", type=int, default=1, help="take each N-th run of --raw (default 1)"
    )
    parser.add_argument("--seeds", type=int, default=3, help="simulations a run of --reference")
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side (default 2)")
    parser.add_argument("--seed", type=int, default=7, help="of classifiers and resampling")
    parser.add_argument("--out", type=Path, required=True, help="Markdown page to write")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return answer(parser, run, argv)


def run(args: argparse.Namespace) -> int:
    """Simulate, compute features, compare, write the page."""
    from pipelines.studies.fidelity.page import page

    if args.seeds < 1:
        from data.errors import UserError

        raise UserError(f"--seeds {args.seeds}: give a whole number of at least 1")
    figures = {"seeds": args.seeds, "every": args.every} | reference(args) | campaigns(args)
    write_text(args.out, page(figures))
    if args.json:
        print_json(figures)
    else:
        count = sum(row["count"] for row in figures["reference"]) + figures["runs"]
        print(f"{count} runs compared → {args.out}")
    return 0


def reference(args: argparse.Namespace) -> dict[str, Any]:
    """Rows of the comparison's own campaign in its order, and those of one path by load."""
    from data.lab import plan

    order = [source.name for source in plan.sources(plan.load("linux"))]
    records = runs.reference_records(args.reference)
    records.sort(key=lambda record: order.index(record["group"]))
    for record in records:
        record["transport"] = record["scenario"].get("transport", "mptcp")
        record["host"] = next(name for most, name in LOADS if record["load"] <= most)
    # The kernel counts segments; an event of its log may stand for several.
    kernel = {
        record["id"]: record["figures"]
        | {"retransmits": record["figures"]["retransmitted_segments"]}
        for record in records
    }
    netsim = runs.simulated_figures(records, args.seeds, args.jobs)
    single = [record for record in records if record["transport"] == "tcp"]
    names = [name for _, name in LOADS]
    by_load = sorted(single, key=lambda r: (r["rate_wifi_mbps"], names.index(r["host"])))

    def rows(chosen: list[dict[str, Any]], *keys: str) -> list[dict[str, Any]]:
        return runs.by_group(chosen, kernel, netsim, keys, args.seed)

    return {
        "reference": rows(records, "transport", "cc", "family"),
        "by_load": rows(by_load, "rate_wifi_mbps", "host"),
    }


def campaigns(args: argparse.Namespace) -> dict[str, Any]:
    """Rows, features and transfer of the campaigns for training."""
    from models.sbd import windows as tables
    from models.sbd.computed_with import settings_of
    from pipelines.feature_rows import featurize, write
    from pipelines.studies.fidelity import transfer

    records = runs.campaign_records(args.raw, CAMPAIGNS, args.every)
    runs.simulate_all(records, args.work, args.jobs)
    settings = settings_of(args.features)
    simulated, _ = featurize(args.work, settings, args.jobs)
    write(simulated, args.work / "sbd.parquet", settings)
    ids = {record["id"] for record in records}
    kernel = tables.read(args.features)
    kernel = kernel.filter(transfer.run_of(kernel["source"]).is_in(ids))
    ours, theirs = tables.windows(simulated), tables.windows(kernel)
    sides = {
        "kernel": runs.figures_of(args.events, ids),
        "netsim": runs.figures_of(args.work, ids),
    }
    keys = ("cc", "label")
    rows = runs.by_group(records, sides["kernel"], sides["netsim"], keys, args.seed)
    return {
        "runs": len(records),
        "campaigns": sorted(rows, key=lambda row: (row["label"], row["cc"] == "lia", row["cc"])),
        "bursts": {
            name: sum(found["bursts"] for found in side.values()) / len(side)
            for name, side in sides.items()
        },
        "distributions": transfer.distributions(theirs, ours),
        "transfer": transfer.transfer(theirs, ours, args.seed),
    }


if __name__ == "__main__":
    sys.exit(main())
