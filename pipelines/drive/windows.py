"""Trees that set windows, inside the congestion control."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from data.errors import UserError
from data.lab.follow import Settings
from export.bundle.manifest import Bundle
from export.feature_code import policy as derived
from pipelines.drive.trees import opened, params_of, written_header

SENDERS: dict[tuple[str, int], str] = {("tcco", 0): "TREE_OF_PATHS", ("macc", 0): "TREE_OF_SENDER"}
"""Environment and kind of part that set windows -> what `native/follow_tree.h` is told of them."""


def window_tree(name: str) -> Bundle:
    """A bundle of a tree that sets windows; see `opened`.

    Raises
    ------
    UserError
        It isn't one.
    """
    bundle = opened(name, "control")
    if derived.whose(bundle.features) not in SENDERS:
        raise UserError(
            f"{name}: a tree of {bundle.manifest['family']}, which sets no windows: give one of "
            "tcco or macc-tcp"
        )
    return bundle


def tree_header(bundle: Bundle, work: Path) -> Path:
    """Header that defines ``follow_action()`` by a bundle's tree, of `window_tree`."""
    whose = derived.whose(bundle.features)
    assert whose is not None
    include = f'#define {SENDERS[whose]}\n#include "follow_tree.h"'
    return written_header(bundle, work, "TREE_STEP", steps_of(bundle), 0, include)


def steps_of(bundle: Bundle) -> list[int]:
    """By how many units each action moves a window, in the order of the labels."""
    named = {"up": 1, "down": -1, "hold": 0}
    return [named[one] if one in named else int(one) for one in bundle.manifest["labels"]]


def tree_settings(bundle: Bundle) -> Settings:
    """What the control is loaded with for a bundle's tree: the settings of its training.

    A bundle holds no more of them than its actions; the others are the environment's own.
    """
    whose = derived.whose(bundle.features)
    assert whose is not None
    params = params_of(whose[0])
    seen = params["observation"]
    own = ("min_cwnd", "max_cwnd", "most_held", "start_cwnd", "start_intervals",
           "probe_intervals", "step_share", "step_segments")  # fmt: skip
    given: dict[str, Any] = {name: params[name] for name in own if name in params}
    if whose[0] == "macc":
        # Its agents know no share of what a path holds, no bound but one, and no Probe phase.
        given |= {"min_cwnd": 2, "most_held": 0.0, "step_share": 0.0, "probe_intervals": 0}
    else:
        given |= {
            "life_intervals": seen["lifetime_us"] // seen["interval_us"],
            "span_intervals": seen["peak_intervals"],
            "explore_after": seen["explore_after"],
        }
    return Settings(
        interval_us=seen["interval_us"],
        schema=bundle.manifest["schema_hash"],
        reach=max(abs(step) for step in steps_of(bundle)),
        orders=False,
        **given,
    )
