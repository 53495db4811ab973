"""A DASH-like player over the simulator: segments of a ladder, requested one after the other.

The player measures how fast segments came and asks for the highest rate of the ladder below
`SAFETY` of the harmonic mean of the last `MEMORY` of them; while more than `MOST_BUFFER_S` of media
wait it asks for nothing, as live streams have it. Playback begins with the first whole segment, and
goes on after a stall with the next one. Quality is `data.video.playback`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from data.netsim.network import Network
from data.netsim.scenario import Scenario
from data.video.playback import FROZEN_MSE, coding_mse, psnr_db

Float = NDArray[np.float64]
LADDER_MBPS = (0.4, 0.75, 1.2, 1.85, 2.85, 4.3, 6.0)
SEGMENT_S = 1.0
SAFETY = 0.95
MEMORY = 5
MOST_BUFFER_S = 3.0
STEP_S = 0.05
POLL_MBPS = 1.0
"""Rate of a flow that has nothing to send: its timer is how often new data are looked at."""


@dataclass
class Player:
    """One viewer."""

    rate: float = LADDER_MBPS[0]
    asked_at: float = 0.0
    asked: int = 0
    waiting: bool = False
    buffer_s: float = 0.0
    startup_s: float = -1.0
    moving: bool = False
    stalls: int = 0
    stalled_s: float = 0.0
    speeds: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    def arrived(self, now: float) -> None:
        """Take a whole segment."""
        self.waiting = False
        self.buffer_s += SEGMENT_S
        self.rates.append(self.rate)
        self.speeds.append(self.rate * SEGMENT_S / max(now - self.asked_at, STEP_S))
        if self.startup_s < 0:
            self.startup_s = now
        self.moving = True

    def step(self) -> None:
        """Let a step of time pass."""
        if self.startup_s < 0:
            return
        if self.moving:
            shown = min(STEP_S, self.buffer_s)
            self.buffer_s -= shown
            self.stalled_s += STEP_S - shown
            if shown < STEP_S:
                self.moving = False
                self.stalls += 1
        else:
            self.stalled_s += STEP_S

    def next_rate(self) -> float:
        """Rate of the segment to ask for."""
        if not self.speeds:
            return LADDER_MBPS[0]
        last = np.array(self.speeds[-MEMORY:])
        mean = len(last) / float((1 / last).sum())
        return max((one for one in LADDER_MBPS if one <= SAFETY * mean), default=LADDER_MBPS[0])


def watch(scenario: Scenario, cc: str, seed: int) -> dict[str, Float]:
    """Play a session on every connection of a scenario.

    Parameters
    ----------
    scenario : Scenario
        Its flows have ``rate_mbps`` (see `POLL_MBPS`); what they send is the player's business.
    cc : str
        Congestion control.
    seed : int

    Returns
    -------
    dict
        ``stalls``, ``stalled_s``, ``startup_s``, ``rate_mbps`` (mean of the segments), ``psnr_db``,
        ``goodput_mbps`` (while segments were on their way), ``reorder_kb``: float64 arrays [flows].
    """
    network = Network(scenario, cc, seed=seed)
    connections = network.state.conn
    connections["app_chunk"] = 0
    payload = connections["payload"].astype(np.int64)
    players = [Player() for _ in range(len(connections))]
    busy = np.zeros(len(players))
    steps = round(scenario.duration_s / STEP_S)
    for step in range(steps):
        now = step * STEP_S
        received = network.state.conn["data_rcv"]
        for i, player in enumerate(players):
            if player.waiting and received[i] >= player.asked:
                player.arrived(now)
            if not player.waiting and player.buffer_s <= MOST_BUFFER_S:
                player.rate = player.next_rate()
                size = player.rate * 1e6 / 8 * SEGMENT_S
                player.asked = int(received[i]) + int(np.ceil(size / payload[i]))
                player.asked_at, player.waiting = now, True
                network.state.conn["data_end"][i] = player.asked
            player.step()
            busy[i] += STEP_S * player.waiting
        network.advance((step + 1) * STEP_S)
    c = network.state.conn
    end_s = scenario.duration_s
    return {
        "stalls": np.array([float(one.stalls) for one in players]),
        "stalled_s": np.array([one.stalled_s for one in players]),
        "startup_s": np.array([one.startup_s if one.startup_s >= 0 else end_s for one in players]),
        "rate_mbps": np.array([np.mean(one.rates) if one.rates else 0.0 for one in players]),
        "psnr_db": np.array([_quality(one, end_s) for one in players]),
        "goodput_mbps": c["data_rcv"] * payload * 8 / np.maximum(busy, STEP_S) / 1e6,
        "reorder_kb": c["held_sum"] * payload / (end_s * 1e9) / 1e3,
    }


def _quality(player: Player, end_s: float) -> float:
    if not player.rates:
        return float(psnr_db(FROZEN_MSE))
    share = player.stalled_s / max(end_s - player.startup_s, STEP_S)
    moving = float(coding_mse(np.array(player.rates)).mean())
    return float(psnr_db(share * FROZEN_MSE + (1 - share) * moving))
