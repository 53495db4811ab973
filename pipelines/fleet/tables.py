"""Tables that a store may have besides its logs."""

from __future__ import annotations

from features.sbd import TABLES
from models.decisions import AGENTS
from pipelines.fleet.decisions import DECISIONS, RUN
from pipelines.fleet.windows import CONNECTION

KEYS = {
    **dict.fromkeys(TABLES, CONNECTION),
    **{f"{DECISIONS}{name}": RUN for name in AGENTS},
}
"""Table -> its column with the name of the connection."""
