"""The network of contexts as a family of models (mp-cdg.txt section 4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.judged import Asked, Block, Figure, Pairing, StoredTest
    from models.store import ZooModel
    from models.trained import Job, Trained


def data(observes: str) -> Path:
    """Table of ``cczoo qos sessions``."""
    return Path("data/processed/qos.parquet")


def train(job: Job) -> Iterable[Trained]:
    """Discretise contexts, compare structures, keep the paper's."""
    from models.qos.train import train

    return train(job)


def card(trained: Trained) -> str:
    """Borders, calibration and likelihood of the network."""
    from models.qos.card import text

    return text(trained.name, **trained.card)


def evaluate(entry: ZooModel, data: Path) -> Mapping[str, Figure]:
    """Logarithm of the probability that was given to what happened in each session."""
    import numpy as np

    from models.judged import Figure
    from models.qos.judged import of_table
    from models.stats.intervals import by_connection

    sessions = of_table(entry, data)
    worth = sessions.worth(entry.answers(sessions.settings))
    found = by_connection(worth, np.arange(len(worth)))
    return {"log_probability": Figure(**found, count=len(sessions.outcome), of="sessions")}


def stored_test(entry: ZooModel) -> StoredTest | None:
    """Held-out sessions of ``test.json``."""
    from models.qos.judged import stored_test

    return stored_test(entry)


def paired(candidate: ZooModel, champion: ZooModel | None, asked: Asked) -> Pairing:
    """Both models on the candidate's held-out sessions, or on those of a table."""
    from models.qos.judged import paired

    return paired(candidate, champion, asked)


def blocks(root: Path) -> Sequence[Block]:
    """Structures, discretisations, and the sessions of each scheduler."""
    from models.qos.report import blocks

    return blocks(root)
