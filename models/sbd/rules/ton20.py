"""The loss part of SB-CC: Wei, Xue, Han, Wei, Hong, IEEE/ACM ToN 28(2), 2020 (the paper's [16]).

Marks (here losses alone, as in section 5.1) on two subflows within one round trip speak for a
common bottleneck, a mark that finds no companion against it. One such observation is only an
intermediate judgement; the final one needs ``RUNS`` equal ones in a row, and until the first
final judgement nothing is said, which counts as wrong in both classes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.sbd.rules.pair import Pair, time_shares

RUNS = 3
"""Equal intermediate judgements in a row that make a final one."""

UNSAID, SAME, DIFFERENT = 0, 1, 2


def judgements(pair: Pair) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Times (us) and final judgement from then on: 0 none, 1 same set, 2 different sets."""
    times = np.concatenate([pair[0].loss_us, pair[1].loss_us])
    flow = np.repeat([0, 1], [pair[0].loss_us.size, pair[1].loss_us.size])
    order = np.argsort(times, kind="stable")
    moment = np.empty(times.size, dtype=np.int64)
    state = np.zeros(times.size, dtype=np.int64)
    run, previous, final = 0, UNSAID, UNSAID
    for i, j in enumerate(order):
        time = int(times[j])
        spans = [one.smoothed_at(time) for one in pair]
        interval = int(max((s for s in spans if s == s), default=0))
        other = pair[1 - int(flow[j])]
        seen = SAME if other.lost_between(time - interval, time + interval) else DIFFERENT
        run = run + 1 if seen == previous else 1
        previous = seen
        if run >= RUNS:
            final = seen
        # The companion may come up to one interval later: the judgement has to wait for it.
        moment[i], state[i] = time + interval, final
    later = np.argsort(moment, kind="stable")
    return moment[later], state[later]


def judge(pair: Pair, windows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Share of each window's time in state same, and different; see the package's text."""
    change, state = judgements(pair)
    return time_shares(change, state, windows, (SAME, DIFFERENT))
