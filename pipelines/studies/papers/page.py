"""Write the page of comparisons as Markdown, and its figures as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from data.netsim.metrics import UNITS
from data.netsim.runner import intervals
from pipelines.studies.papers.claims import FAILS, HOLDS, OPEN

if TYPE_CHECKING:
    from data.netsim.scenario import Scenario
    from pipelines.studies.papers.claims import Verdict
    from pipelines.studies.papers.runs import Results

INTRO = """\
# The papers' results, in the simulator

Made by `make papers` (`pipelines/studies/papers`): nothing on this page was typed in but the
papers' own numbers and the notes, which stand in `data/scenarios/netsim`. Means over {seeds} seeds
with 95 % intervals (Student's t); after the stroke the paper's number. A seed is a start time, a
stream of losses and, where a link's rate is generated, a trace. A statement **holds** when the
interval of the difference (paired by seed) lies on its side of zero, a factor when ours is within
a tenth (or the share its scenario file states) of the paper's. Intervals aren't corrected for the
number of comparisons. Schemes that the simulator hasn't are in the tables as the papers have them.

{agents}

Where a paper doesn't say a rate, delay or queue, the scenario's `source` line says what we took;
"other readings" are the same scenario with another choice."""

NO_AGENT = """\
No trained agent has been released: what the papers say of theirs stands in the tables as they have
it, and statements on agents aren't judged. `python -m pipelines.studies.papers.command --agent
macc=reports/rl/macc/seed-7 --out docs/papers.md` fills in the rows of one that was trained."""


def page(
    sections: dict[str, dict[str, Scenario]],
    results: dict[str, Results],
    verdicts: dict[str, list[Verdict]],
    figures: dict[str, list[tuple[str, str]]],
    seeds: int,
    agents: Sequence[str] = (),
) -> str:
    """Markdown of all sections.

    Parameters
    ----------
    sections, results, verdicts : dict
        Scenario -> its variants, its runs and the verdicts on its claims.
    figures : dict
        Scenario -> (path relative to the page, caption) of each.
    seeds : int
        Number of seeds of each run.
    agents : sequence of str, optional
        A line on each trained agent that plays.
    """
    shown = "\n".join(["Trained agents:", "", *(f"- {one}" for one in agents)])
    intro = INTRO.format(seeds=seeds, agents=shown if agents else NO_AGENT)
    lines = [intro, "", *_summary(verdicts), ""]
    for name, variants in sections.items():
        spec = next(iter(variants.values()))
        lines += [f"## {name}", "", f"{spec.title}. Source: {spec.source}.", ""]
        for metric in spec.paper.metrics:
            lines += [f"{_title(metric)}:", "", *_table(metric, variants, results[name]), ""]
        for path, caption in figures.get(name, []):
            lines += [f"![{caption}]({path})", "", f"*{caption}*", ""]
        lines += [*_readings(spec), *_claims(verdicts[name])]
        if spec.paper.notes:
            lines += [spec.paper.notes.strip(), ""]
    return "\n".join(lines).rstrip() + "\n"


def _summary(verdicts: dict[str, list[Verdict]]) -> list[str]:
    lines = ["| scenario | statements | hold | hold in part | undecided | don't hold |",
             "| --- | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for name, found in verdicts.items():
        kinds = [verdict.verdict for verdict in found]
        counts = [kinds.count(HOLDS), kinds.count(OPEN), kinds.count(FAILS)]
        part = len(kinds) - sum(counts)
        lines.append(f"| [{name}](#{name}) | {len(kinds)} | {counts[0]} | {part} | {counts[1]} "
                     f"| {counts[2]} |")  # fmt: skip
    return lines


def _title(metric: str) -> str:
    kind, _, flow = metric.partition(".")
    if kind == "flows":
        return f"Goodput of `{flow}` (Mbit/s)"
    return f"`{metric}`, {UNITS.get(metric, 'mean reward of a decision')}"


def _table(metric: str, variants: dict[str, Scenario], results: Results) -> list[str]:
    """Table with a row for each control and a column for each variant."""
    paper = next(iter(variants.values())).paper
    others = {
        (at, cc): value for name, at, cc, value in paper.numbers(other=True) if name == metric
    }
    ours = {paper.learned[cc].called or cc for _, cc in results if cc in paper.learned}
    schemes = list(dict.fromkeys(cc for _, cc in others if cc not in ours))
    rows = [[f"`{cc}`", *(_cell(metric, label, cc, variants, results) for label in variants)]
            for cc in dict.fromkeys(cc for _, cc in results)]  # fmt: skip
    first = next(iter(variants))
    for cc in schemes:
        cells = [others.get((label, cc), others.get(("", cc)) if label == first else None)
                 for label in variants]  # fmt: skip
        rows.append([cc, *("" if cell is None else f"/ {cell:g}" for cell in cells)])
    head = ["control", *(label or "ours / paper" for label in variants)]
    lines = [head, ["---", *("---:" for _ in variants)], *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _cell(metric: str, label: str, cc: str, variants: dict[str, Scenario], results: Results) -> str:
    runs = results.get((label, cc))
    value = intervals(runs).get(metric) if runs else None
    if value is None:
        return ""
    number = variants[label].paper.of(label, cc).get(metric)
    text = f"{_round(value['mean'])} [{_round(value['lo'])}, {_round(value['hi'])}]"
    return text if number is None else f"{text} / {number:g}"


def _round(value: float) -> str:
    if value == 0:
        return "0"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.3g}"


def _readings(spec: Scenario) -> list[str]:
    if not spec.paper.readings:
        return []
    return ["Other readings: "
            + "; ".join(f"*{name}*: {other.why}" for name, other in spec.paper.readings.items())
            + ".", ""]  # fmt: skip


def _claims(found: list[Verdict]) -> list[str]:
    lines = ["Does the shape hold?", ""]
    for verdict in found:
        where = f" ({verdict.where})" if verdict.where else ""
        detail = f": {verdict.detail}" if verdict.detail else ""
        lines.append(f"- {verdict.claim.says}{where}: **{verdict.verdict}**{detail}")
    return [*lines, ""]


def figures_of(
    sections: dict[str, dict[str, Scenario]],
    results: dict[str, Results],
    verdicts: dict[str, list[Verdict]],
) -> dict[str, Any]:
    """The page's content for programs: rows as of ``cczoo evaluate cc --json``, and verdicts."""
    return {
        name: {
            "rows": [
                {"variant": label, "cc": cc, "seeds": len(runs), "metrics": intervals(runs),
                 "paper": variants[label].paper.of(label, cc)}
                for (label, cc), runs in results[name].items()
            ],
            "statements": [
                {"says": v.claim.says, "variant": v.where, "verdict": v.verdict, "detail": v.detail}
                for v in verdicts[name]
            ],
        }
        for name, variants in sections.items()
    }  # fmt: skip
