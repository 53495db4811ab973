"""The report's table of exporters."""

import json

import pytest

from pipelines.reporting import peers
from pipelines.reporting.inputs import Inputs, MissingInput

JUDGED = {"random_rows": 9, "random_wrong": 0, "threshold_rows": 6, "threshold_wrong": 0}
FOUND = {
    "flags": ["-O2"],
    "peers": ["emlearn==1", "numpy==2"],
    "models": {
        "a tree": {
            "trees": 1,
            "nodes": 7,
            "results": {
                "cczoo if-else": {"ns": 10.0, "bytes": 100, **JUDGED},
                "emlearn": {"ns": 25.0, "bytes": 120, **JUDGED, "threshold_wrong": 5},
                "m2cgen": {"error": "not compiled within <45> s"},
                "scikit-learn, one row": {"ns": 85600.0, **JUDGED},
            },
            "ratios": {
                "ours": "cczoo if-else",
                "time": {"cczoo if-else": 1.0, "emlearn": 2.5, "scikit-learn, one row": 8560.0},
                "bytes": {"cczoo if-else": 1.0, "emlearn": 1.2},
            },
        }
    },
}


def test_every_exporter_has_a_row(tmp_path):
    path = tmp_path / "benchmarks" / "results" / "exporters.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(FOUND))
    html = peers.exporters(Inputs(tmp_path))
    for text in (
        "a tree: 1 tree, 7 nodes", "<strong><code>cczoo if-else</code></strong>", "2.50", "1.20",
        "5 of 6", "85600", "not compiled within &lt;45&gt; s", "emlearn==1", "make bench",
    ):  # fmt: skip
        assert text in html, text
    assert "numpy" not in html


def test_without_results_the_command_is_told(tmp_path):
    with pytest.raises(MissingInput) as caught:
        peers.exporters(Inputs(tmp_path))
    assert caught.value.command == "make bench"
