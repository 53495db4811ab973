"""A simulation's log as an ingested directory, for `cczoo features` (see data.schema)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from data.netsim.cc import CONTROLS
from data.netsim.network import Network
from data.netsim.state import FAR, LOG_VARIABLES
from data.schema import CONNECTIONS, EVENTS, QUARANTINE

KERNEL = "netsim"


def tables(
    network: Network, name: str, attributes: Mapping[str, str] | None = None
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Events and connections of a simulation that was run with ``log=True``.

    Parameters
    ----------
    network : Network
        After its last `Network.advance`.
    name : str
        Source; a connection is called ``name/flow``.
    attributes : mapping, optional
        Further columns of each connection (strings), such as ``label``.

    Returns
    -------
    table
        As `data.schema.EVENTS`, by connection, subflow, variable and time.
    list of dict
        Rows of `data.schema.CONNECTIONS` with the attributes.
    """
    rows = network.log_rows()
    owner = network.state.sub["conn"][rows["sub"]]
    # Readers want all of one connection, subflow and variable together (lexsort is stable).
    order = np.lexsort((rows["variable"], rows["sub"], owner))
    rows, owner = rows[order], owner[order]
    first = network.state.conn["sub0"][owner]
    ids = [f"{name}/{flow}" for flow in network.flow_names]
    events = pa.table(
        {
            "connection": pa.DictionaryArray.from_arrays(pa.array(owner, pa.int32()), ids),
            "subflow": pa.array(rows["sub"] - first + 1, pa.int16()),
            "time_us": pa.array(rows["t"] // 1000, pa.int64()),
            "variable": pa.DictionaryArray.from_arrays(
                pa.array(rows["variable"], pa.int8()), list(LOG_VARIABLES)
            ),
            "value": pa.array(rows["value"], pa.int64()),
        },
        schema=EVENTS,
    )
    controls = list(CONTROLS)
    connections: list[dict[str, Any]] = []
    for index, c in enumerate(network.state.conn):
        mine = rows[owner == index]
        subflows = []
        for place, s in enumerate(network.subflows(index)):
            count = int((mine["sub"] == int(c["sub0"]) + place).sum())
            seen = int(s["min_rtt"]) < FAR
            subflows.append(
                {
                    "subflow": place + 1,
                    "sport": -1,
                    "dport": -1,
                    "min_rtt_us": int(s["min_rtt"]) // 1000 if seen else -1,
                    "rtt_kind": "raw" if seen else "none",
                    "events": count,
                }
            )
        extra = dict(attributes or {})
        connections.append(
            {
                "connection": ids[index],
                "source": name,
                "format": KERNEL,
                "token": None,
                "label": extra.pop("label", None),
                "dataset": extra.pop("dataset", None),
                "kernel": KERNEL,
                "cc": controls[int(network.subflows(index)[0]["cc"])],
                "start_us": int(mine["t"].min()) // 1000 if len(mine) else None,
                "end_us": int(mine["t"].max()) // 1000 if len(mine) else None,
                "subflows": subflows,
                **extra,
            }
        )
    return events, connections


def write(parts: Iterable[tuple[pa.Table, list[dict[str, Any]]]], out: Path) -> dict[str, Any]:
    """Write an ingested directory.

    Parameters
    ----------
    parts : iterable
        Results of `tables`, one per simulation, all with the same attributes.
    out : Path
        Directory, made if need be.

    Returns
    -------
    dict
        The counts of ``ingest.json``.
    """
    (out / "events").mkdir(parents=True, exist_ok=True)
    connections: list[dict[str, Any]] = []
    count = 0
    for number, (events, rows) in enumerate(parts):
        _write(events, out / "events" / f"part-{number:05d}.parquet")
        connections += rows
        count += len(events)
    extra = sorted({key for row in connections for key in row} - set(CONNECTIONS.names))
    schema = pa.schema([*CONNECTIONS, *((key, pa.string()) for key in extra)])
    _write(pa.Table.from_pylist(connections, schema=schema), out / "connections.parquet")
    _write(QUARANTINE.empty_table(), out / "quarantine.parquet")
    summary = {
        "lines_read": count,
        "event_lines": count,
        "skipped_lines": 0,
        "quarantined_lines": 0,
        "events": count,
        "connections": len(connections),
        "subflows": sum(len(row["subflows"]) for row in connections),
        "formats": {KERNEL: len(connections)},
    }
    draft = out / "ingest.json.tmp"
    draft.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    draft.replace(out / "ingest.json")
    return summary


def _write(table: pa.Table, path: Path) -> None:
    draft = path.with_suffix(".tmp")
    pq.write_table(table, draft, compression="zstd")
    draft.replace(path)
