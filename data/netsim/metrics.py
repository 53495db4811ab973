"""Run one simulation, sample it and sum it up in metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from data.netsim.idle import round_trips_ns
from data.netsim.network import Network
from data.netsim.scenario import Scenario

UNITS = {
    "goodput_mbps": "application data delivered in order, all measured flows (Mbit/s)",
    "transferred_mb": "application data delivered in order since the start (MB)",
    "rtt_ms": "mean round-trip time",
    "rtt_p95_ms": "95th percentile of the round-trip time",
    "rtt_ratio": "mean round-trip time over that of the same path when nothing waits",
    "queue_delay_ms": "mean wait at the bottleneck",
    "queue_packets": "mean number of packets waiting at the bottleneck",
    "loss_rate": "packets lost or dropped at the bottleneck, of those that arrived there",
    "retransmit_rate": "segments sent again, of all sent",
    "utilisation": "bytes through the bottleneck over its mean rate",
    "fct_ms": "mean completion time of finite flows, from start to the last byte's arrival",
    "jain": "Jain's index of the measured flows' goodputs",
    "cwnd_mad": "mean absolute deviation of a subflow's window over samples (segments)",
    "queue_mad": "mean absolute deviation of the bottleneck's queue over samples (packets)",
    "timeouts": "retransmission timeouts",
    "reorder_kb": "data that waits at the receiver for earlier data, mean (kB)",
    "node_a_mbps": "goodput of a scenario's node A, a TCP flow (Mbit/s)",
    "node_b_mbps": "goodput of a scenario's node B, an MPTCP flow (Mbit/s)",
    "decision_us": "what a decision of a control from outside costs here (us)",
}
"""Metric -> what it is. A metric that a scenario doesn't have is absent."""


def simulate(scenario: Scenario, controller: str, seed: int) -> dict[str, Any]:
    """Run a scenario once.

    Returns
    -------
    dict
        `UNITS`' metrics, and ``flows``: name -> goodput (Mbit/s). Means, percentiles and rates
        are over the time after the warm-up.
    """
    looks = Looks(Network(scenario, controller, seed))
    for until in looks.times_ns:
        looks.network.advance_ns(until)
        looks.look()
    return looks.metrics()


class Looks:
    """What is noted of a simulation as time goes on, and its metrics at the end.

    Whoever advances the simulation stops at each of ``times_ns``, in their order, and calls `look`.

    Parameters
    ----------
    network : Network
        Not begun yet.

    Attributes
    ----------
    times_ns : list of int
        End of the warm-up, then of each sample (ns).
    taken : int
        How many of them are past.
    """

    def __init__(self, network: Network) -> None:
        scenario = network.scenario
        self.network, self.taken = network, 0
        count = max(1, round((scenario.duration_s - scenario.warmup_s) / scenario.sample_s))
        at_s = [scenario.warmup_s + i * scenario.sample_s for i in range(count + 1)]
        self.times_ns = [round(time * 1e9) for time in at_s]
        self._windows = np.empty((count, len(network.state.sub)))
        self._queues = np.empty((count, len(network.state.link)))
        self._before: dict[str, Any] = {}
        self._after: dict[str, Any] = {}

    def look(self) -> None:
        """Note how things stand at the next of the times."""
        state = self.network.state
        if self.taken:
            self._windows[self.taken - 1] = state.sub["cwnd"]
            self._queues[self.taken - 1] = state.link["q_packets"]
        else:
            self._before = _snapshot(self.network)
        self.taken += 1
        if self.taken == len(self.times_ns):
            # The simulation may go on before anybody asks for the metrics.
            self._after = _snapshot(self.network)

    def metrics(self) -> dict[str, Any]:
        """What `simulate` returns; after the last look."""
        return _summed_up(self.network, self._before, self._after, self._windows, self._queues)


