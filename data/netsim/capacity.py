"""Capacity of wireless links over time: measured, generated, and how alike the two are.

``python -m data.netsim.capacity --compare DIR`` prints statistics of the generator's kinds
(`data.netsim.traces.generate`) beside those of the ingested traces in DIR.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from data.netsim import traces
from data.store import iter_connections

Float = NDArray[np.float64]

KINDS = ("cellular", "wifi", "satellite")
_GAP_S = 30.0
_GAP_PAUSED_S = 120.0
_SHORTEST_S = 60.0
_LEVELS = (5, 25, 50, 75, 95)


@dataclass(frozen=True)
class Trace:
    """A link's capacity, constant from each time to the next.

    Attributes
    ----------
    name, kind : str
    time_s, mbps : float64 array [n]
        From 0, ascending.
    length_s : float
        When it is over, and a repetition begins.
    """

    name: str
    kind: str
    time_s: Float
    mbps: Float
    length_s: float


def ingested(directory: Path | str) -> list[Trace]:
    """Capacity traces of an ingested directory (`data.schema`: ``capacity_bps``).

    A trace is cut at gaps of more than 30 s, or of more than 120 s after a value of 0;
    pieces of less than a minute, and those without any capacity, are left out.

    Raises
    ------
    UserError
        When the directory isn't an ingested one.
    """
    found: list[Trace] = []
    for row, events in iter_connections(directory):
        for variables in events.values():
            if "capacity_bps" in variables:
                times, values = variables["capacity_bps"]
                found += _pieces(str(row["connection"]), times / 1e6, values / 1e6)
    return found


def _pieces(name: str, time_s: Float, mbps: Float) -> list[Trace]:
    allowed = np.where(mbps[:-1] > 0, _GAP_S, _GAP_PAUSED_S)
    gaps = np.flatnonzero(np.diff(time_s) > allowed) + 1
    pieces = []
    for k, part in enumerate(np.split(np.arange(len(time_s)), gaps)):
        time, rate = time_s[part] - time_s[part[0]], mbps[part]
        if len(part) > 1 and time[-1] >= _SHORTEST_S and rate.any():
            label = name if len(gaps) == 0 else f"{name}[{k}]"
            last = float(np.median(np.diff(time)))
            pieces.append(Trace(label, kind_of(name), time, rate, float(time[-1]) + last))
    return pieces


def kind_of(name: str) -> str:
    """Kind of link by a trace's name; cellular unless it says otherwise."""
    low = name.lower()
    if "starlink" in low or "satellite" in low:
        return "satellite"
    return "wifi" if "wifi" in low or "wlan" in low else "cellular"


def generated(kind: str, mean_mbps: float, seed: int, length_s: float = 300.0) -> Trace:
    """A trace of the generator, as `data.netsim.traces.generate` makes it.

    Raises
    ------
    UserError
        For an unknown kind.
    """
    _, times, rates, period = traces.generate(kind, mean_mbps, seed, length_s)
    return Trace(f"{kind}-{seed}", kind, times / 1e9, rates / 1e6, period / 1e9)


def split(
    found: Iterable[Trace], validation_share: float = 0.2, test_share: float = 0.2
) -> tuple[list[Trace], list[Trace], list[Trace]]:
    """Split traces in three by name: pieces of one trace stay together.

    Where a trace belongs depends on a hash of its name alone, so that further traces move none.
    With few traces a part may have none.

    Parameters
    ----------
    found : iterable of Trace
    validation_share, test_share : float, optional
        Shares of the names that choose a network, and that nothing but its judging sees.

    Returns
    -------
    train, validation, held_out : list of Trace
    """
    train: list[Trace] = []
    validation: list[Trace] = []
    held_out: list[Trace] = []
    for trace in found:
        draw = zlib.crc32(trace.name.partition("[")[0].encode()) / 2**32
        if draw < test_share:
            held_out.append(trace)
        elif draw < test_share + validation_share:
            validation.append(trace)
        else:
            train.append(trace)
    return train, validation, held_out


