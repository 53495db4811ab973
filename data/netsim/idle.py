"""Round-trip times of paths on which nothing waits: what a path has at best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from data.netsim.network import Network


def round_trips_ns(network: Network) -> NDArray[np.float64]:
    """Round-trip time of each subflow's path without a queue: delays, and sending on every link.

    A delay that steps counts with its least value, a rate that varies with its mean.

    Returns
    -------
    float64 array [subflows]
        ns, at least 1, by the subflows' places in the state.
    """
    found = np.zeros(len(network.state.sub))
    for place, sub in enumerate(network.state.sub):
        for route, size in ((sub["forward"], sub["wire"]), (sub["back"], sub["ack_size"])):
            found[place] += _one_way_ns(network, int(route), int(size))
    return np.maximum(found, 1.0)


def _one_way_ns(network: Network, route: int, size: int) -> float:
    total = 0.0
    while (at := int(network.state.route[route])) >= 0:
        link = network.state.link[at]
        total += _least_delay_ns(network, link)
        if link["rate"] > 0:
            total += size * 8e9 / int(link["rate"])
        route += 1
    return total


def _least_delay_ns(network: Network, link: Any) -> int:
    first, count = int(link["delay_off"]), int(link["delay_n"])
    if count == 0:
        return int(link["delay"])
    return int(network.state.series_v[first : first + count].min())
