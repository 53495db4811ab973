"""How an entry is judged: what probability it gave to the quality that sessions had."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.judged import Asked, Paired, Pairing, StoredTest
from models.qos import table
from models.qos.table import FEATURES, Borders
from models.qos.variables import QUALITY, SETTING, VARIABLES, of_group
from models.store import ZooModel

TEST = "test.json"
LEAST = 1e-4
"""Least probability that an outcome is taken to have had: rounding may make it 0."""
MOST_PAIRED = 5000
"""Sessions that a promotion compares on."""

Float = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Sessions:
    """Settings float64 array [n, 3] and outcomes int64 array [n] of sessions."""

    settings: Float
    outcome: Ints

    def worth(self, answers: NDArray[Any]) -> Float:
        """Logarithm of the probability that each session's outcome was given, float64 array [n]."""
        positive = np.maximum(np.asarray(answers, dtype=np.float64), 0)
        share = positive / np.maximum(positive.sum(axis=1, keepdims=True), 1e-12)
        picked = share[np.arange(len(self.outcome)), self.outcome]
        return np.asarray(np.log(np.maximum(picked, LEAST)))


def outcome_of(values: Ints, borders: Borders) -> Ints:
    """Place among `models.qos.lookup.outcomes` of each session's values."""
    places = [list(VARIABLES).index(name) for name in of_group(QUALITY)]
    counts = tuple(borders.cardinality[name] for name in of_group(QUALITY))
    return np.asarray(np.ravel_multi_index(tuple(values[:, places].T), counts), dtype=np.int64)


def stored(entry: ZooModel) -> tuple[Sessions, Mapping[str, Mapping[str, Any]]]:
    """Held-out sessions kept with an entry, and the scores of its files on them."""
    content = entry.read_json(TEST)
    values = np.array(content["values"], dtype=np.float64)
    return Sessions(values, np.array(content["outcome"], dtype=np.int64)), content["scores"]


def stored_test(entry: ZooModel) -> StoredTest:
    """The same as gates and ``cczoo zoo verify`` take it."""
    sessions, scores = stored(entry)
    return StoredTest(
        sessions.settings, lambda answers: float(sessions.worth(answers).mean()), scores, "sessions"
    )


def of_table(entry: ZooModel, path: Path) -> Sessions:
    """Sessions of a table, their outcomes by the borders of an entry."""
    raw = table.read(path)
    variables = entry.read_json("advice.json")["variables"]
    borders = Borders({name: tuple(one["borders"]) for name, one in variables.items()})
    settings = [list(VARIABLES).index(name) for name in of_group(SETTING)]
    inside = np.clip(raw[:, settings], FEATURES[0].low, FEATURES[0].high)
    return Sessions(inside, outcome_of(borders.values(raw), borders))


def content_hash(sessions: Sessions) -> str:
    """SHA-256 of sessions."""
    digest = hashlib.sha256(np.ascontiguousarray(sessions.settings, dtype="<f8").tobytes())
    digest.update(np.ascontiguousarray(sessions.outcome, dtype="<i8").tobytes())
    return digest.hexdigest()


def paired(candidate: ZooModel, champion: ZooModel | None, asked: Asked) -> Pairing:
    """Both models' log-probabilities of what happened, session by session.

    Outcomes are by the candidate's borders; a champion of other outcomes can't be compared.
    """
    sessions = of_table(candidate, asked.data) if asked.data.is_file() else stored(candidate)[0]
    sessions = Sessions(sessions.settings[-MOST_PAIRED:], sessions.outcome[-MOST_PAIRED:])
    both = [
        sessions.worth(asked.answer(model, sessions.settings))
        for model in (candidate, champion)
        if model is not None
    ]
    pair = Paired(
        candidate=both[0],
        champion=both[1] if champion is not None else None,
        group=np.arange(len(sessions.outcome)),
        meaning="nats of what happened",
    )
    rate = sessions.settings[:, 2]
    columns = {"rate": np.where(rate < 2, "below 2 Mbps", "2 Mbps and more")}
    described = {
        "what": "sessions",
        "hash": content_hash(sessions),
        "sessions": len(sessions.outcome),
    }
    return Pairing("sessions", "sessions", {"sessions": pair}, columns, described)
