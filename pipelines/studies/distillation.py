"""Write docs/distill.md: what distilled trees of the zoo keep of their teachers' returns.

    python -m pipelines.studies.distillation --out docs/distill.md

Figures are those that the entries hold (``cczoo distill`` measured them), and the times of
``benchmarks/results/policies.json``; nothing is played here.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from data.files import write_text
from models import store
from models.distill.params import STEERED
from models.policies import ENTRY, NODES
from models.store import ZooModel

INTRO = """\
# Policies as trees

A trained policy is a network; a kernel runs a tree. `cczoo distill NAME` makes the tree: rows are
gathered where the tree itself has led, labelled by its teacher, and weighted by how much a wrong
action would cost (VIPER). The round, what the tree may see and its size are chosen by the return of
validation episodes in which it acts. Then both play the same episodes of the test, which nothing
was chosen by: differences are of the teacher's return, paired by seed, with 95 % intervals.

A network decides by what it remembers, and where a tree has erred that memory is one which it was
never trained with. `--set steered=6` therefore searches for a tree of another kind beside these,
which has a rule's shape: it goes to a share of what a path holds, or turns Nuwa's k by two
thresholds. Its numbers are found by its return alone (`models/distill/by_return.py`). Whichever
does best in validation is kept.

A tree sees whole numbers: what the agent observes, ratios such as RTT over base RTT or window over
bottleneck times base RTT, and their changes over 1, 5 and 20 intervals. `features/derived.py`
defines them, and `cczoo export NAME -t c` writes C of the same definitions beside the tree.

    cczoo distill tcco --depth 10 --leaves 255
    cczoo zoo release tcco-tree
    cczoo export tcco-tree -t c -t bpf -t onnx --out build/tcco-tree && cczoo verify build/tcco-tree
    python -m pipelines.studies.distillation --out docs/distill.md

The first command imitates alone; each tree below names the command that made it.

**Bar**: the lower end of the interval is at least -1 %, with at most 255 leaves, 10 comparisons and
40 ns a decision, 1,000 times less than its teacher's ONNX file takes. Both were timed in one run of
`python benchmarks/run.py policies`: medians on one thread, the tree as C.
"""
FLOOR, LEAVES, DEPTH, NS, CHEAPER = -0.01, 255, 10, 40.0, 1000.0
"""The bar: least lower end, most leaves, comparisons and time, least ratio to its teacher's."""
TIMES = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "policies.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.studies.distillation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--zoo", type=Path, default=store.ZOO, help="another zoo")
    parser.add_argument("--out", type=Path, required=True, help="where the page is written")
    args = parser.parse_args(argv)
    found = students(args.zoo)
    for model in found:
        if curve := model.read_json("metrics.json")["distilled"]["curve"]:
            name = model.meta.name
            write_text(args.out.with_suffix("") / f"{name}.svg", drawing(name, curve))
    write_text(args.out, page(found))
    print(args.out, file=sys.stderr)
    return 0


def students(zoo: Path) -> list[ZooModel]:
    """Entries of a zoo that were distilled."""
    both = [
        path.parent for path in sorted(zoo.glob(f"*/{ENTRY}")) if (path.parent / NODES).is_file()
    ]
    return [store.load(folder) for folder in both]


def page(found: Sequence[ZooModel]) -> str:
    """The page as Markdown."""
    lines = [INTRO]
    lines += _table([_row(model) for model in found], _HEADS)
    for model in found:
        result = model.read_json("metrics.json")["distilled"]
        lines += ["", f"## {model.meta.name}", "", _about(model, result)]
        if result["curve"]:
            rows = [_other(row) for row in result["curve"]]
            lines += ["", *_table(rows, ("student", "leaves", "depth", "against its teacher"))]
            lines += ["", f"![Return by size](distill/{model.meta.name}.svg)", ""]
            lines += ["*Return against the teacher's by leaves, trees of one distillation; with "
                      "95 % intervals; the line is the bar's -1 %.*"]  # fmt: skip
    return "\n".join(lines).rstrip() + "\n"


_HEADS = ("tree", "leaves", "depth", "return", "its teacher's", "against it", "C", "cheaper", "bar")


