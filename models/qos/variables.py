"""The network's variables: settings, runtime contexts and quality (mp-cdg.txt section 4.2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

SETTING: Final = "setting"
RUNTIME: Final = "runtime"
QUALITY: Final = "quality"


@dataclass(frozen=True)
class Variable:
    """One node of the network.

    Attributes
    ----------
    column : str
        Of the table of sessions.
    unit : str
    group : str
        The paper's primary contexts are settings: known or chosen before anything is sent.
    words : tuple of str
        Of its values, from the smallest; the middle one is left out of two.
    floor : float or None
        Values are discretised on a logarithmic scale, those below this as this; None: as they are.
    """

    column: str
    unit: str
    group: Literal["setting", "runtime", "quality"]
    words: tuple[str, str, str] = ("low", "medium", "high")
    floor: float | None = None

    def names(self, count: int) -> tuple[str, ...]:
        """Words for so many values."""
        low, middle, high = self.words
        return {1: (middle,), 2: (low, high), 3: (low, middle, high)}[count]


VARIABLES: dict[str, Variable] = {
    "bw1": Variable("bw1_mbps", "Mbps", SETTING, floor=1e-3),
    "bw2": Variable("bw2_mbps", "Mbps", SETTING, floor=1e-3),
    "rate": Variable("rate_mbps", "Mbps", SETTING, floor=1e-3),
    "delay1": Variable("delay1_ms", "ms", RUNTIME, floor=1e-1),
    "loss1": Variable("loss1", "1", RUNTIME, floor=1e-3),
    "delay2": Variable("delay2_ms", "ms", RUNTIME, floor=1e-1),
    "loss2": Variable("loss2", "1", RUNTIME, floor=1e-3),
    "psnr": Variable("psnr_db", "dB", QUALITY, ("bad", "fair", "good")),
    "buffer": Variable("buffer_s", "s", QUALITY),
}
"""Name -> what it is, in the order of the network's tables: causes before effects."""


def of_group(*groups: str) -> list[str]:
    """Names of the variables of some groups, in order."""
    return [name for name, one in VARIABLES.items() if one.group in groups]
