"""The lab's runs in the simulator: the same conditions give much the same connection."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from data.errors import UserError
from data.formats import klog
from data.lab import compact, figures
from data.netsim.from_lab import scenario_of
from pipelines.studies.fidelity import command
from pipelines.studies.fidelity.page import page
from pipelines.studies.fidelity.runs import (
    by_group,
    campaign_records,
    compare,
    reference_records,
    simulated,
    simulated_figures,
)

DATA = Path(__file__).parents[2] / "data"
REFERENCE = DATA / "reference" / "linux"


@pytest.fixture(scope="module")
def records():
    return campaign_records(DATA / "raw", command.CAMPAIGNS, 1)


@pytest.fixture(scope="module")
def reference():
    return {record["id"]: record for record in reference_records(REFERENCE)}


@pytest.mark.parametrize("case", ["shanghai-sb", "frankfurt-nsb", "NSB1", "SB3"])
def test_a_run_simulated_again_carries_about_as_much(records, case):
    chosen = [record for record in records if record["case"] == case or case in record["id"]][:10]
    ratios = []
    for record in chosen:
        table, (row,) = simulated(record)
        assert [subflow["subflow"] for subflow in row["subflows"]] == [1, 2]
        frame = pl.DataFrame(table)
        assert set(frame["connection"]) == {row["connection"]}
        assert set(frame["variable"]) >= {"rtt_us", "ack", "ca_state"}
        acked = frame.filter(pl.col("variable") == "ack").group_by("subflow")
        span = acked.agg(pl.col("value").max() - pl.col("value").min())
        mbps = 8e-6 * float(span["value"].sum()) / record["duration_s"]
        measured = record["traffic"]
        ratios.append(mbps / (8e-6 * measured["mptcp_bytes"] / measured["duration_s"]))
    assert 0.85 < np.median(ratios) < 1.15


@pytest.mark.parametrize("cc", ["reno", "cubic", "bbr"])
def test_plain_tcp_simulated_again_is_within_a_tenth(reference, cc):
    name = f"8m-40ms-one-{cc}-0000"
    found = simulated_figures([reference[name]], 1, 1)[name]
    for key in ("goodput_mbps", "rtt_ms", "rtt_p95_ms"):
        assert 0.9 < found[key] / reference[name]["figures"][key] < 1.1


def _one_by_one(acked):
    """How many single segments are acknowledged before the first two at once."""
    segments = np.diff(np.asarray(acked)) // 1424
    return int((segments[: np.argmax(segments > 1)] == 1).sum()) + 1


@pytest.mark.parametrize("name", ["8m-40ms-two-cubic-0000", "20m-100ms-one-cubic-0000"])
def test_a_start_is_acknowledged_as_the_kernel_does(reference, name):
    (path,) = REFERENCE.glob(f"*/{name}.klog.zst")
    (kernel,) = compact.series(compact.expand(path)[0]).values()
    table, _ = simulated(reference[name])
    frame = pl.DataFrame(table)
    ours = frame.filter(pl.col("variable") == "ack")["value"]
    assert 60 <= _one_by_one(kernel["ack"][1]) <= 63
    assert 60 <= _one_by_one(ours) <= 63


def test_retransmissions_under_way_are_no_reason_to_undo(reference):
    # Undone again and again, BBR counted each loss many times over and stood still for seconds.
    name = "20m-100ms-half-bbr-0001"
    found = simulated_figures([reference[name]], 3, 1)[name]
    assert found["goodput_mbps"] > 0.97 * reference[name]["figures"]["goodput_mbps"]


def test_every_record_has_a_scenario_with_its_label(records):
    for record in records[::50]:
        spec = scenario_of(record)
        first, second = (set(path.forward) for path in spec.flows[0].paths)
        if record["first"] == "lte":
            first, second = second, first
        bottleneck = json.loads(json.dumps(record["scenario"]))["bottleneck"]
        shared = bottleneck["wifi"] == bottleneck["lte"]
        assert shared == (record["label"] == "SB")
        assert {bottleneck["wifi"]} <= first
        assert {bottleneck["lte"]} <= second


def test_a_rival_meets_the_connection_at_the_shared_link_and_nowhere_else(reference):
    spec = scenario_of(reference["sb-rival-lia-0000"])
    connection, rival = spec.flows
    assert [path.forward for path in rival.paths] == [["rival", "server"]]
    assert all(path.forward[-1] == "server" for path in connection.paths)
    assert rival.cc == "reno"
    assert (connection.segment_bytes, rival.segment_bytes) == (1424, 1448)


def test_simulating_is_deterministic(records):
    one, _ = simulated(records[0])
    two, _ = simulated(records[0])
    assert one.equals(two)


def test_figures_in_the_records_are_those_of_the_kept_logs(reference):
    kept = sorted(REFERENCE.glob("*/*.klog.zst"))
    assert len(kept) >= 30
    for path in kept[:: len(kept) // 4]:
        found = figures.of(compact.series(compact.expand(path)[0]))
        theirs = reference[path.name.split(".")[0]]["figures"]
        assert found.items() <= theirs.items()


def test_series_of_a_log_are_what_ingest_makes_of_it(tmp_path, reference):
    from data.ingest import ingest
    from data.store import iter_connections

    (path,) = REFERENCE.glob("*/sb-rival-lia-0000.klog.zst")
    assert klog.sniff(compact.MAGIC.encode()) == 100
    ingest([path], tmp_path / "events")
    ((_, theirs),) = iter_connections(tmp_path / "events")
    ours = compact.series(compact.expand(path)[0])
    assert ours.keys() == theirs.keys()
    for number, columns in ours.items():
        start = int(theirs[number]["ack"][0][0]) - int(columns["ack"][0][0])
        for name, (time_us, value) in columns.items():
            np.testing.assert_array_equal(time_us + start, theirs[number][name][0], err_msg=name)
            if name != "ack":
                np.testing.assert_array_equal(value, theirs[number][name][1], err_msg=name)


def _run(goodput, retransmits=100.0):
    return {"goodput_mbps": goodput, "rtt_ms": 50.0, "rtt_p95_ms": 60.0,
            "retransmits": retransmits}  # fmt: skip


def test_within_and_beyond_five_per_cent():
    rng = np.random.default_rng(1)
    near = [(_run(8.0 + x), _run(8.1 + x)) for x in rng.normal(0, 0.05, 12)]
    far = [(_run(8.0 + x), _run(9.0 + x)) for x in rng.normal(0, 0.05, 12)]
    unsure = [(_run(8.0), _run(8.0, 100.0 * x)) for x in rng.lognormal(0.1, 0.8, 12)]
    assert compare(near, 1)["goodput_mbps"]["within"]
    found = compare(far, 1)["goodput_mbps"]
    assert found["beyond"]
    assert found["lo"] <= found["ratio"] <= found["hi"]
    assert found["ratio"] == pytest.approx(9 / 8, abs=0.01)
    spread = compare(unsure, 1)["retransmits"]
    assert not spread["beyond"]
    assert spread["runs"][0] < 1 < spread["runs"][2]


def test_groups_pair_each_run_with_itself():
    records = [{"id": f"{cc}{i}", "cc": cc} for cc in ("reno", "bbr") for i in range(3)]
    kernel = {record["id"]: _run(1.0 + i) for i, record in enumerate(records)}
    netsim = {name: _run(2 * run["goodput_mbps"]) for name, run in kernel.items()}
    del netsim["bbr2"]
    rows = by_group(records, kernel, netsim, ("cc",), 1)
    assert [(row["cc"], row["count"]) for row in rows] == [("reno", 3), ("bbr", 2)]
    assert rows[1]["goodput_mbps"]["runs"] == [2.0, 2.0, 2.0]


def test_page_has_every_figure():
    far = compare([(_run(8.0), _run(9.0))] * 3, 1)
    near = compare([(_run(8.0), _run(8.1))] * 3, 1)
    accuracy = {"mean": 0.912, "lo": 0.9, "hi": 0.92}
    text = page(
        {
            "runs": 3,
            "every": 2,
            "by_load": [{"rate_wifi_mbps": "8.0", "host": "up to 10", "count": 6, **near}],
            "seeds": 2,
            "bursts": {"kernel": 0.005, "netsim": 0.0},
            "reference": [
                {"transport": "tcp", "cc": "reno", "family": "8m", "count": 3, **far},
                {"transport": "mptcp", "cc": "cubic", "family": "sb", "count": 4, **near},
            ],
            "campaigns": [{"cc": "lia", "label": "SB", "count": 5, **near}],
            "distributions": [
                {"feature": "RTT_ED", "SB": 0.1, "SB_chance": 0.05, "NSB": 0.2, "NSB_chance": 0.04}
            ],
            "transfer": [
                {"model": "m", "trained_on_kernel": accuracy, "trained_on_netsim": accuracy}
            ],
        }
    )
    assert "| reno | 8m | 3 | 8.00 / 9.00 (1.12, 1.12, 1.12)" in text
    assert "| **goodput 1.12 [1.12, 1.12]** |" in text
    assert "| cubic, uncoupled | sb | 4 | 8.00 / 8.10 (1.01, 1.01, 1.01)" in text
    assert "| LIA, coupled | SB | 5 |" in text
    assert "| 8 | up to 10 | 6 |" in text
    assert "3 runs (one of 2) of" in text
    assert "| `RTT_ED` | 0.100 (0.050) | 0.200 (0.040) |" in text
    assert "0.912 [0.900, 0.920]" in text
    assert "of new ACKs 0.50 % come within" in text


def test_what_is_missing_is_named(tmp_path, capsys):
    with pytest.raises(UserError, match="--reference"):
        reference_records(tmp_path)
    (tmp_path / "campaign.jsonl").write_text('{"id": "x", "valid": true}\n')
    with pytest.raises(UserError, match="cczoo lab collect linux"):
        reference_records(tmp_path)
    words = ["--events", "e", "--features", "f", "--out", str(tmp_path / "p.md"), "--seeds", "0"]
    assert command.main(words) == 2
    assert "--seeds 0" in capsys.readouterr().err
