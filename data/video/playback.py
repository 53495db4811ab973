"""A player's buffer, its stalls and the quality shown, from the times at which data arrived.

The rate-quality curve is the one of EXFO's *EXpert IPTV Test Tools* manual, section A.1.2.1, for
video of standard definition at 30 frames a second: MSE = 1e-5 + 1.5 / (B + B^2 / 30000) with B in
kbit/s, PSNR = -10 log10 MSE. Time in which the picture stands still counts with `FROZEN_MSE`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
FROZEN_MSE = 1e-2
"""Distortion of a picture that stands still, 20 dB (ours)."""


def coding_mse(rate_mbps: Any) -> Float:
    """Distortion that coding at a rate leaves (mean squared error, of a peak of 1)."""
    kbps = 1e3 * np.asarray(rate_mbps, dtype=np.float64)
    return np.asarray(1e-5 + 1.5 / (kbps + kbps**2 / 30_000), dtype=np.float64)


def psnr_db(mse: Any) -> Float:
    """Peak signal-to-noise ratio of a distortion (dB)."""
    return np.asarray(-10 * np.log10(np.asarray(mse, dtype=np.float64)), dtype=np.float64)


@dataclass(frozen=True)
class Playback:
    """What became of streams, float64 arrays [streams].

    Attributes
    ----------
    startup_s : array
        Until the first picture; the whole session if there was none.
    stalls, stalled_s : array
        Interruptions of playback, and their time together.
    buffer_s : array
        Media that waits in the player, mean over the time from the first picture to the end.
    psnr_db : array
        Quality of the mean distortion from `nominal_s` on: that of coding while pictures move,
        else `FROZEN_MSE`.
    """

    startup_s: Float
    stalls: Float
    stalled_s: Float
    buffer_s: Float
    psnr_db: Float


def play(
    media_s: Float, step_s: float, threshold_s: float, nominal_s: float, rate_mbps: Float
) -> Playback:
    """Play streams back.

    Playback begins, and goes on after a stall, once ``threshold_s`` of media are there.

    Parameters
    ----------
    media_s : float64 array [steps, streams]
        Media that have arrived in order by the end of each step (s).
    step_s : float
        Length of a step.
    threshold_s : float
        Media that must be there before pictures move.
    nominal_s : float
        From when on a picture that stands still costs quality: a start-up that nobody minds.
    rate_mbps : float64 array [streams]
        Rate that each is coded at.
    """
    steps, streams = media_s.shape
    played, begun, moving = np.zeros(streams), np.zeros(streams, bool), np.zeros(streams, bool)
    startup = np.full(streams, steps * step_s)
    stalls, stalled, waiting, frozen = (np.zeros(streams) for _ in range(4))
    for step, arrived in enumerate(media_s):
        now = (step + 1) * step_s
        moving |= arrived - played >= threshold_s
        startup = np.where(moving & ~begun, now, startup)
        begun |= moving
        shown = np.where(moving, np.minimum(step_s, arrived - played), 0.0)
        ended = moving & (shown < step_s)
        played += shown
        stalls += ended
        moving &= ~ended
        stalled += np.where(begun, step_s - shown, 0.0)
        waiting += np.where(begun, (arrived - played) * step_s, 0.0)
        if now > nominal_s:
            frozen += step_s - shown
    seen = np.maximum(steps * step_s - startup + step_s, step_s)
    share = frozen / max(step_s, steps * step_s - nominal_s)
    mse = share * FROZEN_MSE + (1 - share) * coding_mse(rate_mbps)
    return Playback(startup, stalls, stalled, np.where(begun, waiting / seen, 0.0), psnr_db(mse))
