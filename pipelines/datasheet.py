"""Write the datasheet of ``data/raw``: ``python -m pipelines.datasheet``.

Everything in it is counted from the campaigns' own records and labels, so that it cannot tell
another story than the logs; a collection that has grown is described by running it again.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from data.files import write_text
from pipelines.reporting.inputs import Inputs, MissingInput
from pipelines.reporting.sbd import names, rawdata

PICTURE = Path("docs/img/rtt-boxplots.svg")
PAGE = Path("data/README.md")
TEMPLATE = Path(__file__).with_name("reporting") / "datasheet.md.j2"


def page(inputs: Inputs) -> str:
    """Make the datasheet as Markdown.

    Raises
    ------
    MissingInput
        When there are no campaigns to describe.
    """
    import jinja2

    runs = rawdata.validity(inputs)
    kept = rawdata.conditions(inputs)
    reasons: Counter[str] = Counter()
    for row in runs:
        reasons.update(row["reasons"])
    for row in kept:
        row["name"] = names.dataset(row["dataset"])
        row["rtt"], row["rate"] = _span(row["rtt_ms"]), _span(row["rate_mbps"])
    environment = jinja2.Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False
    )
    environment.filters["minute"] = _minute
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        runs=runs,
        kept=kept,
        logs=sum(row["kept"] for row in runs),
        sb=sum(row["sb"] for row in kept),
        nsb=sum(row["nsb"] for row in kept),
        mib=sum(row["bytes"] for row in runs) / 2**20,
        first=_minute(min((row["first"] for row in runs if row["first"]), default="")),
        last=_minute(max((row["last"] for row in runs), default="")),
        kernels=", ".join(sorted({k for row in runs for k in row["kernels"]})),
        reasons=[(r, rawdata.REASONS.get(r, ""), n) for r, n in reasons.most_common()],
        picture=PICTURE,
        sample=rawdata.SAMPLE_PER_CLASS,
    )


def main(argv: list[str] | None = None) -> int:
    """Write the page and its picture; returns 0, or 2 if there is nothing to describe."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.datasheet", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("."), help="checkout to describe")
    args = parser.parse_args(argv)
    inputs = Inputs(args.root)
    try:
        text = page(inputs)
    except MissingInput as error:
        print(f"{error}: collect logs with `{error.command}`", file=sys.stderr)
        return 2
    samples = rawdata.rtt_samples(inputs)
    if samples:
        write_text(args.root / PICTURE, rawdata.rtt_boxes(samples, standalone=True))
    write_text(args.root / PAGE, text)
    print(f"{args.root / PAGE}: {sum(len(rows) for rows in inputs.labels.values())} logs described")
    return 0


def _minute(stamp: str) -> str:
    return stamp[:16].replace("T", " ")


def _span(limits: tuple[float, float] | None) -> str:
    return "" if limits is None else f"{limits[0]:.3g}–{limits[1]:.3g}"


if __name__ == "__main__":
    sys.exit(main())
