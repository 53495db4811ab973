"""A simulation's log as an ingested directory, for `cczoo features` (see data.schema)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from arro3.core import DataType, RecordBatch

from data import parquet
from data.netsim.cc import CONTROLS
from data.netsim.network import Network
from data.netsim.seen import NAMES
from data.netsim.state import FAR
from data.schema import CONNECTIONS, QUARANTINE

KERNEL = "netsim"


def tables(
    network: Network,
    name: str,
    attributes: Mapping[str, str] | None = None,
    samples: np.ndarray[Any, Any] | None = None,
) -> tuple[RecordBatch, list[dict[str, Any]]]:
    """Events and connections of a simulation that was run with ``log=True``.

    Parameters
    ----------
    network : Network
        After its last `Network.advance`.
    name : str
        Source; a connection is called ``name/flow``.
    attributes : mapping, optional
        Further columns of each connection (strings), such as ``label``.
    samples : record array [k], optional
        What an agent has read besides (`models.envs.batching.Batching.samples`). A link that was
        read is a connection of its own, called ``name/link.LINK``.

    Returns
    -------
    table
        As `data.schema.EVENTS`, by connection, subflow, variable and time.
    list of dict
        Rows of `data.schema.CONNECTIONS` with the attributes.
    """
    rows = network.log_rows()
    if samples is not None:
        rows = np.concatenate([rows, samples])
    # Places after the last subflow's are links, which here follow the connections.
    links = np.arange(len(network.link_names)) + len(network.flow_names)
    owner = np.concatenate([network.state.sub["conn"], links])[rows["sub"]]
    # Readers want all of one connection, subflow and variable together (lexsort is stable).
    order = np.lexsort((rows["variable"], rows["sub"], owner))
    rows, owner = rows[order], owner[order]
    subs = len(network.state.sub)
    first = np.concatenate([network.state.conn["sub0"], np.arange(len(links)) + subs])[owner]
    ids = [f"{name}/{flow}" for flow in network.flow_names]
    ids += [f"{name}/link.{link}" for link in network.link_names]
    events = parquet.events(
        parquet.coded(ids, owner.astype(np.int32), DataType.int32()),
        (rows["sub"] - first + 1).astype(np.int16),
        (rows["t"] // 1000).astype(np.int64),
        parquet.coded(list(NAMES), rows["variable"].astype(np.int32), DataType.int8()),
        rows["value"].astype(np.int64),
    )
    controls = list(CONTROLS)
    connections: list[dict[str, Any]] = []
    for index, identity in enumerate(ids):
        mine = rows[owner == index]
        if index < len(network.flow_names):
            records = network.subflows(index)
            cc = controls[int(records[0]["cc"])]
            low = [int(s["min_rtt"]) for s in records]
        elif len(mine):
            cc, low = None, [FAR]
        else:
            continue
        sub0 = int(network.state.conn[index]["sub0"]) if cc else int(mine["sub"][0])
        subflows = [
            {
                "subflow": place + 1,
                "sport": -1,
                "dport": -1,
                "min_rtt_us": least // 1000 if least < FAR else -1,
                "rtt_kind": "raw" if least < FAR else "none",
                "events": int((mine["sub"] == sub0 + place).sum()),
            }
            for place, least in enumerate(low)
        ]
        extra = dict(attributes or {})
        connections.append(
            {
                "connection": identity,
                "source": name,
                "format": KERNEL,
                "token": None,
                "label": extra.pop("label", None),
                "dataset": extra.pop("dataset", None),
                "kernel": KERNEL,
                "cc": cc,
                "start_us": int(mine["t"].min()) // 1000 if len(mine) else None,
                "end_us": int(mine["t"].max()) // 1000 if len(mine) else None,
                "subflows": subflows,
                **extra,
            }
        )
    return events, connections


def write(parts: Iterable[tuple[RecordBatch, list[dict[str, Any]]]], out: Path) -> dict[str, Any]:
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
        _write(out / "events" / f"part-{number:05d}.parquet", parquet.write_events, events)
        connections += rows
        count += events.num_rows
    extra = sorted({key for row in connections for key in row} - set(CONNECTIONS.names))
    _write(out / "connections.parquet", parquet.write_connections, connections, extra)
    _write(out / "quarantine.parquet", parquet.write, QUARANTINE, [])
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


def _write(path: Path, how: Callable[..., None], *what: Any) -> None:
    draft = path.with_suffix(".tmp")
    how(draft, *what)
    draft.replace(path)