def seconds(trace: Trace) -> Float:
    """Mean capacity of each whole second (Mbit/s)."""
    time = np.append(trace.time_s, trace.length_s)
    volume = np.concatenate([[0.0], np.cumsum(np.diff(time) * trace.mbps)])
    edges = np.arange(int(trace.length_s) + 1, dtype=np.float64)
    result: Float = np.diff(np.interp(edges, time, volume))
    return result


def statistics(trace: Trace) -> dict[str, float]:
    """Statistics of a link that matter to a congestion control, from its capacity per second.

    Returns
    -------
    dict
        ``mean_mbps``; ``variation``: standard deviation over mean; ``p5`` and ``p95`` over the
        mean; ``change``: mean change from one second to the next over the mean; ``memory_1s``,
        ``memory_5s``, ``memory_15s``: autocorrelation; ``outage``: share of seconds below 5 %
        of the mean; ``longest_outage_s``.
    """
    rate = seconds(trace)
    mean = float(rate.mean())
    low = rate < 0.05 * mean
    edges = np.flatnonzero(np.diff(np.concatenate([[0], low.astype(np.int8), [0]])))
    runs = edges[1::2] - edges[::2]
    return {
        "mean_mbps": mean,
        "variation": float(rate.std()) / mean,
        "p5": float(np.percentile(rate, 5)) / mean,
        "p95": float(np.percentile(rate, 95)) / mean,
        "change": float(np.abs(np.diff(rate)).mean()) / mean,
        **{f"memory_{lag}s": _autocorrelation(rate, lag) for lag in (1, 5, 15)},
        "outage": float(low.mean()),
        "longest_outage_s": float(runs.max()) if len(runs) else 0.0,
    }


def _autocorrelation(rate: Float, lag: int) -> float:
    centred = rate - rate.mean()
    power = float((centred**2).sum())
    return float((centred[lag:] * centred[:-lag]).sum()) / power if power > 0 else 0.0


def compare(measured: Sequence[Trace], seeds: int = 50) -> dict[str, Any]:
    """Statistics of both, per kind: quartiles and outer percentiles over traces.

    Parameters
    ----------
    measured : sequence of Trace
    seeds : int, optional
        Traces to generate per kind (the varied ones), at the measured median rate and as long as
        the measured ones, as memory and longest outage depend on the length; 300 s without any.

    Returns
    -------
    dict
        kind -> ``measured`` and ``generated`` (absent if there are none) -> ``traces`` and
        statistic -> the 5th, 25th, 50th, 75th and 95th percentile.
    """
    result: dict[str, Any] = {}
    for kind in KINDS:
        mine = [t for t in measured if t.kind == kind]
        rate = float(np.median([t.mbps.mean() for t in mine])) if mine else 20.0
        lengths = [t.length_s for t in mine] or [300.0]
        made = [generated(f"{kind}-varied", rate, seed, lengths[seed % len(lengths)])
                for seed in range(seeds)]  # fmt: skip
        result[kind] = {
            source: _percentiles(group)
            for source, group in (("measured", mine), ("generated", made))
            if group
        }
    return result


def _percentiles(group: Sequence[Trace]) -> dict[str, Any]:
    rows = [statistics(trace) for trace in group]
    return {"traces": len(rows)} | {
        name: np.percentile([row[name] for row in rows], _LEVELS).tolist() for name in rows[0]
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the comparison; 2 if DIR isn't an ingested directory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compare", metavar="DIR", help="ingested directory with capacity traces")
    parser.add_argument("--seeds", type=int, default=50, help="generated traces per kind")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args(arguments)
    try:
        table = compare(ingested(args.compare) if args.compare else [], args.seeds)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(table, indent=1))
        return 0
    for kind, sources in table.items():
        for source, row in sources.items():
            print(f"\n{kind}, {source}: {row['traces']} traces; percentiles {_LEVELS}")
            for name, values in row.items():
                if name != "traces":
                    print(f"  {name:<18}" + "".join(f"{v:10.2f}" for v in values))
    return 0


if __name__ == "__main__":
    sys.exit(main())
