"""The card of a tree that was distilled from a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from models import card
from models.distill.params import STEERED
from models.policies import RELEASED


def render(
    name: str,
    teacher: str,
    result: Mapping[str, Any],
    facts: Mapping[str, str],
    beside: Sequence[Mapping[str, Any]],
) -> str:
    """The card as Markdown.

    Parameters
    ----------
    name, teacher : str
        Entries.
    result : mapping
        As ``cczoo distill --json`` prints it.
    facts : mapping
        More rows of its first table: what it sees, the command that made it.
    beside : sequence of mapping
        Rows of other students on the same test, as in ``result["curve"]``.
    """
    relative = result["relative_return"]
    rows = [_row(name, result["leaves"], result["returns"], relative)]
    rows += [
        _row(r["student"], r.get("leaves", r.get("size")), r["returns"], r["relative_return"])
        for r in beside
        if r["student"] != name
    ]
    rows.append((f"{teacher}, its teacher", card.DASH, f"{result['teacher_return']:.4g}", "0"))
    figures = (
        card.Table(
            tuple(rows),
            ("student", "leaves", "return", "against its teacher"),
            before=f"Returns of {result['seeds']} seeds with {result['episodes']} episodes of the "
            "test each, in which the student acts; differences are paired by seed, of the "
            "teacher's return, with 95 % intervals.",
            after=f"`cczoo evaluate cc --cc {teacher},{name}` plays both in named scenarios. What "
            "a decision costs stands in `costs.md`.",
        ),
    )
    summary = RELEASED[name].summary if name in RELEASED else f"a tree distilled from {teacher}"
    imitates = (
        "It does what its teacher does where the teacher's own scenarios lead it, in a simulator."
    )
    searched = (
        "It imitates nobody: its shape is that of a rule by hand, and the numbers in it were "
        "searched for by return in its teacher's scenarios, in a simulator "
        "(`models/distill/by_return.py`)."
    )
    limits = (
        searched if result["sees"] == STEERED else imitates,
        "It was chosen by validation episodes, and the figures above are of other ones.",
    )
    purpose = (
        "To run where a network can't: in a kernel, as C or eBPF, with integers alone. "
        f"`cczoo export {name} -t c -t bpf -t onnx` writes it, with the code of what it sees."
    )
    shown = {"Kind": f"tree, {result['leaves']} leaves, depth {result['depth']}",
             "Teacher": f"`{teacher}`", **facts}  # fmt: skip
    return card.render(
        card.Card(name, summary[0].upper() + summary[1:] + ".", shown, purpose, figures,
                  limits=limits)
    )  # fmt: skip


def _row(name: str, leaves: int | str, mean: float, relative: Mapping[str, float]) -> card.Row:
    shown = f"{relative['mean']:+.2%} [{relative['low']:+.2%}, {relative['high']:+.2%}]"
    return (name, str(leaves), f"{mean:.4g}", shown)
