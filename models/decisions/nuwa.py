"""Decisions on k, as Nuwa's agent observes, takes and is paid for them.

The receiver's own statistics are in no kernel log. Losses are known to a sender alone: where the
same log has its retransmissions, they stand for the segments that it found lost, of those that it
acknowledged and sent again; without them the reward takes them for none. When slow start has ended
isn't logged either, so that decisions begin after as many intervals as the environment waits at
most.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from data.decisions.run import Run
from data.decisions.schema import About
from data.store import Series
from data.strict import Strict
from features import logged, nuwa
from features.spec import schema_hash
from models.decisions import Refused, behaviour, intervals, scenario
from models.envs.nuwa import NuwaParams
from models.envs.nuwa_loop import ACTIONS
from models.envs.nuwa_reward import NuwaReward

NEEDED = {
    "received_bytes": "data received",
    "rcv_wnd_bytes": "window announced",
    "rcv_queue_bytes": "data in the receive buffer",
    "owd_us": "one-way delay",
    "target_delay_us": "T_d",
    "gain_milli": "k",
}
"""Variables without which there is no observation."""


class Settings(Strict):
    """How decisions are made of a connection."""

    params: NuwaParams = NuwaParams()
    reward: NuwaReward = NuwaReward()
    segment_bytes: int = Field(1448, gt=0)
    """Payload of a segment, to count losses."""
    behaviour: str = ""
    """Control of logs that don't say it."""


def about(settings: Settings) -> About:
    """What a table of these decisions holds."""
    p = settings.params
    return About(
        agent="nuwa",
        observation=tuple(feature.name for feature in nuwa.FEATURES),
        units=tuple(feature.unit for feature in nuwa.FEATURES),
        schema_hash=schema_hash(nuwa.FEATURES, p.observation.model_dump()),
        interval_us=p.observation.interval_us,
        actions=ACTIONS,
        change_unit="factor on k",
        params=settings.model_dump(mode="json"),
    )


def of_log(row: dict[str, Any], events: Series, settings: Settings) -> Run:
    """Decisions of a receiver; see `models.decisions.tcco.of_log`."""
    name = behaviour(row, settings.behaviour)
    if len(events) != 1:
        raise Refused(f"{len(events)} subflows, where a receiver of Nuwa's has one path")
    [variables] = events.values()
    if missing := logged.lacking(variables, NEEDED):
        raise Refused("; ".join(missing))
    length = settings.params.observation.interval_us
    start, count = intervals(row, length)
    first = settings.params.start_intervals
    if first + 1 >= count:
        raise Refused("ends before its slow start does")
    seen = logged.summed(variables, start, length, count)
    values = logged.nuwa_rows(seen)[first - 1 :]
    losses = loss_rates(seen, settings.segment_bytes)[first:]
    return run(str(row["connection"]), name, scenario(row), values, losses, settings)


def loss_rates(seen: NDArray[Any], segment_bytes: int) -> NDArray[np.float64]:
    """Share of each interval's segments that was lost, as far as retransmissions tell (0 to 1)."""
    again = logged.counted(seen, "retransmit")
    new = np.diff(logged.last_values(seen, "ack"), prepend=0) / segment_bytes
    return again / np.maximum(1.0, again + new)


def run(
    name: str,
    control: str,
    where: str,
    values: NDArray[np.float64],
    losses: NDArray[np.float64],
    settings: Settings,
) -> Run:
    """Decisions of a receiver, of its observations from the first decision on.

    Parameters
    ----------
    name, control, where : str
        Of the run, see `data.decisions.run.Run`.
    values : float64 array [T + 1, 7]
    losses : float64 array [T]
        Loss rate of the interval after each decision.
    settings : Settings
    """
    k = np.maximum(1.0, values[:, nuwa.GAIN])
    change = k[1:] / k[:-1]
    action = np.abs(np.log(change)[:, None] - np.log(ACTIONS)).argmin(axis=1)
    unit = 8e6 / settings.params.observation.interval_us
    reward = [
        settings.reward(float(now[nuwa.RECEIVED]) * unit, float(now[nuwa.DELAY]), float(loss))
        for now, loss in zip(values[1:], losses, strict=True)
    ]
    return Run(
        name,
        control,
        where,
        values[:-1, None].astype(np.float32),
        action[:, None].astype(np.int8),
        change[:, None].astype(np.float32),
        np.array(reward, np.float32)[:, None],
    )
