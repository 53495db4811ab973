"""What an agent gets between decisions is the log, whole and in order."""

from __future__ import annotations

import numpy as np
import pytest

from data.netsim.agents import NAMES, Session, in_flight
from data.netsim.network import Network
from data.netsim.scenario import Scenario

pytestmark = pytest.mark.xdist_group("netsim")


def spec() -> Scenario:
    links = {"a": {"rate_mbps": 8.0, "delay_ms": 5.0, "queue_packets": 15}, "b": {"delay_ms": 5.0}}
    paths = [{"forward": ["a"], "back": ["b"]}, {"forward": ["a"], "back": ["b"]}]
    return Scenario.parse({"links": links, "flows": [{"name": "m", "paths": paths}]}, "test")


@pytest.mark.parametrize("keep", [True, False])
def test_intervals_together_are_the_log_of_one_run(keep: bool) -> None:
    session = Session(spec(), "cubic", 1, 7000, keep_log=keep)
    seen: dict[tuple[int, str], list[np.ndarray]] = {}
    for _ in range(200):
        start, batches = session.end_us, session.advance()
        for place, batch in batches.items():
            for name, (times, values) in batch.items():
                assert times[0] >= start
                assert times[-1] < session.end_us
                seen.setdefault((place, name), []).append(np.stack([times, values]))
    network = Network(spec(), "cubic", 1, log=True)
    network.advance(1.4)
    rows = network.log_rows()
    rows = rows[rows["t"] < 1_400_000_000]
    assert len(seen) >= 8
    assert sum(part.shape[1] for parts in seen.values() for part in parts) == len(rows)
    for (place, name), parts in seen.items():
        mine = rows[(rows["sub"] == place) & (rows["variable"] == NAMES.index(name))]
        joined = np.concatenate(parts, axis=1)
        assert np.array_equal(joined, [mine["t"] // 1000, mine["value"]])
    assert len(session.network.log_rows()) == (len(network.log_rows()) if keep else 0)


def test_what_a_reader_reads_comes_last_in_its_interval() -> None:
    session = Session(spec(), "cubic", 1, 10_000, lambda network: [(0, "in_flight_bytes", 5)], True)
    assert session.samples().size == 0
    batch = session.advance()[0]
    assert [x.tolist() for x in batch["in_flight_bytes"]] == [[9999], [5]]
    session.advance()
    assert session.samples()["t"].tolist() == [9_999_999, 19_999_999]


def test_what_is_in_flight_is_on_the_links_or_in_their_acks() -> None:
    network = Network(spec(), "reno", 1)
    for k in range(1, 40):
        network.advance(0.05 * k)
        for s in network.subflows(0):
            assert 0 <= in_flight(s) <= int(s["snd_nxt"]) - int(s["snd_una"])
            assert in_flight(s) <= int(s["cwnd"]) or int(s["ca_state"]) > 0