def _row(model: ZooModel) -> tuple[str, ...]:
    result = model.read_json("metrics.json")["distilled"]
    name = model.meta.name
    ns, ratio = times(name)
    failed = missed(result, ns, ratio)
    return (
        f"[`{name}`](../models/zoo/{name}/card.md)",
        str(result["leaves"]),
        str(result["depth"]),
        f"{result['returns']:.4g}",
        f"{result['teacher_return']:.4g}",
        interval(result["relative_return"]),
        "–" if ns is None else f"{ns:.3g} ns",
        "–" if ratio is None else f"{ratio:,.0f} times",
        f"missed: {', '.join(failed)}" if failed else "met",
    )


def missed(result: Any, ns: float | None, ratio: float | None) -> list[str]:
    """What of the bar a tree misses."""
    found = []
    if not result["relative_return"]["low"] >= FLOOR:
        found.append("return")
    found += ["leaves"] * (result["leaves"] > LEAVES) + ["depth"] * (result["depth"] > DEPTH)
    if ns is None or ns > NS or ratio is None or ratio < CHEAPER:
        found.append("time")
    return found


def times(name: str) -> tuple[float | None, float | None]:
    """Time of a tree's decision in C (ns), and how often its teacher's ONNX file takes as long."""
    rows = json.loads(TIMES.read_text(encoding="utf-8"))["policies"] if TIMES.is_file() else {}
    row = rows.get(name.removesuffix("-tree"), {})
    return row.get("tree_ns"), row.get("tree_is_cheaper")


def _about(model: ZooModel, result: Any) -> str:
    searched = "; its numbers were searched for by return, and it"
    return (
        f"Made by `{model.meta.created_by}` from {result['rows']} rows"
        f"{searched if result['sees'] == STEERED else '; it'} does as its teacher on "
        f"{result['agreement']:.2%} of them, by weight. Tested on {result['seeds']} seeds of "
        f"{result['episodes']} episodes each"
        + (f", of {steps} decisions." if (steps := result["settings"]["steps"]) else ".")
    )


def _other(row: Any) -> tuple[str, ...]:
    return (
        row["student"],
        str(row["leaves"]) if "leaves" in row else row["size"],
        str(row.get("depth", "–")),
        interval(row["relative_return"]),
    )


def drawing(name: str, curve: Sequence[Any], standalone: bool = True) -> str:
    """Return by leaves as SVG: what a smaller tree costs."""
    from matplotlib.figure import Figure

    from pipelines.reporting.figures import COLOURS, style, svg

    trees = sorted((row for row in curve if "leaves" in row), key=lambda row: int(row["leaves"]))
    grown = [row for row in trees if row["student"].startswith(name)]
    with style():
        figure = Figure(figsize=(5.6, 3.2))
        axis = figure.subplots()
        for rows, colour, label in (
            (grown, COLOURS[0], "VIPER"),
            ([row for row in trees if row not in grown], COLOURS[1], "cloning, DAgger"),
        ):
            x = [row["leaves"] for row in rows]
            all_of = [row["relative_return"] for row in rows]
            y = [100 * one["mean"] for one in all_of]
            below = [100 * (one["mean"] - one["low"]) for one in all_of]
            above = [100 * (one["high"] - one["mean"]) for one in all_of]
            axis.errorbar(x, y, (below, above), fmt="o", color=colour, label=label, capsize=2)
        axis.axhline(100 * FLOOR, linestyle="--", linewidth=0.8)
        axis.set(xscale="log", xlabel="leaves", ylabel="return against its teacher, %")
        axis.legend()
        figure.tight_layout()
        return svg(figure, f"distilled-{name}", f"{name}: return by leaves", standalone=standalone)


def interval(one: Any) -> str:
    """A relative return in words."""
    return f"{one['mean']:+.2%} [{one['low']:+.2%}, {one['high']:+.2%}]"


def _table(rows: Sequence[Sequence[str]], heads: Sequence[str]) -> list[str]:
    made = [f"| {' | '.join(row)} |" for row in (heads, *rows)]
    return [made[0], f"|{' --- |' * len(heads)}", *made[1:]]


if __name__ == "__main__":
    sys.exit(main())
