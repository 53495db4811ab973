"""Show what learned from logs alone beside who made the logs, as its page has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.reporting.inputs import Inputs, MissingInput
from pipelines.reporting.markup import Column, Html, figure, paragraph, stacked, table

if TYPE_CHECKING:
    from pipelines.studies.offline.results import Study
    from pipelines.studies.offline.statistics import Estimate


def agents(inputs: Inputs) -> str:
    """Who loses to whom, in sentences, a table and a figure."""
    from models.offline.methods import METHODS
    from pipelines.league.families import STANDINGS
    from pipelines.studies.offline import drawing, words
    from pipelines.studies.offline.lines import CLONE, LOGGED
    from pipelines.studies.offline.statistics import GROUPS

    study = _study(inputs)
    made = paragraph(
        f"Each method learned from {study.learned.decisions:,} logged decisions of classical "
        f"controls, with {len(study.learned.seeds)} seeds, and plays in one of "
        f"{study.played.every} of the league's scenarios, which the logs haven't. Power as in the "
        "league; differences are paired, over all families. docs/offline-agents.md says how."
    )
    made += "".join(paragraph(one) for one in study.sentences)
    columns = [
        Column("who decides", number=False),
        *(Column(STANDINGS.get(group, "all families"), group="power") for group in GROUPS),
        Column(f"less {words.title(CLONE)}"),
        Column(f"less {LOGGED}"),
        Column("reward"),
    ]
    rows: list[list[Any]] = []
    for row in study.rows:
        known = row.player in METHODS
        name = METHODS[row.player].summary if known else f"{row.player}: {row.who}"
        scores = [_cell(row.scores[group]) for group in GROUPS]
        rows.append([name, *scores, *map(_cell, (row.to_clone, row.to_logged, row.reward))])
    made += table(columns, rows, "Learned from logs alone, and who made them", best=())
    picture, caption = drawing.drawn(study, standalone=False)["scores"]
    return made + figure(picture, caption, wide=True)


def tuning(inputs: Inputs) -> str:
    """How much sooner an online training gets somewhere that begins with such a network."""
    from models.offline.methods import METHODS
    from pipelines.studies.offline import drawing, kept, page

    study = _study(inputs)
    if study.tuning is None:
        raise MissingInput(inputs.root / kept.FOLDER / kept.TUNING.name, kept.TUNING.made_by)
    columns = [Column("begins with", number=False), Column("got there", number=False),
               Column("steps, of all from nothing"), Column("of those until then")]  # fmt: skip
    rows: list[list[Any]] = [
        [METHODS[one.method].summary, f"{one.seeds - one.missed} of {one.seeds}",
         _cell(one.whole), _cell(one.own)]
        for one in study.ratios
    ]  # fmt: skip
    text = (
        "Online trainings that begin with a network from logs, until they do as well as one from "
        "nothing at its end: steps over all that this took, and over those after which it was "
        f"there first. {page.sentence(study)}"
    )
    picture, caption = drawing.drawn(study, standalone=False)["tuning"]
    return paragraph(text) + table(columns, rows) + figure(picture, caption, wide=True)


def _study(inputs: Inputs) -> Study:
    from data.errors import UserError
    from pipelines.studies.offline import kept, results

    folder = inputs.root / kept.FOLDER
    if not (folder / kept.RUNS).is_file():
        raise MissingInput(folder / kept.RUNS, f"{kept.COMMAND} learn,play,tune")
    try:
        return results.read(folder)
    except UserError as error:
        raise MissingInput(folder, f"{kept.COMMAND} learn,play,tune", str(error)) from None


def _cell(one: Estimate | None) -> str | Html:
    return "" if one is None else stacked(f"{one.value:.3f}", f"{one.low:.3f}–{one.high:.3f}")
