"""Plays what was learned: in the league's scenarios, and in the environment's test episodes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from data.errors import UserError
from models.closedloop import Player
from models.decisions.simulated import Play, runs
from models.decisions.tcco import Settings
from models.envs import samplers
from models.envs.tcco import TccoBatch
from models.policies.identity import code_digest, identity
from models.policies.policy import of_training
from pipelines.league import capacity, draw, scores
from pipelines.league import kept as league
from pipelines.league.draw import Drawn
from pipelines.league.families import FAMILIES
from pipelines.league.players import CLASSICAL, Entrant, opened
from pipelines.league.runs import Job
from pipelines.output import progress
from pipelines.studies import episodes
from pipelines.studies.offline.kept import ONLINE, SAMPLER
from pipelines.studies.papers.runs import Kept, flat, sources

SIDE_BY_SIDE = 16
"""Runs of an agent that are played side by side; a killed command loses as many at most."""
SHOWN = ("power", "goodput", "rtt_ratio")


def scenarios(every: int) -> list[Drawn]:
    """Each family's first scenario of the league, and then one in so many."""
    found = draw.scenarios(FAMILIES)
    return [one for one in found if int(one.name.rpartition("-")[2]) % every == 0]


def of_league(
    folders: dict[str, dict[int, Path]], drawn: Sequence[Drawn], work: Path
) -> pl.DataFrame:
    """A row for each run of what was learned, as `pipelines.studies.offline.kept.RUNS` says.

    Parameters
    ----------
    folders : dict
        Method -> seed -> training.
    drawn : sequence of Drawn
    work : Path
        Where finished runs are kept.
    """
    most, family = capacity.of_all(drawn), {one.name: one.family for one in drawn}
    rows: list[dict[str, Any]] = []
    todo = [(name, seed, path) for name, mine in folders.items() for seed, path in mine.items()]
    with Kept(work) as kept:
        for name, seed, path in progress(todo, "playing the league", len(todo)):
            entrant = Entrant(f"{name}-{seed}", (str(path),))
            found = _played(entrant, drawn, kept)
            for (scenario, _), row in scores.rows(drawn, most, found, [entrant.name]).items():
                place = {"player": name, "seed": seed, "family": family[scenario]}
                figures = {key: row[key] for key in SHOWN}
                rows.append({**place, "scenario": scenario, **figures})
    return pl.DataFrame(rows, infer_schema_length=None)


def _played(entrant: Entrant, drawn: Sequence[Drawn], kept: Kept) -> dict[tuple[str, str], Any]:
    player = opened(entrant)
    keys = {one.name: Job(entrant, one).key() for one in drawn}
    missing = [one for one in drawn if kept.found(keys[one.name]) is None]
    for at in range(0, len(missing), SIDE_BY_SIDE):
        part = missing[at : at + SIDE_BY_SIDE]
        for one, row in zip(part, player.play([(d.spec, d.seed) for d in part]), strict=True):
            row.pop("decision_us", None)
            kept.keep(keys[one.name], flat(row))
    return {(one.name, entrant.name): kept.found(keys[one.name]) for one in drawn}


def published(drawn: Sequence[Drawn], folder: Path = league.FOLDER) -> pl.DataFrame:
    """The league's own runs of everybody in the same scenarios; they have no seed.

    Raises
    ------
    UserError
        When the league's page is of other scenarios, or lacks the online agent.
    """
    figures = league.read(folder)
    whole = draw.scenarios(FAMILIES, figures.header.seed, figures.header.each)
    if draw.digest(whole) != figures.header.digest:
        raise UserError(f"{folder}: of other scenarios than today's: {league.COMMAND}")
    family = {one.name: one.family for one in drawn}
    rows = [
        {"player": cc, "seed": None, "family": family[scenario], "scenario": scenario,
         **{key: row[key] for key in SHOWN}}
        for (scenario, cc), row in figures.rows.items() if scenario in family
    ]  # fmt: skip
    if not any(row["player"] == ONLINE for row in rows):
        raise UserError(f"{folder}: without {ONLINE}: make it again by {league.COMMAND}")
    return pl.DataFrame(rows, schema_overrides={"seed": pl.Int64}, infer_schema_length=None)


def of_environment(
    folders: dict[str, dict[int, Path]], control: str, count: int, work: Path
) -> dict[str, list[list[float]]]:
    """Mean rewards of a step in the same test episodes: player -> for each seed, each episode.

    Parameters
    ----------
    folders : dict
        Method -> seed -> training.
    control : str
        The best logged control, which decides in the agent's place.
    count : int
        Episodes.
    work : Path
        Where finished ones are kept.
    """
    from pipelines.controllers import player

    playing = [(name, Player(of_training(path)))
               for name, mine in folders.items() for path in mine.values()]  # fmt: skip
    playing.append((ONLINE, player(ONLINE)))
    found: dict[str, list[list[float]]] = {}
    with Kept(work) as kept:
        for name, one in progress(playing, "playing test episodes", len(playing)):
            key = _key("returns", identity(one.policy), SAMPLER, count)
            values = kept.found(key) or kept.keep(key, _numbered(_returns(one, count)))
            found.setdefault(name, []).append(list(values.values()))
        key = _key("control", control, SAMPLER, count)
        values = kept.found(key) or kept.keep(key, _numbered(of_control(control, count)))
        found[control] = [list(values.values())]
    return found


def _returns(player: Player, count: int) -> Any:
    subflows = player.policy.params["subflows"]
    params = {"subflows": subflows}
    batch = TccoBatch(count, samplers.named(SAMPLER), params=params, threads=1, stagger=False)
    return episodes.returns(batch, episodes.greedy(player, batch))


def of_control(control: str, count: int) -> Any:
    """What a control would be paid in the agent's place, by its actions as they are read in logs.

    Returns
    -------
    float64 array [count]
    """
    plays = []
    for i in range(count):
        rng = np.random.default_rng([episodes.TEST_SEED, i, 0])
        spec = samplers.named(SAMPLER)(rng)
        plays.append(Play(str(i), str(i), control, spec, int(rng.integers(1 << 31))))
    settings = Settings()
    made = runs(plays, settings.params.steps, settings)
    return np.array([one.reward.sum(axis=1).mean(dtype=np.float64) for one in made])


def _numbered(values: Any) -> dict[str, float]:
    return {str(i): float(f"{value:.7g}") for i, value in enumerate(values)}


def _key(*facts: Any) -> str:
    code = [code_digest(), sources(frozenset(CLASSICAL)), episodes.digest([Path(__file__)])]
    return hashlib.sha256(json.dumps([*facts, *code]).encode()).hexdigest()
