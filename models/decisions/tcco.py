"""Decisions on windows, as TCCO's agent observes, takes and is paid for them.

What a log doesn't hold: the rate that a path carries, for which the highest rate seen so far
stands in, as in the reward of a simulated path without a limit; and the base RTT, which is the
least one so far, as for the agent itself. Payload of a segment is a setting.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from pydantic import Field

from data.decisions.run import Run
from data.decisions.schema import About
from data.netsim.events import KERNEL
from data.netsim.from_lab import SEGMENT
from data.store import Series
from data.strict import Strict
from features import logged, tcco
from features.spec import schema_hash
from models.decisions import Refused, behaviour, intervals, scenario
from models.envs.tcco import TccoParams
from models.envs.tcco_replay import Replay, Replayed
from models.envs.tcco_reward import TccoReward

PLAIN_BYTES = 1448
"""Payload of an Ethernet frame's segment with timestamps."""
NEEDED = {
    "rtt_us": "round-trip time of each ACK",
    "snd_cwnd": "window",
    "delivered_bytes|ack": "what has arrived",
}
"""Variables without which there is no observation."""
_NONE = (np.zeros(0, np.int64), np.zeros(0, np.int64))


class Settings(Strict):
    """How decisions are made of a connection."""

    params: TccoParams = TccoParams()
    reward: TccoReward = TccoReward()
    segment_bytes: int = Field(0, ge=0)
    """Payload of a segment; 0: 1448, or what is left in a kernel's connection of many subflows."""
    behaviour: str = ""
    """Control of logs that don't say it."""
    smoothed: bool = False
    """Whether smoothed round-trip times do where a log has no others: they lag and leave out what
    a queue does within a round trip, so that observations aren't quite those of an agent."""


def about(settings: Settings) -> About:
    """What a table of these decisions holds."""
    p = settings.params
    seen = p.observation.model_dump()
    return About(
        agent="tcco",
        observation=tuple(feature.name for feature in tcco.FEATURES),
        units=tuple(feature.unit for feature in tcco.FEATURES),
        schema_hash=schema_hash(tcco.FEATURES, seen),
        interval_us=p.observation.interval_us,
        actions=tuple(float(delta) for delta in range(-p.reach, p.reach + 1)),
        change_unit=f"{p.step_share:g} of what the path holds, in whole segments, "
        f"at least {p.step_segments}",
        params=settings.model_dump(mode="json"),
    )


def of_log(row: dict[str, Any], events: Series, settings: Settings) -> Run:
    """Decisions of a connection.

    Parameters
    ----------
    row : dict
        Its row of ``connections.parquet``.
    events : dict
        subflow -> variable -> (time_us, value), as from `data.store.iter_connections`.
    settings : Settings

    Raises
    ------
    Refused
        When its log lacks what an observation needs, or ends before a decision.
    """
    name = behaviour(row, settings.behaviour)
    subflows = sorted(events)
    if settings.smoothed:
        events = {s: {"rtt_us": one.get("srtt_us", _NONE), **one} for s, one in events.items()}
    for subflow in subflows:
        if missing := logged.lacking(events[subflow], NEEDED):
            only = not settings.smoothed and "srtt_us" in events[subflow]
            told = ["smoothed ones do with --set smoothed=true"] if only else []
            raise Refused("; ".join([*missing, *told]))
    observing = settings.params.observation
    start, count = intervals(row, observing.interval_us)
    if not subflows or count < 2:
        raise Refused("ends before two intervals have gone by")
    seen = [logged.summed(events[s], start, observing.interval_us, count) for s in subflows]
    values = np.stack([logged.tcco_rows(one, observing) for one in seen], 1)
    states = np.stack([logged.last_values(one, "ca_state") for one in seen], 1)
    replay = replayer(settings.params, settings.reward, len(subflows))
    first = replay.taken_over(values, states)
    if first < 0 or first + 1 >= count:
        raise Refused("ends before its Start phase does")
    segment = settings.segment_bytes or payload(row, len(subflows))
    made = replay.decisions(values, first, first + 1, segment)
    return run(str(row["connection"]), name, scenario(row), values[first:-1], made)


def payload(row: dict[str, Any], subflows: int) -> int:
    """Payload of a full segment (bytes), which no log tells."""
    several = row["format"] != KERNEL and subflows > 1
    return int(SEGMENT["segment_bytes"]) if several else PLAIN_BYTES


def run(name: str, control: str, where: str, values: Any, made: Replayed) -> Run:
    """Decisions of a connection as rows of a table; ``values`` are those before each decision."""
    numbers = (values.astype(np.float32), made.action)
    paid = (made.change.astype(np.float32), made.reward.astype(np.float32))
    return Run(name, control, where, *numbers, *paid)


@cache
def replayer(params: TccoParams, reward: TccoReward, subflows: int) -> Replay:
    """The environment's rules for connections of so many subflows."""
    return Replay(params, reward, subflows)
