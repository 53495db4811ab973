"""Judge whether a collected connection is what its label says, and whether the host spoilt it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from data.lab.compact import Events
from data.lab.scenario import Scenario

ALPHA = 0.8
WINDOW_MIN_RTTS = 50
MAX_STEAL = 0.05
MAX_LATENESS_US = 1000.0
MIN_SHARE = 0.8
MIN_QUEUE_MS = 1.0
MIN_BUSY = 0.6
CONGESTED = (3, 4)

# Reasons that lie with the machine: the same draw is collected again. The others lie with the
# drawn conditions: another draw takes its place.
HOST_REASONS = frozenset({"steal", "lateness", "failed", "lost-events"})


def host_reasons(steal: float, lateness_p99_us: float, lost_events: int) -> list[str]:
    """Reasons of the host against a run.

    Parameters
    ----------
    steal : float
        Share of CPU time taken by the hypervisor during the run, 0 to 1.
    lateness_p99_us : float
        99th percentile of the link emulator's own lateness.
    lost_events : int
        Events that the probe could not keep.

    Returns
    -------
    list of str
        Empty when the host did nothing wrong.
    """
    reasons = []
    if steal > MAX_STEAL:
        reasons.append("steal")
    if lateness_p99_us > MAX_LATENESS_US:
        reasons.append("lateness")
    if lost_events:
        reasons.append("lost-events")
    return reasons


def bottleneck(
    scenario: Scenario, path_names: Iterable[str], stats: Mapping[str, Any], active_s: float
) -> tuple[list[str], dict[str, Any]]:
    """Compare where packets queued and died, by the emulator's own account, with the label.

    Parameters
    ----------
    scenario : Scenario
        Names the intended bottleneck of each data path.
    path_names : iterable of str
        Paths in the emulator's numbering.
    stats : mapping
        The emulator's ``--stats``.
    active_s : float
        How long traffic ran. The emulator's own duration is longer, by however long a busy host
        took to start and stop the rest.

    Returns
    -------
    list of str
        Reasons against the label: ``queue-elsewhere``, ``drops-elsewhere``, ``not-queued``,
        ``idle`` with the path's name.
    dict
        Per data path: queue_ms (mean at the bottleneck), queue_share, drops, drop_share, busy.
    """
    index = {name: str(i) for i, name in enumerate(path_names)}
    reasons: list[str] = []
    account: dict[str, Any] = {}
    for name in scenario.data_paths:
        intended = getattr(scenario.bottleneck, name)
        seen = {
            stage: stats["stages"][stage]["paths"].get(index[name], {})
            for stage in scenario.paths[name]
        }
        delay = {stage: float(at.get("queue_delay_s", 0.0)) for stage, at in seen.items()}
        drops = {stage: int(at.get("drops", 0)) for stage, at in seen.items()}
        packets = int(seen[intended].get("packets", 0))
        queue_ms = 1e3 * delay[intended] / max(1, packets)
        queue_share = delay[intended] / max(1e-9, sum(delay.values()))
        drop_share = drops[intended] / sum(drops.values()) if sum(drops.values()) else 1.0
        busy = min(1.0, float(stats["stages"][intended]["busy_s"]) / active_s)
        account[name] = {
            "queue_ms": round(queue_ms, 3),
            "queue_share": round(queue_share, 4),
            "drops": drops,
            "drop_share": round(drop_share, 4),
            "busy": round(busy, 4),
        }
        if queue_share < MIN_SHARE:
            reasons.append(f"queue-elsewhere:{name}")
        if drop_share < MIN_SHARE:
            reasons.append(f"drops-elsewhere:{name}")
        if queue_ms < MIN_QUEUE_MS:
            reasons.append(f"not-queued:{name}")
        if busy < MIN_BUSY:
            reasons.append(f"idle:{name}")
    return reasons, account


def windows(events: Events, subflows: int = 2) -> tuple[int, dict[str, Any]]:
    """Count the windows of the paper's length that a connection yields.

    A window lasts T = 50 times the larger minimum RTT; the first one begins when both subflows
    have been in Recovery or Loss (paper §3.2).

    Returns
    -------
    int
        Whole windows, 0 when a subflow never was congested.
    dict
        Per subflow number: min_rtt_ms, median_rtt_ms, throughput_mbps (the whole connection's
        time), congested_at_s (None if never).
    """
    end_us = int(events.time_us[-1])
    account: dict[str, Any] = {}
    for number in range(1, subflows + 1):
        mine = events.subflow == number
        acks = mine & (events.kind == 0)
        rtts = events.rtt_us[acks & (events.rtt_us > 0)]
        congested = events.time_us[mine & (events.kind == 1) & np.isin(events.new, CONGESTED)]
        bits = 8.0 * float(events.ack[acks].max(initial=0))
        account[str(number)] = {
            "min_rtt_ms": round(float(rtts.min()) / 1e3, 3) if len(rtts) else None,
            "median_rtt_ms": round(float(np.median(rtts)) / 1e3, 3) if len(rtts) else None,
            "throughput_mbps": round(bits / max(1, end_us), 4),
            "congested_at_s": round(float(congested[0]) / 1e6, 3) if len(congested) else None,
        }
    flows = list(account.values())
    if any(flow["min_rtt_ms"] is None or flow["congested_at_s"] is None for flow in flows):
        return 0, account
    length_s = WINDOW_MIN_RTTS * max(flow["min_rtt_ms"] for flow in flows) / 1e3
    start_s = max(flow["congested_at_s"] for flow in flows)
    return int((end_us / 1e6 - start_s) / length_s), account


def alpha_failures(
    records: Iterable[Mapping[str, Any]], alpha: float = ALPHA, *, own: bool = False
) -> set[str]:
    """The paper's bottleneck validation over a whole campaign (§3.1).

    A connection must reach `alpha` times the best of its group. In SB that is its throughput. In
    NSB it is each bottleneck's throughput, background included: background TCP shares those links
    here, so a subflow's own share tells how the two compete, not where the bottleneck is. Records
    without ``alpha_check`` are left out.

    Parameters
    ----------
    records : iterable of mapping
        Lines of campaign.jsonl that are valid otherwise.
    alpha : float
        The paper's 0.8.
    own : bool
        The paper's words to the letter: in NSB each subflow's own throughput.

    Returns
    -------
    set of str
        Ids of connections that fail.
    """
    groups: dict[tuple[str, str], list[tuple[str, list[float]]]] = defaultdict(list)
    for record in records:
        if record.get("alpha_check"):
            mine = record["throughput_mbps"]
            if record["label"] == "SB":
                reached = [mine["wifi"] + mine["lte"]]
            elif own:
                reached = [mine["wifi"], mine["lte"]]
            else:
                reached = [record["bottleneck"][path]["busy"] for path in ("wifi", "lte")]
            groups[record["dataset"], record["group"]].append((record["id"], reached))
    failed: set[str] = set()
    for members in groups.values():
        desired = np.max([reached for _, reached in members], axis=0)
        for name, reached in members:
            if (np.array(reached) < alpha * desired).any():
                failed.add(name)
    return failed
