"""An interval's samples are summed up as they come: count, sum, least and last value.

That is all that the observations of `features.tcco`, `features.nuwa` and `features.macc` are made
of, so the event loop needs no log for an agent, and a log that is read back is summed up alike.
"""

from __future__ import annotations

from typing import Any

from data.netsim.jit import compiled, inlined
from data.netsim.state import LOG_VARIABLES, VARIABLES
from data.schema import SAMPLED

NAMES = (*LOG_VARIABLES, *SAMPLED)
"""Variables that are logged with an ACK, then those read at an interval's end, by number."""
CODES = {name: code for code, name in enumerate(NAMES)}
if len(NAMES) > VARIABLES:
    raise ValueError("a place has more variables than data.netsim.state.VARIABLES")


@inlined
def see(cell: Any, value: int) -> None:
    """Add a value to the record of its variable."""
    if cell.n == 0 or value < cell.least:
        cell.least = value
    cell.n += 1
    cell.total += value
    cell.last = value


@compiled
def forget(seen: Any, first: int, count: int) -> None:
    """Begin a new interval: what was seen last stays readable, the rest does not."""
    for i in range(first, first + count):
        seen[i].n = 0
        seen[i].total = 0
