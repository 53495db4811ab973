"""Writes the page of bars as Markdown, of figures that are kept."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.studies.bars.beyond import KINDS, NEIGHBOURS, UNKNOWN, Value
from pipelines.studies.bars.judge import IN_MEAN, MET, Cleared
from pipelines.studies.bars.kept import Measured

INTRO = f"""\
# Bars for trained agents

What each agent has to reach, and what was measured. Means over seeds with 95 % intervals
(Student's t); a seed is a start time, a stream of losses and, where links are drawn, a trace that
no training has seen. **All seeds play one and the same network**, that of one training: an interval
says how much runs differ, and nothing of how much another training of the same agent would. A bar
with *sure* is met when the whole interval lies beyond it. Any other is met when the mean does, and
**{IN_MEAN}** says that its interval contains the bar. A dash stands for a figure that a seed lacks,
as the RTT of an agent that delivers nothing; a bar is missed then. Differences and ratios are
paired by seed. Every table is made by the command above it, whose `--json` prints it; finished runs
are kept, and one agent is enough:

    python -m pipelines.studies.bars.command --agent macc=reports/rl/macc/seed-7 --out docs/bars.md

**Out of range** are conditions that no training has, but for TCCO's on `served_paths`, which has
three subflows, a loss of 1 %, 600 Mbps (1000 behind one bottleneck) and Westwood's flows too; its
ranges here are those of `mixed_paths`, a part of it: longer round-trip times, higher rates, more
loss, more subflows or senders, and {", ".join(UNKNOWN)} as neighbours. Where links are
drawn, those in the upper half of the training's range are doubled, so that all of them lie outside
of it, by a factor of two at most; the range is that of a path's base values, around which it
changes as in training. The loss is twice the most that the training has. MA-CC is trained in one
network, of which one thing at a time is changed. Figures are the agent's over CUBIC's in the same
place on the same runs; power is goodput over RTT.

**Fairness**: flows of one path begin two seconds apart on one bottleneck and are measured from 20
to 60 s: {" and ".join(map(str, KINDS))} agents of a kind, and one beside {", ".join(NEIGHBOURS)}.
*share* is the agent's goodput over what CUBIC would have got in its place, *left* the neighbour's
over what it has with CUBIC there."""
NONE = "No agent has been measured yet."


def page(found: Sequence[Measured]) -> str:
    """Markdown of all agents that were measured."""
    lines = [INTRO, ""]
    for one in found:
        lines += [f"## {one.name}", "", _about(one), "", f"    {one.command}", ""]
        if one.bars:
            lines += [*_bars(one), ""]
        if one.conditions:
            lines += ["Out of range, over CUBIC's:", "", *_outside(one), ""]
        if one.fairness:
            lines += ["Fairness:", "", *_fairness(one), ""]
    if not found:
        lines += [NONE, ""]
    return "\n".join(lines).rstrip() + "\n"


def summary(one: Measured) -> str:
    """How many bars an agent clears, in a line."""
    verdicts = [bar.verdict for bar in one.bars]
    met, unsure = verdicts.count(MET), verdicts.count(IN_MEAN)
    more = f" and {unsure} in the mean" if unsure else ""
    return f"{one.name}: {met} of {len(one.bars)} bars met{more}"


def _about(one: Measured) -> str:
    return (
        f"{summary(one)}, {one.seeds} seeds of one training's network. Trained by "
        f"`{one.training}`, seed {one.seed}; weights `{one.weights[:12]}`."
    )


def _bars(one: Measured) -> list[str]:
    lines = ["| what | `--only` | measured | bar | verdict |", "| --- | --- | ---: | ---: | --- |"]
    for bar in one.bars:
        unit = f" {bar.unit}" if bar.unit else ""
        shown = _shown(bar.value, bar.low, bar.high, unit)
        lines.append(f"| {bar.bar} | `{bar.key}` | {shown} | {_limit(bar)} | {_verdict(bar)} |")
    return lines


def _limit(bar: Cleared) -> str:
    sign = (">" if bar.at_least else "<") if bar.sure else ("≥" if bar.at_least else "≤")
    return f"{sign} {bar.limit:g}{', sure' if bar.sure else ''}"


def _verdict(bar: Cleared) -> str:
    return f"**{bar.verdict}**" if bar.verdict == MET else bar.verdict


def _outside(one: Measured) -> list[str]:
    lines = ["| condition | goodput | RTT | power |", "| --- | ---: | ---: | ---: |"]
    for row in one.conditions:
        cells = [_value(value) for value in (row.goodput, row.rtt, row.power)]
        if row.refused:
            cells = [f"refused: {row.refused}", "", ""]
        lines.append(f"| {row.condition} | {' | '.join(cells)} |")
    return lines


def _fairness(one: Measured) -> list[str]:
    lines = ["| agents | Jain's index | share | left |", "| --- | ---: | ---: | ---: |"]
    for row in one.fairness:
        cells = [_value(value) for value in (row.jain, row.share, row.left)]
        if row.refused:
            cells = [f"refused: {row.refused}", "", ""]
        lines.append(f"| {row.who} | {' | '.join(cells)} |")
    return lines


def _value(value: Value | None) -> str:
    return "" if value is None else _shown(value.mean, value.low, value.high)


def _shown(mean: float | None, low: float | None, high: float | None, unit: str = "") -> str:
    if mean is None or low is None or high is None:
        return "–"
    return f"{_number(mean)} [{_number(low)}, {_number(high)}]{unit}"


def _number(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
