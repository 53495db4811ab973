"""Observations of MA-CC's agents."""

from __future__ import annotations

import numpy as np

from features import macc


def batch(**values: list[int]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {k: (np.arange(len(v)), np.array(v, np.int64)) for k, v in values.items()}


def test_a_sender_sees_growth_state_and_mean() -> None:
    observer = macc.SenderObserver()
    first = observer.update(batch(ack=[100, 500], in_flight_bytes=[7], rtt_us=[10, 20]))
    assert first.tolist() == [500, 7, 15]
    assert observer.update(batch(ack=[800])).tolist() == [300, 7, 15]


def test_a_router_sees_its_queue_and_its_losses_are_told_apart() -> None:
    observer = macc.RouterObserver(macc.MaccObservation())
    first = observer.update(
        batch(queue_packets=[5], dequeued_packets=[100], queue_delay_us=[2000],
              offered_packets=[110], dropped_packets=[5])
    )  # fmt: skip
    assert first.tolist() == [5, 500, 2000]
    assert observer.loss_rate == 5 / 110
    observer.update(batch(offered_packets=[130], dropped_packets=[15]))
    assert observer.loss_rate == 0.5
    observer.update({})
    assert observer.loss_rate == 0.0
