"""The card of the network of contexts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from models.card import Card, Made, Row, Table, facts, interval, render
from models.qos.table import FEATURES, Borders
from models.qos.variables import VARIABLES

if TYPE_CHECKING:
    from models.origin import Origin
    from models.qos.params import Params

LIMITS = (
    "Trained on simulated sessions of ten seconds over two paths of constant rate, LIA and minRTT: "
    "links that vary, other controls and other schedulers are not in it.",
    "Quality is that of a published curve for video of standard definition; a picture that stands "
    "still counts as 20 dB.",
    "It tells what goes with what in these sessions. A setting that nobody can choose, such as a "
    "path's bandwidth, belongs in --given.",
)


def text(
    name: str,
    origin: Origin,
    params: Params,
    borders: Borders,
    judged: dict[str, Any],
    worth: Any,
    labels: Sequence[str],
    sessions: tuple[int, int],
) -> str:
    """The model card, in Markdown."""
    from features.spec import schema_hash

    count, held = sessions
    errors, right = judged["errors"], judged["accuracies"]
    rows: tuple[Row, ...] = tuple(
        (
            key,
            one.unit,
            one.group,
            ", ".join(one.names(borders.cardinality[key])),
            ", ".join(f"{edge:.4g}" for edge in borders.of[key]),
        )
        for key, one in VARIABLES.items()
    )
    figures = (
        Table(rows, ("variable", "unit", "group", "values", "borders")),
        Table(
            (
                ("log-likelihood of a session, nats", interval(judged["log_likelihood"])),
                ("log-probability of its quality given the settings, nats", interval(worth)),
                *((f"calibration error of {one}", f"{e:.4f}") for one, e in errors.items()),
                *((f"most probable {one} is right", f"{a:.3f}") for one, a in right.items()),
            ),
            before=f"On {held} sessions that training did not see; in brackets the 95 % interval.",
        ),
    )  # fmt: skip
    made = Made(
        "Bayesian network, kept as a table",
        [feature.name for feature in FEATURES],
        len(FEATURES),
        f"{count - held} simulated streaming sessions",
        schema_hash(FEATURES, {}),
        origin,
        {"prior (sessions)": params.equivalent_sample_size},
    )
    summary = (
        "How probable each quality of a video stream over two paths is, given their bandwidth and "
        "its rate."
    )
    purpose = (
        "Choosing what can be chosen before a stream begins, mostly its rate: `cczoo qos advise "
        "--target psnr=good,buffer=high --given bw1=low`. Exported, it answers with the "
        f"probability of each of {len(labels)} outcomes, {labels[0]} to {labels[-1]}."
    )
    return render(Card(name, summary, facts(made), purpose, figures, limits=LIMITS))
