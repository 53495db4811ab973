"""What the cards of shared-bottleneck models say, from the same numbers as every table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from models.card import DASH, Card, Made, Row, Table, facts, render
from models.sbd.accumulate import VerdictSettings
from models.sbd.windows import Windows

SUMMARIES = {
    "smartsbd": "The paper's SmartSBD classifier, reproduced on kernel logs of this project's lab.",
    "smartsbd-plus": "A shared-bottleneck classifier on scale-free features, for conditions that "
    "training didn't have.",
    "smartsbd-plus-kernel": "The general classifier on features that a kernel computes: integers "
    "alone, from the RTTs and congestion states of two subflows to the verdict.",
    "smartsbd-series": "A small Siamese temporal convolution on the raw pair of series: it makes "
    "its own features.",
}
"""Family of features -> what a model of it is."""

LIMITS = {
    "smartsbd": (
        "Of the paper's features only RTT_SD_Ratio says the same everywhere; distances grow with "
        "RTTs and rates, and Min_RTT_Ratio tells the set-up. Under conditions that training didn't "
        "have expect the last row of the first table, not the first: use smartsbd-plus there.",
    ),
    "smartsbd-plus": (),
    "smartsbd-plus-kernel": (
        "Left out of the general model's 44 features are those that integers compute dearly "
        "(coherences, RFC 8382's, warping) and those of retransmissions, which no call tells of.",
    ),
    "smartsbd-series": (
        "Reads series, not features: `cczoo features series` makes its table, and nothing here "
        "makes them inside a kernel. Its targets are those that run ONNX, beside the kernel.",
    ),
}
"""Family of features -> limits beside those of every model of this lab's logs."""

LAB = (
    "Trained on kernel logs of a lab with emulated links, two subflows, bulk uploads and drop-tail "
    "queues; not on\n  radio links as they are, nor on active queue management.",
    "A window needs both subflows to have met a limit (Recovery or Loss); before that there is no "
    "answer.",
)
COVERAGE = (
    ("confidence asked", "confidence"),
    ("windows answered", "window_coverage"),
    ("right", "window_accuracy"),
    ("connections answered", "connection_coverage"),
    ("right", "connection_accuracy"),
)
"""Heading -> figure."""


def text(
    name: str,
    made: Made,
    verdicts: VerdictSettings,
    level: float,
    accuracies: Sequence[Row],
    others: Sequence[Row],
    coverage: Sequence[Mapping[str, float | None]],
) -> str:
    """The card of a kept model.

    Parameters
    ----------
    name : str
    made : Made
        Its features' settings are those of :class:`features.params.SbdParams`.
    verdicts : VerdictSettings
    level : float
        Share of cases that intervals hold.
    accuracies, others : sequence of tuple of str
        As of the same names in :mod:`models.sbd.card_figures`.
    coverage : sequence of mapping
        Coverage and accuracy at each confidence, on families of conditions left out.
    """
    family = made.origin.family
    card = Card(
        title=name,
        summary=SUMMARIES[family],
        facts=facts(made),
        purpose=_purpose(made.origin.settings["window_factor"], verdicts),
        figures=(
            Table(
                tuple(accuracies),
                ("protocol", "per window", "per connection"),
                "All figures are on connections that training did not see; in brackets the "
                f"{round(100 * level)} % interval.",
            ),
            Table(
                tuple(others),
                ("scheme", "both", "SB", "NSB"),
                "Beside it, over the four sites (mean of both classes, SB, NSB):",
            ),
            Table(
                tuple(tuple(_share(row[key]) for _, key in COVERAGE) for row in coverage),
                tuple(heading for heading, _ in COVERAGE),
                "Confidence and coverage on families of conditions left out of training:",
            ),
        ),
        limits=(*LAB, *LIMITS[family]),
        spaced=False,
    )
    # The empty line at the end is that of the cards that were released.
    return render(card) + "\n"


def _purpose(window_factor: float, verdicts: VerdictSettings) -> str:
    return (
        f"Telling a sender, at the end of each window of {window_factor} times the larger minimum "
        "RTT, whether its two MPTCP\nsubflows share a bottleneck (SB) or not (NSB). Successive "
        f"windows of a connection add up:\nstate = {state(verdicts)}{_within(verdicts)};\n"
        f'below {100 * verdicts.confidence:.0f} % confidence the answer is "don\'t know".'
    )


def _within(verdicts: VerdictSettings) -> str:
    return "" if verdicts.bound is None else f", within ±{verdicts.most:.3f}"


def state(verdicts: VerdictSettings) -> str:
    """What the state is after a window, as a formula of the state before it."""
    return (
        f"{verdicts.decay} × state + {verdicts.temperature} × "
        f"({verdicts.slope:.3f} × logit(p) {verdicts.offset:+.3f})"
    )


def trained_on(train: Windows) -> str:
    """What a model has learned from."""
    datasets = sorted(set(train.column("dataset")) - {""})
    connections = int(np.unique(train.group).size)
    return f"{len(train)} windows of {connections} connections: {', '.join(datasets)}"


def _share(value: float | None) -> str:
    return DASH if value is None else f"{value:.3f}"
