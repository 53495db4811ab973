"""The last step of ``cczoo train sbd``: write the models that are kept as entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from export.trained_entry import write_trained
from models.sbd import family
from models.sbd.results.kept import HEADLINE, METRICS
from models.sbd.train.job import Job
from models.sbd.train.kept import kept


def step_fit(job: Job) -> dict[str, Any]:
    """Write every kept model; returns the headline figures by name."""
    written: dict[str, Any] = {}
    for trained in kept(job):
        write_trained(trained, family.card(trained), job.zoo)
        written[trained.name] = trained.metrics
    METRICS.write(job.out, written)
    HEADLINE.write(job.out, headline(written))
    return {name: metrics["headline"] for name, metrics in written.items()}


def headline(written: Mapping[str, Any]) -> dict[str, float]:
    """Headline figures as flat ``{"model.protocol.window": accuracy}`` for trackers and DVC."""
    return {
        f"{name}.{protocol}.{kind}": figure
        for name, metrics in written.items()
        for protocol, figures in metrics["headline"].items()
        for kind, figure in figures.items()
        if figure is not None
    }
