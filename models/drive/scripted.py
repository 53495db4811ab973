"""Policies by hand for live connections: a constant window, and one that tracks what a path holds.

They are those of `models.envs.scripted`, for one connection instead of a batch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError, unknown_name
from features import tcco
from models.drive.deciding import Moment, Policy

Steps = NDArray[np.int64]
PAYLOAD_BYTES = 1448


class Windows:
    """Moves every window to what is wanted and stays there; heeds the expflag below the bound.

    Parameters
    ----------
    wanted : callable
        From a moment to windows in segments, [subflows] or a number.
    reach : int
        Most units of one step.
    """

    def __init__(self, wanted: Callable[[Moment], NDArray[np.float64]], reach: int = 2) -> None:
        self._wanted, self._reach = wanted, reach

    def __call__(self, moment: Moment) -> Steps:
        """Steps of the subflows."""
        missing = self._wanted(moment) - moment.targets
        delta = np.clip(np.round(missing / moment.units), -self._reach, self._reach)
        explore = (moment.values[:, tcco.EXPFLAG] > 0) & (moment.targets < moment.most)
        return np.where(explore, np.maximum(delta, 1), delta).astype(np.int64)

    def forget(self, key: tuple[int, int]) -> None:
        """Nothing is remembered."""


def constant(window: float) -> Policy:
    """A constant window for every subflow, in segments."""
    return Windows(lambda moment: np.full(len(moment.targets), window))


def tracking(share: float) -> Policy:
    """What each path holds by its bottleneck and base RTT as observed, times a factor."""

    def wanted(moment: Moment) -> NDArray[np.float64]:
        now = moment.values
        held: NDArray[np.float64] = now[:, tcco.BOTTLENECK] * now[:, tcco.BASE_RTT]
        return share * held / 8e6 / PAYLOAD_BYTES

    return Windows(wanted)


SCRIPTED: dict[str, Callable[[float], Policy]] = {"constant": constant, "tracking": tracking}
"""``constant:100`` or ``tracking:1.25`` as a policy's name."""


def scripted(name: str) -> Policy:
    """The policy by hand of a name such as ``tracking:1.25``.

    Raises
    ------
    UserError
        There is none of that name, or its number is none.
    """
    kind, _, number = name.partition(":")
    if kind not in SCRIPTED:
        raise unknown_name("policy by hand", kind, SCRIPTED)
    try:
        return SCRIPTED[kind](float(number))
    except ValueError:
        raise UserError(f"{name}: a number is missing: {kind}:1.25, say") from None
