"""The lab's runs in the simulator: the same conditions give much the same connection."""

import json
from pathlib import Path

import numpy as np
import pytest

from data.netsim.from_lab import scenario_of
from pipelines.fidelity import _records, page, simulated

RAW = Path(__file__).parents[2] / "data" / "raw"


@pytest.fixture(scope="module")
def records():
    return _records(RAW, 1)


@pytest.mark.parametrize("case", ["shanghai-sb", "frankfurt-nsb", "NSB1", "SB3"])
def test_a_run_simulated_again_carries_about_as_much(records, case):
    chosen = [record for record in records if record["case"] == case or case in record["id"]][:4]
    ratios = []
    for record in chosen:
        table, (row,) = simulated(record)
        assert [subflow["subflow"] for subflow in row["subflows"]] == [1, 2]
        assert set(table["variable"].to_pylist()) >= {"rtt_us", "ack", "ca_state"}
        frame = table.to_pandas()
        acked = frame[frame["variable"] == "ack"].groupby("subflow")["value"]
        mbps = 8e-6 * float((acked.max() - acked.min()).sum()) / record["duration_s"]
        measured = record["traffic"]
        ratios.append(mbps / (8e-6 * measured["mptcp_bytes"] / measured["duration_s"]))
    assert 0.85 < np.median(ratios) < 1.15


def test_every_record_has_a_scenario_with_its_label(records):
    for record in records[::50]:
        spec = scenario_of(record)
        first, second = (set(path.forward) for path in spec.flows[0].paths)
        bottleneck = json.loads(json.dumps(record["scenario"]))["bottleneck"]
        shared = bottleneck["wifi"] == bottleneck["lte"]
        assert shared == (record["label"] == "SB")
        assert {bottleneck["wifi"]} <= first
        assert {bottleneck["lte"]} <= second


def test_simulating_is_deterministic(records):
    one, _ = simulated(records[0])
    two, _ = simulated(records[0])
    assert one.equals(two)


def test_page_has_every_figure():
    ratio = [0.9, 1.0, 1.1]
    row = {"cc": "lia", "label": "SB", "runs": 3}
    for key in ("goodput_mbps", "rtt_ms", "retransmits"):
        row |= {f"{key}_kernel": 8.0, f"{key}_netsim": 8.1, f"{key}_ratio": ratio}
    accuracy = {"mean": 0.912, "lo": 0.9, "hi": 0.92}
    text = page(
        {
            "runs": 3,
            "bursts": {"kernel": 0.005, "netsim": 0.0},
            "throughput": [row],
            "distributions": [
                {"feature": "RTT_ED", "SB": 0.1, "SB_chance": 0.05, "NSB": 0.2, "NSB_chance": 0.04}
            ],
            "transfer": [
                {"model": "m", "trained_on_kernel": accuracy, "trained_on_netsim": accuracy}
            ],
        }
    )
    assert "| lia | SB | 3 | 8.00 / 8.10 (0.90, 1.00, 1.10)" in text
    assert "| `RTT_ED` | 0.100 (0.050) | 0.200 (0.040) |" in text
    assert "0.912 [0.900, 0.920]" in text
    assert "of new ACKs 0.50 % come within" in text
