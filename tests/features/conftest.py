"""Connections made by a small fluid model: two sawtooth sources into one queue or two."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from data.schema import CONNECTIONS
from data.store import VARIABLE_NAMES, PartWriter


def _queue(rng: np.random.Generator, times_s: np.ndarray, depth_us: float) -> tuple[Any, Any]:
    """Queueing delay of a sawtooth with random period, and when it overflows."""
    delay, losses, level = np.empty(times_s.size), [], 0.3
    slope = rng.uniform(0.3, 0.9)
    for i, t in enumerate(times_s):
        level += slope * (times_s[1] - times_s[0])
        if level >= 1.0:
            losses.append(t)
            level, slope = rng.uniform(0.2, 0.5), rng.uniform(0.3, 0.9)
        delay[i] = level * depth_us
    return delay, np.array(losses)


def make_connection(
    seed: int = 0,
    shared: bool = True,
    seconds: float = 30.0,
    base_us: tuple[int, int] = (20_000, 50_000),
    scale: int = 1,
) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    """A connection's row and events; ``scale`` multiplies every time in it."""
    rng = np.random.default_rng(seed)
    clock_s = np.arange(0, seconds, 0.002)
    queues = [_queue(rng, clock_s, 60_000)]
    queues.append(queues[0] if shared else _queue(rng, clock_s, 45_000))
    events: dict[int, dict[str, Any]] = {}
    for subflow, (base, (delay, losses)) in enumerate(zip(base_us, queues, strict=True), 1):
        # The first 20 samples see an empty queue: they fix the smallest RTT.
        ack_s = np.sort(rng.uniform(0, seconds, int(seconds * 150)))
        queued = np.interp(ack_s - base / 2e6, clock_s, delay)
        queued[:20] = 0
        rtt_us = (base + queued + rng.exponential(500, ack_s.size)).astype(np.int64)
        rtt_us[0] = base
        seen = losses + base / 2e6
        turns = np.sort(np.concatenate([seen, seen + 2 * base / 1e6]))
        states = np.where(np.arange(turns.size) % 2 == 0, 3, 0)
        events[subflow] = {
            name: (np.round(times * 1e6).astype(np.int64) * scale, np.asarray(values, np.int64))
            for name, times, values in (
                ("rtt_us", ack_s, rtt_us * scale),
                ("ack", ack_s, np.arange(ack_s.size) * 1424),
                ("ca_state", turns, states),
                ("retransmit", seen, np.ones(seen.size)),
            )
        }
    row = {
        "connection": f"c{seed}",
        "source": f"s{seed}",
        "label": "SB" if shared else "NSB",
        "subflows": [
            {"subflow": 1, "sport": 40001, "dport": 5000},
            {"subflow": 2, "sport": 40002, "dport": 5000},
        ],
    }
    return row, events


@pytest.fixture(scope="session")
def connection() -> Any:
    """The maker of synthetic connections."""
    return make_connection


@pytest.fixture(scope="module")
def events_dir(connection, tmp_path_factory):
    """Twenty connections, one of them too short, one without events, one unlabelled."""
    folder = tmp_path_factory.mktemp("ingested")
    (folder / "events").mkdir()
    writer = PartWriter(folder / "events", "part-00")
    rows = []
    for seed in range(20):
        row, events = connection(seed, shared=seed % 2 == 0, seconds=2.0 if seed == 3 else 12.0)
        writer.begin(row["connection"])
        for subflow, variables in sorted(events.items()):
            for name in sorted(variables, key=VARIABLE_NAMES.index):
                writer.add(subflow, VARIABLE_NAMES.index(name), *variables[name])
        rows.append({**dict.fromkeys(CONNECTIONS.names), **row, "site": f"site{seed % 2}"})
    writer.close()
    rows[5]["label"] = None
    rows.append({**rows[0], "connection": "silent"})
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(folder / "connections.parquet")
    (folder / "ingest.json").write_text("{}")
    return folder
