"""A table of decisions: its columns, and what a file says of itself.

One row per decision and subflow. A *run* is one connection (or one receiver, or one sender) from
its first decision to its last, and lies whole in one file; rows are in the order of run, step and
subflow, and every step has a row for each of the run's subflows. What is observed before a
decision stands in its row, what it has led to in the next step's.

The last step of a run has no next one. Where ``last`` is true there is none, since everything has
arrived; where ``truncated`` is true there was one which nobody recorded, so that a learner that
looks ahead leaves this row's decision out and takes its observation as what came of the one before.
"""

from __future__ import annotations

from typing import Any

from arro3.core import DataType, Field, Schema
from pydantic import Field as Setting

from data.strict import Strict

_TEXT, _INT8, _INT32 = DataType.utf8(), DataType.int8(), DataType.int32()
_FLOAT, _BOOL = DataType.float32(), DataType.bool()

HEAD = (
    Field("run", _TEXT),
    Field("step", _INT32),
    Field("subflow", _INT8),
    Field("subflows", _INT8),
    Field("behaviour", _TEXT),
    Field("scenario", _TEXT),
)
"""Name of the run, number of the decision in it, of the subflow (both from 0), how many subflows
the run has, which control decided, and where."""

TAIL = (
    Field("action", _INT8),
    Field("change", _FLOAT),
    Field("reward", _FLOAT),
    Field("first", _BOOL),
    Field("last", _BOOL),
    Field("truncated", _BOOL),
)
"""Index of the action nearest to what was done; what was done, in the unit of the agent's actions;
the agent's reward of the step, this subflow's part; whether the run begins here, ends here by
itself, or goes on where nobody recorded it."""

KEY = "cczoo"
"""Key of a Parquet file's metadata under which `About` stands as JSON."""


class About(Strict):
    """What a file of decisions says of itself."""

    agent: str
    """``tcco``, ``nuwa`` or ``macc``: whose observations, actions and rewards these are."""
    observation: tuple[str, ...] = Setting(min_length=1)
    """Columns of the observation in their order, as the agent's observer names them."""
    units: tuple[str, ...]
    """Unit of each of them."""
    schema_hash: str
    """`features.spec.schema_hash` of the observation."""
    interval_us: int = Setting(gt=0)
    """Time between decisions."""
    actions: tuple[float, ...] = Setting(min_length=1)
    """What each action does, in the unit of ``change``."""
    change_unit: str
    """What 1 of ``change`` is."""
    params: dict[str, Any] = Setting(default_factory=dict)
    """Settings of the observer, of the actions and of the reward."""
    seeds: tuple[int, ...] = ()
    """Seeds of simulated runs; none of a log."""
    command: str = ""
    """What wrote the file."""

    def columns(self) -> Schema:
        """Columns and their types."""
        seen = [Field(name, _FLOAT) for name in self.observation]
        return Schema([*HEAD, *seen, *TAIL])
