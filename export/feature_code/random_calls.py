"""Makes up connections that no kernel would see, to catch a wrong streaming computation."""

from __future__ import annotations

import numpy as np

from features.fixed_series import Calls
from features.params import SbdParams

LENGTH = 3000


def random_calls(rng: np.random.Generator, params: SbdParams, subflows: int = 2) -> Calls:
    """Make up a connection.

    Parameters
    ----------
    rng : numpy.random.Generator
    params : SbdParams
        Calls come so often that several windows get complete.
    subflows : int
        How many, 2 to 8.

    Returns
    -------
    Calls
        Subflows with RTTs around a base each, states that come and go, ties in time, silence,
        clocks that jump, RTTs of all 32 bits, subflows and states that don't exist.
    """
    base_us = rng.integers(1, 10 ** rng.integers(2, 6), subflows)
    # In terms of the largest min RTT: this keeps some windows within LENGTH calls.
    usual_us = max(2, int(base_us.max()) * params.window_factor // int(rng.integers(20, 600)))
    n = LENGTH
    subflow = rng.integers(0, subflows, n)
    gap_us = rng.integers(0, usual_us, n)
    gap_us[rng.random(n) < 0.2] = 0
    rtt_us = base_us[subflow] + rng.integers(0, rng.integers(1, 3 * base_us.max() + 2), n)
    rtt_us[rng.random(n) < 0.1] = 0
    ca_state = np.where(rng.random(n) < 0.05, rng.integers(0, 5, n), -1)
    acked_bytes = np.cumsum(rng.integers(0, 3000, n))
    time_us = np.cumsum(gap_us) + rng.integers(0, 1 << 40)
    if rng.random() < 0.5:
        odd = rng.random(n) < 0.01
        rtt_us[odd] = rng.integers(0, 1 << 32, odd.sum())
        ca_state[odd] = rng.integers(-(2**31), 2**31, odd.sum())
        subflow[odd] = rng.integers(-3, subflows + 2, odd.sum())
        acked_bytes[odd] = rng.integers(0, 1 << 62, odd.sum())
        time_us[rng.random(n) < 0.01] -= usual_us
        for at in rng.integers(0, n, 2):
            time_us[at:] += 1 << int(rng.integers(8, 48))
        # Soon after it the clock ends, and with it the windows.
        time_us[n - n // 20 :] += 1 << int(rng.integers(48, 62))
    return Calls(
        subflow,
        np.maximum(time_us, 0).astype(np.uint64),
        rtt_us,
        ca_state,
        rng.random(n) < 0.4,
        acked_bytes.astype(np.uint64),
    )
