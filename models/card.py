"""The card of an entry: one description and one template, whatever the model's family is.

A family says what its model is, how it was trained, how well it does and where it mustn't be used;
:func:`render` lays that out as Markdown. Nothing here knows of classes, windows or accuracies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models.origin import Origin

if TYPE_CHECKING:
    from jinja2 import Template

Row = tuple[str, ...]
DASH = "–"
"""Stands where there is no number."""


@dataclass(frozen=True)
class Table:
    """Figures of one kind, with what a reader must know of them.

    Attributes
    ----------
    rows : tuple of tuple of str
        Cells of each row; without rows nothing of the table is shown.
    columns : tuple of str
        A heading for each cell; empty where the rows are names and their values.
    before, after : str
        Text above and below the table, if any.
    """

    rows: tuple[Row, ...]
    columns: tuple[str, ...] = ()
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Card:
    """What a card says.

    Attributes
    ----------
    title, summary : str
        The model's name, and what it is in one sentence.
    facts : mapping
        What it is made of and how it was made, by name; :func:`facts` gives those that every
        trained model has.
    purpose : str
        What it is for; left out where the summary says it.
    figures : tuple of Table
        How well it does, with intervals where they are estimates. What is measured is the
        family's: accuracies, returns of a simulation, errors against a function.
    settings : mapping, optional
        Hyperparameters, where they are more than the facts can hold.
    limits : tuple of str
        Where the model mustn't be trusted.
    listed : bool
        Facts are a list, not a table: for short cards.
    spaced : bool
        An empty line follows each heading. Cards of released models have none there.
    """

    title: str
    summary: str
    facts: Mapping[str, str]
    purpose: str = ""
    figures: tuple[Table, ...] = ()
    settings: Mapping[str, Any] | None = None
    limits: tuple[str, ...] = ()
    listed: bool = False
    spaced: bool = True


@dataclass(frozen=True)
class Made:
    """How a model was made.

    Attributes
    ----------
    kind : str
        What kind of model it is, such as "decision tree", for people.
    features : sequence of str
        What it is given: names of its columns, or of groups of them.
    count : int
        Number of its columns.
    trained_on : str
        What it has learned from.
    schema_hash : str
        :func:`features.spec.schema_hash` of its features and their settings.
    origin : Origin
    settings : mapping
        Its hyperparameters.
    """

    kind: str
    features: Sequence[str]
    count: int
    trained_on: str
    schema_hash: str
    origin: Origin
    settings: Mapping[str, Any] = field(default_factory=dict)


def facts(made: Made) -> dict[str, str]:
    """Facts that a card tells of every trained model; what there isn't is left out."""
    origin = made.origin
    found = {
        "Kind": ", ".join([made.kind, *_listed(made.settings)]),
        f"Features ({made.count})": ", ".join(made.features),
        "Trained on": made.trained_on,
    }
    if origin.settings:
        found["Computed with"] = ", ".join(_listed(origin.settings))
    found["Feature schema"] = f"`{made.schema_hash}`"
    if origin.data_hash:
        found["Training table"] = f"`{origin.data_hash}`"
    return {**found, "Made by": f"`{origin.command}`"}


def interval(value: Mapping[str, Any] | None) -> str:
    """``0.957 [0.951, 0.962]``, or a dash."""
    if not value or value["mean"] is None:
        return DASH
    if value["low"] is None or value["high"] is None:
        return f"{value['mean']:.3f}"
    return f"{value['mean']:.3f} [{value['low']:.3f}, {value['high']:.3f}]"


def render(card: Card) -> str:
    """The card as Markdown, the content of ``card.md``."""
    return _template().render(card=card)


def _listed(settings: Mapping[str, Any]) -> list[str]:
    return [f"{name} {value}" for name, value in settings.items()]


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # Markdown, not HTML: escaping would spoil it.
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("card.md.j2")
