"""A subflow's ring follows its window, and nothing else changes by that."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.netsim import sender
from data.netsim import state as st
from data.netsim.network import Network
from data.netsim.scenario import Scenario

pytestmark = pytest.mark.xdist_group("netsim")

OF_RINGS = {"ring", "mask", "room", "sent_head", "sent_tail"}
"""Fields that tell where a ring is, or what is in which place."""


def lossy() -> Scenario:
    tree: dict[str, Any] = {
        "links": {
            "a": {"rate_mbps": 6.0, "delay_ms": 40.0, "queue_packets": 80, "loss": 0.001},
            "b": {"rate_mbps": 2.0, "delay_ms": 60.0, "queue_packets": 40, "queue": "red"},
            "back": {"delay_ms": 40.0, "jitter_ms": 3.0, "reorder": True},
        },
        "flows": [
            {"name": "m", "cc": "lia", "paths": [
                {"forward": ["a"], "back": ["back"]},
                {"forward": ["b"], "back": ["back"]},
            ]},
            {"name": "s", "cc": "cubic", "paths": [{"forward": ["a"], "back": ["back"]}]},
            {"name": "p", "cc": "bbr", "paths": [{"forward": ["a"], "back": ["back"]}]},
        ],
    }  # fmt: skip
    return Scenario.parse(tree, "test")


def outcome(network: Network) -> str:
    """All that subflows, connections and links know but where their rings are."""
    network.advance(4.0)
    value = hashlib.sha256()
    for array, without in (
        (network.state.sub, OF_RINGS),
        (network.state.conn, {"ring_need"}),
        (network.state.link, set()),
    ):
        for name in array.dtype.names:
            if name not in without:
                value.update(np.ascontiguousarray(array[name]).tobytes())
    return value.hexdigest()


def never_moved() -> str:
    """With rings that hold the whole window from the start; for a process without the JIT."""
    st.FIRST_RING = 8192
    sender.FIRST_RING = 1 << 40  # type: ignore[attr-defined]
    network = Network(lossy(), seed=4)
    lengths = network.state.sub["mask"].copy()
    assert lengths.min() > 1000
    found = outcome(network)
    assert np.array_equal(lengths, network.state.sub["mask"])
    return found


def test_rings_that_move_give_what_full_ones_give() -> None:
    code = "from tests.netsim.test_rings import never_moved; print(never_moved())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True, check=True,
    )  # fmt: skip
    network = Network(lossy(), seed=4)
    assert done.stdout.strip() == outcome(network)
    assert network.state.sub["mask"].max() >= 4 * st.FIRST_RING - 1


def test_a_ring_is_short_again_after_slow_start() -> None:
    tree: dict[str, Any] = {
        "links": {"a": {"rate_mbps": 3.0, "delay_ms": 20.0, "queue_packets": 10},
                  "back": {"delay_ms": 20.0}},
        "flows": [{"name": "f", "paths": [{"forward": ["a"], "back": ["back"]}]}],
    }  # fmt: skip
    network = Network(Scenario.parse(tree, "test"), "reno", seed=1)
    s = network.state.sub[0]
    longest = 0
    for step in range(1, 300):
        network.advance(step / 10)
        s = network.state.sub[0]
        assert s["snd_nxt"] - s["snd_una"] <= s["mask"] + 1 <= s["room"] + 1
        longest = max(longest, int(s["mask"]) + 1)
    assert int(s["mask"]) + 1 < longest == int(s["room"]) + 1
    assert network.state.g["ring_end"] <= 2 * longest
