"""Decisions on a sender's window, as a TCP agent of MA-CC's observes, takes and is paid for them.

Only its senders: what its routers do, keep or drop all that comes for a whole step, no other queue
does. A sender has one path. No kernel log has the data in flight, which a sender observes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.decisions.run import Run
from data.decisions.schema import About
from data.store import Series
from data.strict import Strict
from features import logged, macc
from features.spec import schema_hash
from models.decisions import Refused, behaviour, intervals, scenario
from models.envs.macc import MaccParams
from models.envs.macc_reward import MaccReward

NEEDED = {
    "rtt_us": "round-trip time of each ACK",
    "ack": "what has arrived",
    "snd_cwnd": "window",
    "in_flight_bytes": "data in flight",
}
"""Variables without which there is no observation or no action."""
CHANGES = (1.0, -1.0, 0.0)
"""What each action does to the window, in steps: up, down, hold (`models.envs.macc`)."""


class Settings(Strict):
    """How decisions are made of a connection."""

    params: MaccParams = MaccParams()
    reward: MaccReward = MaccReward()
    behaviour: str = ""
    """Control of logs that don't say it."""


def about(settings: Settings) -> About:
    """What a table of these decisions holds."""
    p = settings.params
    return About(
        agent="macc",
        observation=tuple(feature.name for feature in macc.SENDER),
        units=tuple(feature.unit for feature in macc.SENDER),
        schema_hash=schema_hash(macc.SENDER, p.observation.model_dump()),
        interval_us=p.observation.interval_us,
        actions=CHANGES,
        change_unit=f"{p.step_segments} segments",
        params=settings.model_dump(mode="json"),
    )


def of_log(row: dict[str, Any], events: Series, settings: Settings) -> Run:
    """Decisions of a connection of one path; see `models.decisions.tcco.of_log`."""
    name = behaviour(row, settings.behaviour)
    if len(events) != 1:
        raise Refused(f"{len(events)} subflows, where a sender of MA-CC's has one path")
    [variables] = events.values()
    if missing := logged.lacking(variables, NEEDED):
        raise Refused("; ".join(missing))
    length = settings.params.observation.interval_us
    start, count = intervals(row, length)
    if count < 2:
        raise Refused("ends before two intervals have gone by")
    seen = logged.summed(variables, start, length, count)
    values = logged.sender_rows(seen)
    windows = logged.last_values(seen, "snd_cwnd")
    states = logged.last_values(seen, "ca_state")
    began = (min(int(times[0]) for times, _ in variables.values()) - start) // length
    first = taken_over(windows, states, began, settings.params)
    if first < 0 or first + 1 >= count:
        raise Refused("ends before its slow start does")
    return run(
        str(row["connection"]),
        name,
        scenario(row),
        values[first:],
        windows[first:],
        settings,
    )


def taken_over(
    windows: NDArray[np.int64], states: NDArray[np.int64], began: int, params: MaccParams
) -> int:
    """Interval after which a sender's agent would be in charge; -1 if it never is.

    ``began`` is the interval in which the sender starts.
    """
    through = (windows >= params.start_cwnd) | (states != 0)
    done = np.arange(len(windows)) + 1
    due = (done > began) & (through | (done - began >= params.start_intervals))
    return int(np.argmax(due)) if due.any() else -1


def run(
    name: str,
    control: str,
    where: str,
    values: NDArray[np.float64],
    windows: NDArray[np.int64],
    settings: Settings,
) -> Run:
    """Decisions of a sender, of its observations and windows from the first decision on.

    Parameters
    ----------
    name, control, where : str
        Of the run, see `data.decisions.run.Run`.
    values : float64 array [T + 1, 3]
    windows : int64 array [T + 1]
    settings : Settings
    """
    change = np.diff(windows) / settings.params.step_segments
    action = np.abs(change[:, None] - np.array(CHANGES)).argmin(axis=1)
    reward = [settings.reward.sender(row) for row in values[1:]]
    return Run(
        name,
        control,
        where,
        values[:-1, None].astype(np.float32),
        action[:, None].astype(np.int8),
        change[:, None].astype(np.float32),
        np.array(reward, np.float32)[:, None],
    )
