"""Goodput and round-trip time over time: what the papers' Figs. 3 show of their agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from data.netsim.network import Network

if TYPE_CHECKING:
    from data.netsim.scenario import Scenario
    from models.closedloop import Player

SHOWN: dict[str, tuple[str, float, tuple[str, ...], str]] = {
    "macc-fig4": ("droptail", 1.0, ("macc", "macc-untrained", "cubic"),
                  "MA-CC's Fig. 3: goodput and RTT over time, after and before training"),
    "tcco-fig9a": ("", 0.2, ("tcco", "tcco-1000ms", "tcco-one-step", "cubic"),
                   "TCCO's Fig. 3: goodput and RTT over time"),
}  # fmt: skip
"""Scenario -> variant, width of a bin (s), who is drawn, caption. The first one must be there."""
SEEDS = 3


def series(spec: Scenario, who: Player | str, seed: int, step_s: float) -> NDArray[np.float64]:
    """Goodput (Mbit/s) and mean RTT (ms) of all measured flows in each bin.

    Parameters
    ----------
    spec : Scenario
    who : Player or str
        An agent, or the name of a control.
    seed : int
    step_s : float
        Width of a bin.

    Returns
    -------
    float64 array [2, bins]
        NaN for the RTT of a bin in which no acknowledgement came.
    """
    ends = step_s * np.arange(round(spec.duration_s / step_s) + 1)
    noted = [[0.0, 0.0, 0.0, 0.0]]
    if isinstance(who, str):
        network = Network(spec, who, seed)
        for end in ends[1:]:
            network.advance(float(end))
            noted.append(_counts(network))
    else:
        seen: list[Network] = []

        def watch(batch: Any, _: Any) -> None:
            seen[:] = [batch.networks[0]]
            noted.append(_counts(seen[0]))

        who.play([(spec, seed)], watch)
        noted.append(_counts(seen[0]))
    times, *counts = np.array(noted).T
    bits, spent_ms, acks = (np.diff(np.interp(ends, times, count)) for count in counts)
    rtt = np.divide(spent_ms, acks, out=np.full(len(acks), np.nan), where=acks > 0)
    return np.array([bits / step_s / 1e6, rtt])


def _counts(network: Network) -> list[float]:
    """Time (s), bits delivered, sum of RTTs (ms) and their number, since the start."""
    state = network.state
    measured = [i for i, flow in enumerate(network.flow_of) if flow.measure]
    conn, sub = state.conn[measured], state.sub[np.isin(state.sub["conn"], measured)]
    bits = float((conn["data_rcv"] * conn["payload"]).sum()) * 8
    return [network.now_s, bits, float(sub["rtt_sum"].sum()) / 1e6, float(sub["rtt_n"].sum())]


def drawn(
    axes: Any, spec: Scenario, who: Mapping[str, Player | str], seeds: int, step_s: float
) -> None:
    """Draw the means over seeds, goodput on the first axis and RTT on the second."""
    from pipelines.reporting.figures import COLOURS

    times = step_s * (np.arange(round(spec.duration_s / step_s)) + 0.5)
    for place, (name, one) in enumerate(who.items()):
        found = np.array([series(spec, one, seed, step_s) for seed in range(min(seeds, SEEDS))])
        means = np.nanmean(found, axis=0)
        for axis, values in zip(axes, means, strict=True):
            axis.plot(times, values, color=COLOURS[place], label=name)
    axes[0].set(xlabel="time (s)", ylabel="goodput (Mbit/s)")
    axes[1].set(xlabel="time (s)", ylabel="RTT (ms)")
    axes[0].legend()
