"""A scenario may carry its publication's numbers and statements, and what that leaves open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field, model_validator

from data.strict import Strict


class Claim(Strict):
    """A statement that numbers can bear out, in one of three forms.

    ``higher`` than ``than``: each term of the one above each of the other, by the factor ``by``.
    ``ratio``: two terms whose quotient the paper gives as ``paper``; it holds ``within`` so much.
    ``terms`` that lie ``above`` or ``below`` a number.

    A term is ``cc`` or ``cc @ variant``; ``*`` stands for every control that the other side
    doesn't name. Without variants in its terms, a claim is about each variant.
    """

    says: str
    metric: str
    higher: list[str] = Field(default_factory=list)
    than: list[str] = Field(default_factory=list)
    by: float = Field(default=1.0, gt=0)
    ratio: tuple[str, str] | None = None
    paper: float | None = None
    within: float = Field(default=0.1, gt=0)
    terms: list[str] = Field(default_factory=list)
    above: float | None = None
    below: float | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Claim:
        order = bool(self.higher and self.than)
        near = self.ratio is not None and self.paper is not None
        bound = bool(self.terms) and (self.above is None) != (self.below is None)
        if order + near + bound != 1:
            raise ValueError("give higher and than, or ratio and paper, or terms and a bound")
        return self

    def named(self) -> list[str]:
        """All terms of the claim."""
        return [*self.higher, *self.than, *(self.ratio or ()), *self.terms]


class Reading(Strict):
    """Another reading of what the paper leaves open: dotted key -> value laid over the scenario.

    It makes a variant of its name of each of the scenario's ("VARIANT, NAME"), for its
    ``controllers`` or all of the page's.
    """

    why: str
    set: dict[str, Any]
    controllers: list[str] = Field(default_factory=list)


class Learned(Strict):
    """A trained agent that a scenario compares, wherever one is given.

    Attributes
    ----------
    called : str
        What the paper's own numbers call it (``others``); "" for its own name.
    at : list of str
        Variants that it is run in; empty for all, but for readings with controllers of their own.
    """

    called: str = ""
    at: list[str] = Field(default_factory=list)


class Paper(Strict):
    """The publication beside a scenario.

    Attributes
    ----------
    controllers : list of str
        Those of ours that it compares; empty: not part of the page of comparisons.
    metrics : list of str
        What the page shows; ``flows.NAME`` is one flow's goodput.
    values : dict
        metric -> cc -> number, or metric -> variant -> cc -> number.
    others : dict
        The same of schemes that the simulator hasn't.
    learned : dict
        Trained agents that it compares: name -> `Learned`. Claims that name one are judged where
        it was run; ``*`` never stands for it.
    claims, readings, notes
        What else it says, what else it may mean, and why numbers differ (Markdown).
    """

    controllers: list[str] = Field(default_factory=list)
    metrics: list[str] = Field(default_factory=list)
    values: dict[str, dict[str, Any]] = Field(default_factory=dict)
    others: dict[str, dict[str, Any]] = Field(default_factory=dict)
    learned: dict[str, Learned] = Field(default_factory=dict)
    claims: list[Claim] = Field(default_factory=list)
    readings: dict[str, Reading] = Field(default_factory=dict)
    notes: str = ""

    def of(self, label: str, controller: str) -> dict[str, float]:
        """Metric -> the paper's number for a variant and control or agent, if it has one."""
        agent = self.learned.get(controller)
        name = controller if agent is None else agent.called or controller
        return {metric: value for metric, at, cc, value in self.numbers(other=agent is not None)
                if at in ("", label) and cc == name}  # fmt: skip

    def numbers(self, other: bool = False) -> Iterator[tuple[str, str, str, float]]:
        """Every number as metric, variant, cc and value; ``other``: of schemes not ours."""
        for metric, entries in (self.others if other else self.values).items():
            for key, entry in entries.items():
                if isinstance(entry, dict):
                    yield from ((metric, key, cc, float(value)) for cc, value in entry.items())
                else:
                    yield metric, "", key, float(entry)


def split(term: str) -> tuple[str, str]:
    """Control and variant of a claim's term; "" if it names no variant."""
    controller, _, label = term.partition("@")
    return controller.strip(), label.strip()
