"""A throw-away family: a controller with one action, by how many segments the window changes.

It observes the RTT over its minimum and the share of lost segments, and learns from a table of what
would have been best. Nothing of it lies anywhere else: that is what the test that uses it shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from pydantic import Field
from sklearn.tree import DecisionTreeRegressor

from data.errors import UserError
from data.strict import Strict
from features.spec import Feature
from models import store
from models.families import Registered
from models.judged import Asked, Block, Figure, Paired, Pairing, StoredTest
from models.stats.intervals import by_connection
from models.store import ZooModel
from models.trained import Job, Test, Trained

LINE = Registered(
    "tests.families.paced",
    "tests.families.paced",
    ("paced",),
    "paced",
    "a controller with one action",
)
FEATURES = (
    Feature("rtt_ratio", "1", 0.0, 8.0, 1024, "throw-away", "RTT over its minimum."),
    Feature("loss", "1", 0.0, 1.0, 4096, "throw-away", "Share of lost segments."),
)
NAMES = [feature.name for feature in FEATURES]
TEST = "test.json"
LARGEST_STEP = 16.0
"""Segments; a typical size of what an answer can be wrong by."""


class Params(Strict):
    """``models.paced`` of ``params.yaml``."""

    depth: int = Field(4, ge=1, le=12)
    seed: int = 1


@dataclass(frozen=True)
class Rows:
    """Observations float64 array [N, 2], the best steps [N] in segments, and their flows [N]."""

    x: np.ndarray
    step: np.ndarray
    flow: np.ndarray

    def worth(self, answers: np.ndarray) -> np.ndarray:
        """Float64 array [N]: the error in segments, negative, so that larger is better."""
        return -np.abs(np.reshape(answers, -1) - self.step)


def read(path: Path) -> Rows:
    """Rows of a table with columns rtt_ratio, loss, step and flow."""
    frame = pl.read_parquet(path)
    if missing := {*NAMES, "step", "flow"} - {*frame.columns}:
        raise UserError(f"{path}: no column {sorted(missing)[0]}: collect the table anew")
    return Rows(frame.select(NAMES).to_numpy(), frame["step"].to_numpy(), frame["flow"].to_numpy())


def write_table(path: Path, seed: int = 0, flows: int = 30) -> Path:
    """A table of made-up flows, for the tests."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.uniform(1, 4, 20 * flows), rng.uniform(0, 0.2, 20 * flows)])
    step = np.where(x[:, 1] > 0.1, -8.0, 6.0 - 3 * np.floor(x[:, 0]))
    flow = np.repeat(np.arange(flows), 20)
    pl.DataFrame(dict(zip(NAMES, x.T, strict=True)) | {"step": step, "flow": flow}).write_parquet(
        path
    )
    return path


def data(observes: str) -> Path:
    return Path("data/processed/paced.parquet")


def train(job: Job) -> Iterable[Trained]:
    params = Params.parse(job.params, "models.paced")
    rows = read(job.data)
    held_out = rows.flow % 5 == 0
    known = Rows(rows.x[~held_out], rows.step[~held_out], rows.flow[~held_out])
    test = Rows(rows.x[held_out], rows.step[held_out], rows.flow[held_out])
    tree = DecisionTreeRegressor(max_depth=params.depth, random_state=params.seed)
    tree.fit(known.x, known.step)
    figure = by_connection(test.worth(tree.predict(test.x)), test.flow)

    def content(answers: Mapping[str, np.ndarray]) -> bytes:
        scores = {
            file: {**by_connection(test.worth(found), test.flow), "steps": len(test.x)}
            for file, found in answers.items()
        }
        kept = {"values": test.x.tolist(), "step": test.step.tolist(), "flow": test.flow.tolist()}
        return json.dumps({**kept, "scores": scores}).encode()

    yield Trained(
        name=f"paced-depth{params.depth}",
        model=tree,
        features=FEATURES,
        meta={
            "family": "paced",
            "labels": ("step",),
            "output": {"kind": "scores", "units": ["segments"]},
            "created_by": job.command,
        },
        observations=known.x,
        metrics={"headline": {"test": {"worth": figure["mean"]}}, "depth": params.depth},
        test=Test(TEST, test.x, content),
    )


def _stored(entry: ZooModel) -> tuple[Rows, Mapping[str, Mapping[str, float]]]:
    content = entry.read_json(TEST)
    rows = Rows(*(np.array(content[key]) for key in ("values", "step", "flow")))
    return rows, content["scores"]


def evaluate(entry: ZooModel, data: Path) -> Mapping[str, Figure]:
    rows = read(data)
    worth = rows.worth(entry.answers(rows.x))
    return {"worth": Figure(**by_connection(worth, rows.flow), count=len(worth), of="steps")}


def stored_test(entry: ZooModel) -> StoredTest | None:
    rows, scores = _stored(entry)
    return StoredTest(rows.x, lambda answers: float(rows.worth(answers).mean()), scores, "steps")


def paired(candidate: ZooModel, champion: ZooModel | None, asked: Asked) -> Pairing:
    rows = read(asked.data) if asked.data.is_file() else _stored(candidate)[0]
    worth = [rows.worth(asked.answer(m, rows.x)) for m in (candidate, champion) if m is not None]
    pair = Paired(
        candidate=worth[0],
        champion=worth[1] if champion is not None else None,
        group=rows.flow,
        meaning="segments beside the best step",
        unit=LARGEST_STEP,
    )
    lossy = np.where(rows.x[:, 1] > 0.1, "lossy", "clean")
    described = {"what": "steps", "hash": f"{rows.x.sum():.6f}", "steps": len(rows.x)}
    return Pairing("steps", "steps", {"steps": pair}, {"path": lossy}, described)


def card(trained: Trained) -> str:
    return f"# {trained.name}\n\nSteps of a window, learned by a tree of {len(NAMES)} features.\n"


def blocks(root: Path) -> Sequence[Block]:
    zoo = root / "models" / "trained"
    entries = [store.load(name, zoo) for name in store.names(zoo)]
    rows = []
    for entry in entries:
        if entry.meta.family == "paced":
            kept = entry.read_json(TEST)["scores"]["model.json"]
            figure = Figure(kept["mean"], kept["low"], kept["high"], kept["steps"], "steps")
            rows.append((entry.meta.name, figure, entry.read_json("metrics.json")["depth"]))
    return (
        [Block("Controllers of one action", "", ("model", "worth", "depth"), rows)] if rows else []
    )
