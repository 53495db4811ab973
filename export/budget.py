"""Judges whether the targets of an exported model keep to what it may cost.

A budget is given as ``insns=2000,ns=40,bytes=4000,stack=64``. Each of its limits holds for every
target of a bundle that has the figure, or for one alone (``bpf.ns=90``); a limit that no target has
a figure for is a failure, since nothing then shows that it is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from data.errors import UserError, unknown_name


@dataclass(frozen=True)
class Figure:
    """One kind of cost.

    Attributes
    ----------
    fields : tuple of tuple of str
        Where a target's part of a certificate has it: the largest of those sums whose first field
        is there.
    unit : str
        For people.
    made_by : str
        What to do if no target of a bundle has it.
    """

    fields: tuple[tuple[str, ...], ...]
    unit: str
    made_by: str


FIGURES: dict[str, Figure] = {
    "bytes": Figure(
        (("object_bytes", "file_bytes"), ("jited_bytes", "map_bytes")),
        "bytes of code and constants",
        "export it with -t c",
    ),
    "insns": Figure(
        (("verified_insns",),),
        "instructions that the BPF verifier went through",
        "export it with -t bpf and verify where BPF programs can be loaded (as root)",
    ),
    "ns": Figure((("ns_per_decision",),), "nanoseconds per decision", "export it with -t c"),
    "stack": Figure(
        (("stack_bytes",),), "bytes of stack", "export it with -t c and verify with gcc as $CC"
    ),
}
"""Key in a budget -> its figure."""


@dataclass(frozen=True)
class Budget:
    """Limits by key of :data:`FIGURES`, or by ``target.key``; a cost equal to its limit is met."""

    limits: Mapping[str, float]

    def judge(self, reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Compare with what targets measured.

        Parameters
        ----------
        reports : sequence of mappings
            The targets' parts of a certificate; ``target`` and, of the fields in
            :data:`FIGURES`, those that the target has.

        Returns
        -------
        dict
            ``limits``; ``met``; ``exceeded``, a list of ``target``, ``key``, ``cost``, ``limit``;
            ``unmeasured``, limits without any figure; ``silent``, per other limit the targets that
            have no such figure; ``problems``, the failures as lines for people.
        """
        exceeded: list[dict[str, Any]] = []
        unmeasured, problems = [], []
        silent: dict[str, list[str]] = {}
        for key, limit in self.limits.items():
            only, _, figure = key.rpartition(".")
            judged = [r for r in reports if only in ("", r["target"])]
            costs = {str(r["target"]): cost(r, figure) for r in judged}
            known = {target: c for target, c in costs.items() if c is not None}
            if not known:
                unmeasured.append(key)
                problems.append(
                    f"budget {key}={limit:g}: no target of this bundle has a figure for it: "
                    f"{FIGURES[figure].made_by}, or leave {key} out"
                )
                continue
            silent[key] = [target for target, c in costs.items() if c is None]
            for target, found in known.items():
                if found > limit:
                    exceeded.append({"target": target, "key": key, "cost": found, "limit": limit})
                    problems.append(f"{target}: {over(figure, found, limit)}")
        return {
            "limits": dict(self.limits),
            "met": not problems,
            "exceeded": exceeded,
            "unmeasured": unmeasured,
            "silent": {key: targets for key, targets in silent.items() if targets},
            "problems": problems,
        }


def cost(report: Mapping[str, Any], key: str) -> float | None:
    """One target's cost of a kind, or None if it has no such figure."""
    found = [
        sum(float(report.get(name) or 0) for name in names)
        for names in FIGURES[key].fields
        if report.get(names[0]) is not None
    ]
    return max(found, default=None)


def over(key: str, found: float, limit: float) -> str:
    """How far a cost is above its limit, for people."""
    share = f" ({100 * (found - limit) / limit:.0f} %)" if limit else ""
    return (
        f"{found:g} {FIGURES[key].unit}, {found - limit:g}{share} above the budget of "
        f"{key}={limit:g}"
    )


def parse_budget(text: str) -> Budget:
    """Read ``KEY=NUMBER,TARGET.KEY=NUMBER``.

    Raises
    ------
    UserError
        For an unknown key or target (with the nearest), one given twice, or no number.
    """
    # Targets import certificates, which stand beside this module.
    from export.targets import TARGETS

    limits: dict[str, float] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key:
            raise UserError(f"budget {part.strip() or text!r}: KEY=NUMBER expected, as in ns=40")
        target, dot, figure = key.rpartition(".")
        if figure not in FIGURES:
            raise unknown_name("budget key", figure, FIGURES)
        if dot and target not in TARGETS:
            raise unknown_name("target", target, TARGETS)
        if key in limits:
            raise UserError(f"budget: {key} is given twice: give it once")
        try:
            limits[key] = float(value)
        except ValueError:
            raise UserError(f"budget {key}={value}: a number expected") from None
        if not 0 <= limits[key] < float("inf"):
            raise UserError(f"budget {key}={value}: a finite number, 0 or more, expected")
    return Budget(limits)