def _summed_up(
    network: Network, before: dict[str, Any], after: dict[str, Any], windows: Any, queues: Any
) -> dict[str, Any]:
    scenario, bottleneck = network.scenario, network.scenario.bottleneck
    span_s = len(windows) * scenario.sample_s
    if bottleneck is not None:
        at = network.link_names.index(bottleneck)
    else:
        at = int(np.argmax(after["wait"] - before["wait"]))
    measured = [i for i, flow in enumerate(network.flow_of) if flow.measure]
    rates = {
        network.flow_names[i]: float(
            (after["data"][i] - before["data"][i]) * network.state.conn["payload"][i] * 8 / span_s
        )
        / 1e6
        for i in measured
    }
    share = np.array(list(rates.values()))
    named: dict[str, Any] = {
        metric: rates[network.flow_names[i]]
        for i in measured
        if (metric := network.flow_of[i].metric) is not None
    }
    subs = [
        k for k in range(len(network.state.sub)) if int(network.state.sub["conn"][k]) in measured
    ]
    result: dict[str, Any] = {
        "goodput_mbps": float(share.sum()),
        "transferred_mb": float(
            sum(int(after["data"][i]) * int(network.state.conn["payload"][i]) for i in measured)
        )
        / 1e6,
        "timeouts": float(sum(after["timeouts"][k] - before["timeouts"][k] for k in subs)),
    }
    several = [i for i in measured if network.state.conn["sub_n"][i] > 1]
    if several:
        held = (after["held"] - before["held"]) * network.state.conn["payload"]
        result["reorder_kb"] = float(held[several].sum() / 1e9 / span_s / 1e3)
    if len(share) > 1 and share.any():
        result["jain"] = float(share.sum() ** 2 / (len(share) * (share**2).sum()))
    _round_trips(result, before, after, subs, round_trips_ns(network))
    _bottleneck(result, network, before, after, at, span_s)
    done = [
        (int(after["done"][i]) - int(network.state.conn["start"][i])) / 1e6
        for i in measured
        if network.state.conn["total"][i] > 0 and after["done"][i] >= 0
    ]
    finite = sum(1 for i in measured if network.state.conn[i]["total"] > 0)
    if finite and len(done) == finite:
        result["fct_ms"] = float(np.mean(done))
    if len(subs):
        deviation = np.abs(windows - windows.mean(axis=0)).mean(axis=0)
        result["cwnd_mad"] = float(deviation[subs].mean())
    result["queue_mad"] = float(np.abs(queues[:, at] - queues[:, at].mean()).mean())
    result |= named
    result["flows"] = rates
    return result


def shares(scenario: Scenario, controller: str, seed: int, step_s: float) -> dict[str, Any]:
    """Goodput of every measured flow over time.

    Returns
    -------
    dict
        name -> array, Mbit/s in each ``step_s`` from the start.
    """
    network = Network(scenario, controller, seed)
    count = round(scenario.duration_s / step_s)
    received = np.zeros((count + 1, len(network.flow_of)))
    for i in range(count):
        network.advance((i + 1) * step_s)
        received[i + 1] = network.state.conn["data_rcv"]
    rates = np.diff(received, axis=0) * network.state.conn["payload"] * 8 / step_s / 1e6
    measured = [i for i, flow in enumerate(network.flow_of) if flow.measure]
    return {network.flow_names[i]: rates[:, i] for i in measured}


def _snapshot(network: Network) -> dict[str, Any]:
    state = network.state
    return {
        "data": state.conn["data_rcv"].copy(),
        "done": state.conn["done_t"].copy(),
        "held": state.conn["held_sum"].copy(),
        "hist": state.hist.copy(),
        "wait": state.link["wait_sum"].copy(),
        **{
            name: state.link[name].copy()
            for name in ("served", "arrived", "dropped", "lost", "bytes_out")
        },
        **{
            name: state.sub[name].copy()
            for name in ("rtt_sum", "rtt_n", "sent", "retransmitted", "timeouts")
        },
    }


def _round_trips(
    result: dict[str, Any],
    before: dict[str, Any],
    after: dict[str, Any],
    subs: list[int],
    idle_ns: np.ndarray[Any, Any],
) -> None:
    """Mean, 95th percentile, retransmissions over subflows."""

    def gain(name: str) -> int:
        return int((after[name][subs] - before[name][subs]).sum())

    if gain("rtt_n") > 0:
        result["rtt_ms"] = gain("rtt_sum") / gain("rtt_n") / 1e6
        sums = (after["rtt_sum"] - before["rtt_sum"])[subs]
        result["rtt_ratio"] = float((sums / idle_ns[subs]).sum() / gain("rtt_n"))
        counts = (after["hist"][subs] - before["hist"][subs]).sum(axis=0)
        if counts.any():
            place = int(np.searchsorted(np.cumsum(counts), 0.95 * counts.sum()))
            result["rtt_p95_ms"] = bin_centre_us(place) / 1e3
    if gain("sent") > 0:
        result["retransmit_rate"] = gain("retransmitted") / gain("sent")


def _bottleneck(
    result: dict[str, Any],
    network: Network,
    before: dict[str, Any],
    after: dict[str, Any],
    at: int,
    span_s: float,
) -> None:
    def gain(name: str) -> int:
        return int(after[name][at] - before[name][at])

    if gain("served") > 0:
        result["queue_delay_ms"] = gain("wait") / gain("served") / 1e6
        result["queue_packets"] = gain("wait") / 1e9 / span_s
    if gain("arrived") > 0:
        result["loss_rate"] = (gain("dropped") + gain("lost")) / gain("arrived")
    rate = int(network.state.link["rate"][at])
    if rate > 0:
        result["utilisation"] = gain("bytes_out") * 8 / span_s / rate


def bin_centre_us(place: int) -> float:
    """Middle of a bin of the RTT histogram (us)."""
    if place < 32:
        return place + 0.5
    shift = place // 32 - 1
    return float(((32 + place % 32) << shift) + (1 << shift) / 2)
