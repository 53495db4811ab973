"""Write the tables of estimates beside the truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.marked import Marks

MARKS = Marks("<!-- estimates beside the truth: python -m pipelines.studies.estimates.command -->")
TITLES = {"fqe": "fitted Q evaluation", "wis": "importance weights"}


def table(result: Mapping[str, Mapping[str, Any]], seeds: int) -> str:
    """All tables as Markdown.

    Parameters
    ----------
    result : mapping
        Kind of logs -> ``summary`` and ``policies``.
    seeds : int
        Sets of logs.
    """
    lines = [
        f"Sets of logs: {seeds} of each kind. *Error*: mean absolute error; *bias*: mean error; "
        "*spread*: deviation of the true values,",
        "which an error must be small beside to be of use; *rank*: Spearman's correlation with the "
        "truth over the policies of a set, the mean",
        "and the least; *within*: share of 95 % intervals that hold the truth; *refused*: share of "
        "estimates that the command doesn't give.",
        "",
        "| logs | estimate | error | bias | spread | rank | within | refused |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(
            _summary(kind, TITLES[name], one)
            for kind, found in result.items()
            for name, one in found["summary"].items()
        ),
    ]
    for kind, found in result.items():
        horizon = found["policies"][0]["horizon"]
        off = ", ".join(
            f"{row['off']['mean']:+.3f} in set {row['seed']}"
            for row in {row["seed"]: row for row in found["policies"]}.values()
        )
        lines += [
            "",
            f"Logs of {kind}, set by set; what the command refuses stands in brackets. *Short* is "
            f"over {horizon} decisions.",
            f"What was logged is worth {found['policies'][0]['logged']['mean']:.3f} in the first "
            f"set; for who decided, fitted Q evaluation is off by {off}.",
            "",
            "| set | policy | played | fitted Q evaluation | actions without support | "
            "played, short | importance weights | effective sample | beats what was logged: "
            "said, true |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *(_row(row) for row in found["policies"]),
        ]
    return "\n".join(lines) + "\n"


def _summary(kind: str, title: str, one: Mapping[str, Any]) -> str:
    rank = "–" if one["rank"] is None else f"{one['rank']:+.2f}, {one['least_rank']:+.2f}"
    error = "–" if one["error"] is None else f"{one['error']:.3f}"
    bias = "–" if one["bias"] is None else f"{one['bias']:+.3f}"
    within = "–" if one["within"] is None else f"{100 * one['within']:.0f} %"
    return (
        f"| {kind} | {title} | {error} | {bias} | {one['spread']:.3f} | {rank} | {within} | "
        f"{100 * one['refused']:.0f} % |"
    )


def _row(row: Mapping[str, Any]) -> str:
    return (
        f"| {row['seed']} | {row['policy']} | {row['truth']:.3f} | {_shown(row, 'fqe')} | "
        f"{100 * row['coverage']['rare_action']:.0f} % | {row['truth_short']:.3f} | "
        f"{_shown(row, 'wis')} | {row['effective']:.1f} of {row['starts']} | "
        f"{_word(row['beats'])}, "
        f"{_word(row['truth'] > row['logged']['mean'])} |"
    )


def _word(true: bool) -> str:
    return "yes" if true else "no"


def _shown(row: Mapping[str, Any], name: str) -> str:
    one = row[name]
    if one is None:
        return "(none)"
    text = f"{one['mean']:.3f} ({one['low']:.3f} to {one['high']:.3f})"
    return f"[{text}]" if name in row["refused"] else text
