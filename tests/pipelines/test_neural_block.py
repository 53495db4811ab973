"""The report's section on the neural classifier, from the files that it reads."""

import json

import pytest

from models.sbd.results.neural import Point
from pipelines.reporting.inputs import Inputs, MissingInput
from pipelines.reporting.sbd import neural

CURVE = [
    {"epoch": i, "loss": 0.5 / (i + 1), "validation_loss": loss, "validation_accuracy": 0.9}
    for i, loss in enumerate((0.4, 0.2, 0.3))
]


def of(mean: float) -> dict[str, float]:
    return {"mean": mean, "low": mean - 0.01, "high": mean + 0.01}


def test_comparison_shows_signed_differences_of_known_rivals_alone(tmp_path):
    rival = {"window": of(0.95), "connection": of(0.97)}
    rival |= {"window_difference": of(-0.02), "connection_difference": of(0.0)}
    row = {"protocol": "family", "splits": 7, "seeds": 1, "windows": 9, "connections": 3, "by": {}}
    row |= {key: of(0.93) for key in ("window", "sb", "nsb", "connection")}
    table = {"settings": {}, "data_hash": "", "windows": 9, "connections": 3, "choice": None}
    path = tmp_path / "benchmarks" / "results" / "neural.json"
    path.parent.mkdir(parents=True)
    against = {"smartsbd-plus-lr": rival, "threshold": rival}
    path.write_text(json.dumps({**table, "protocols": [{**row, "against": against}]}))
    page = str(neural.comparison(Inputs(tmp_path)))
    assert '-0.020<small class="ci">-0.030, -0.010</small>' in page
    assert '+0.000<small class="ci">-0.010, +0.010</small>' in page
    assert "threshold" not in page


def test_curve_is_drawn_and_kept_for_plots(tmp_path):
    neural.write_curve(tmp_path, [Point(**point) for point in CURVE], 1)
    assert (tmp_path / "curve.svg").read_text().startswith("<svg")
    lines = (tmp_path / "curve.csv").read_text().splitlines()
    assert lines[0] == "epoch,loss,validation_loss,validation_accuracy"
    assert len(lines) == 1 + len(CURVE)
    path = tmp_path / "reports" / "neural" / "curve.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(CURVE))
    assert "validation connections" in str(neural.learning_curve(Inputs(tmp_path)))


@pytest.mark.parametrize(
    ("block", "command"),
    [(neural.comparison, neural.COMMAND), (neural.learning_curve, "make repro")],
)
def test_what_is_missing_says_how_to_make_it(block, command, tmp_path):
    with pytest.raises(MissingInput) as caught:
        block(Inputs(tmp_path))
    assert caught.value.command == command
