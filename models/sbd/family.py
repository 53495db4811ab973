"""SmartSBD's classifiers of shared bottlenecks, as a family of models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from models.judged import Asked, Block, Figure, Pairing, StoredTest
    from models.store import ZooModel
    from models.trained import Job, Trained


def data(observes: str) -> Path:
    """Table of ``cczoo features`` that holds these features."""
    from features.sbd import table_of

    return Path("data/processed") / f"{table_of(observes)}.parquet"


def train(job: Job) -> Iterable[Trained]:
    """Search, predict out of sample, and fit what is kept: all steps of ``cczoo train sbd``."""
    from models.sbd.params import Params
    from models.sbd.train import job as own
    from models.sbd.train.kept import kept
    from models.sbd.train.steps import step_protocol, step_search

    steps = own.Job(
        features=job.data,
        out=job.out,
        params=cast(Params, job.params),
        command=job.command,
        progress=job.progress,
    )
    step_search(steps)
    step_protocol(steps)
    return kept(steps)


def card(trained: Trained) -> str:
    """What it was trained on, how its windows add up, and its accuracies beside others'."""
    from models.sbd import card

    return card.text(trained.name, **trained.card)


def evaluate(entry: ZooModel, data: Path) -> Mapping[str, Figure]:
    """Accuracy per window, of either class and per connection on a table's labelled rows."""
    from models.sbd.evaluate.model import figures

    return figures(entry, data)


def stored_test(entry: ZooModel) -> StoredTest | None:
    """Windows of ``test.json``, scored by the share answered rightly."""
    from models.sbd.evaluate import testset

    return testset.stored_test(entry)


def paired(candidate: ZooModel, champion: ZooModel | None, asked: Asked) -> Pairing:
    """Right answers of both models on the fixed test set."""
    from models.sbd.evaluate.paired import paired

    return paired(candidate, champion, asked)


def blocks(root: Path) -> Sequence[Block]:
    """Nothing besides the sections of the report that have drawings of their own."""
    return ()
