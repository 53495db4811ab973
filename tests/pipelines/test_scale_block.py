"""The report's tables of many groups and of drift."""

import json

import pytest

from pipelines.reporting.inputs import Inputs, MissingInput
from pipelines.reporting.sbd import scale

COUNTS = {"own": 4, "pooled": 95, "failed": 1}
RUN = {"groups": 100, "rows": 200277, "counts": COUNTS, "seconds": 127.3,
       "driver_mb": 622, "worker_mb": 432}  # fmt: skip
DRIFT = {
    "trials": 60,
    "halves": {"drift": 0.05, "auc": 0.503, "novel": 0.052},
    "left_out": [
        {"left_out": "lossy", "drift": True, "auc": 0.943, "novel": 0.034, "accuracy": 0.764},
        {"left_out": "frankfurt", "drift": False, "auc": 0.886, "novel": 0.0, "accuracy": None},
    ],
}


@pytest.fixture
def keep(tmp_path):
    def write(name, value):
        path = tmp_path / "benchmarks" / "results" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
        return Inputs(tmp_path)

    return write


@pytest.mark.parametrize("same", [True, False])
def test_every_run_has_a_row_and_a_difference_is_told(keep, same):
    keep("groups", {"runs": [RUN]})
    runs = [{"alone": {**RUN, "groups": 40}, "cluster": {**RUN, "seconds": 68.2}, "same": same}]
    html = scale.many(keep("cluster", {"runs": runs}))
    for text in ("127", "68", "622", "432", ">99<", ">40<"):
        assert text in html
    assert ("NOT the same" in html) is not same


def test_drift_shows_false_alarms_and_what_was_left_out(keep):
    html = scale.drift(keep("drift", DRIFT))
    for text in ("random halves, 60 times", "5 %", "lossy left out", "yes", "0.943", ">no<"):
        assert text in html


@pytest.mark.parametrize("block", [scale.many, scale.drift])
def test_what_was_not_measured_is_named(tmp_path, block):
    with pytest.raises(MissingInput, match=r"\.json is missing"):
        block(Inputs(tmp_path))
