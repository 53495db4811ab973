"""Observations of Nuwa's agent."""

from __future__ import annotations

import numpy as np

from features import nuwa


def test_amounts_are_differences_and_states_stay() -> None:
    def batch(**values: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        return {k: (np.zeros(1, np.int64), np.array([v])) for k, v in values.items()}

    observer = nuwa.ReceiverObserver()
    first = observer.update(
        batch(
            received_bytes=3000,
            rcv_wnd_bytes=9000,
            rcv_queue_bytes=10,
            owd_us=21,
            target_delay_us=5,
            gain_milli=7000,
        )
    )
    assert first.tolist() == [3000, 9000, 10, 21, 5, 7000, 0]
    # Nothing came: there is no new delay.
    second = observer.update(batch(received_bytes=3000, rcv_wnd_bytes=8000, rcv_queue_bytes=0))
    assert second.tolist() == [0, 8000, 0, 21, 5, 7000, 0]
    assert observer.update({}).tolist() == [0, 8000, 0, 21, 5, 7000, 0]
    assert len(nuwa.FEATURES) == len(nuwa.HALF)


def test_the_queueing_delay_is_over_the_least_so_far() -> None:
    observer = nuwa.ReceiverObserver()
    seen = []
    for delay in (0, 40, 55, 30, 30, 90):
        batch = {"owd_us": (np.zeros(1, np.int64), np.array([delay]))} if delay else {}
        seen.append(observer.update(batch)[nuwa.QUEUEING])
    assert seen == [0, 0, 15, 0, 0, 60]
