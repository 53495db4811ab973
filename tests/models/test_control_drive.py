"""Windows of live connections: from a proxy's reports to its orders."""

from __future__ import annotations

import numpy as np
import pytest

from data.errors import UserError
from data.lab.reports import ALONE, DRIVEN, REPORT, START, Records
from features.tcco import BASE_RTT, BOTTLENECK, SubflowObserver, TccoObservation
from models.drive.deciding import Deciding, Moment
from models.drive.policies import driving
from models.drive.scripted import scripted
from models.drive.trained import Acting

SEEN = TccoObservation()


def report(slot: int = 0, **values: int) -> Records:
    given = {"slot": slot, "generation": 1, "token": 7, "sfid": slot + 1, "phase": DRIVEN,
             "mss": 1448, "cwnd": 20, "target": 20, "unit": 2, "most": 100, "inode": 1,
             "rtt_count": 4, "rtt_sum_us": 80_000, "rtt_least_us": 19_000}  # fmt: skip
    record = np.zeros(1, REPORT)
    for name, value in (given | values).items():
        record[name] = value
    return record


class Noted:
    """Steps as they are told, and the moments that it saw."""

    def __init__(self, step: int) -> None:
        self.step, self.moments, self.forgotten = step, list[Moment](), list[tuple[int, int]]()

    def __call__(self, moment: Moment) -> np.ndarray:
        self.moments.append(moment)
        return np.full(len(moment.targets), self.step)

    def forget(self, key: tuple[int, int]) -> None:
        self.forgotten.append(key)


def test_observations_are_those_of_training() -> None:
    deciding, observer = Deciding(Noted(0), SEEN, 4), SubflowObserver(SEEN)
    delivered = 0
    for number in range(40):
        delivered += 1000 * number
        rtts = np.array([20_000 + 100 * number, 21_000])
        deciding.decide(
            report(delivered_bytes=delivered, rtt_count=2, rtt_sum_us=int(rtts.sum()),
                   rtt_least_us=int(rtts.min()), cwnd=20 + number // 7)
        )  # fmt: skip
        at = np.arange(2)
        expected = observer.update(
            {
                "rtt_us": (at, rtts),
                "delivered_bytes": (at[:1], np.array([delivered])),
                "snd_cwnd": (at[:1], np.array([20 + number // 7])),
            }
        )
        assert deciding.values(0) == expected.tolist()


def test_proxy_that_was_kept_from_running_reports_no_rate_that_never_was() -> None:
    deciding = Deciding(Noted(0), SEEN, 4)
    for number in range(10):
        deciding.decide(report(delivered_bytes=10_000 * number))
    steady = deciding.values(0)[BOTTLENECK]
    deciding.decide(report(delivered_bytes=10_000 * 13), intervals=4)
    assert deciding.values(0)[BOTTLENECK] == steady
    deciding.decide(report(delivered_bytes=10_000 * 17))
    assert deciding.values(0)[BOTTLENECK] > steady


def test_target_moves_by_units_within_its_bounds() -> None:
    policy = Noted(2)
    [order] = Deciding(policy, SEEN, 4).decide(report())
    assert order["target"] == 24
    [order] = Deciding(policy, SEEN, 4).decide(report(target=99))
    assert order["target"] == 100
    policy.step = -2
    [order] = Deciding(policy, SEEN, 4).decide(report(target=5))
    assert order["target"] == 4


def test_connection_waits_for_all_its_subflows_to_start() -> None:
    deciding = Deciding(Noted(1), SEEN, 4)
    both = np.concatenate([report(0), report(1, phase=START)])
    assert len(deciding.decide(both)) == 0
    both["phase"] = DRIVEN
    assert [int(order["slot"]) for order in deciding.decide(both)] == [0, 1]


def test_flow_that_was_cubics_is_taken_up_where_cubic_left_it() -> None:
    [order] = Deciding(Noted(1), SEEN, 4).decide(report(phase=ALONE, cwnd=50, target=20))
    assert order["target"] == 52


def test_connections_are_apart_and_are_forgotten() -> None:
    policy = Noted(0)
    deciding = Deciding(policy, SEEN, 4)
    plain = [report(slot, token=0, sfid=0) for slot in (3, 5)]
    deciding.decide(np.concatenate([*plain, report(0)]))
    assert len({moment.key for moment in policy.moments}) == 3
    assert all(moment.started for moment in policy.moments)
    deciding.decide(plain[0])
    assert not policy.moments[-1].started
    assert len(policy.forgotten) == 2


def test_place_of_another_socket_begins_anew() -> None:
    deciding = Deciding(Noted(0), SEEN, 4)
    deciding.decide(report(delivered_bytes=10_000_000))
    deciding.decide(report(generation=2, delivered_bytes=1000))
    assert deciding.values(0)[BOTTLENECK] == 1000 * 8e6 / SEEN.interval_us
    assert deciding.values(0)[BASE_RTT] == 19_000


def test_policies_by_hand_go_to_their_window() -> None:
    values = np.array([[1e7, 2e4, 20, 1e7, 2e4, 0.0]])
    moment = Moment(values, np.array([20]), np.array([2]), np.array([100]), False, (1, 1))
    assert scripted("constant:23")(moment) == [2]
    held = 1e7 * 2e4 / 8e6 / 1448
    assert scripted("tracking:1.0")(moment) == [round((held - 20) / 2)]
    with pytest.raises(UserError, match="number"):
        scripted("constant:")
    with pytest.raises(UserError, match="tracking"):
        scripted("trackin:1")


def test_every_policy_by_hand_has_its_own_schema() -> None:
    slow = TccoObservation(interval_us=40_000)
    assert driving("tracking:1.0").schema == driving("constant:5").schema
    assert driving("tracking:1.0", slow).schema != driving("tracking:1.0").schema
    assert driving("tracking:1.0", slow).settings().interval_us == 40_000


class Scores:
    """An actor whose action is how often it has been asked since its connection began."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, batch: object) -> np.ndarray:
        self.asked = 0 if batch.started[0] else self.asked + 1  # type: ignore[attr-defined]
        return np.full(batch.mask.shape, min(4, self.asked))  # type: ignore[attr-defined]


class SomePolicy:
    """As much of a policy as acting takes."""

    name, params, content = "some", {"reach": 2}, b""

    class layout:
        parts = 2

    def actor(self, layout: object) -> Scores:
        return Scores()


def test_each_connection_has_a_memory_of_its_own() -> None:
    acting = Acting(SomePolicy())

    def ask(key: int, started: bool) -> int:
        one = np.array([20])
        moment = Moment(np.ones((1, 6)), one, one, one, started, (1, key))
        return int(acting(moment)[0])

    assert [ask(1, True), ask(1, False), ask(2, True), ask(1, False)] == [-2, -1, -2, 0]
    acting.forget((1, 1))
    assert ask(3, True) == -2
    with pytest.raises(UserError, match="3 subflows"):
        acting(
            Moment(np.ones((3, 6)), np.ones(3, int), np.ones(3, int), np.ones(3, int), True, (1, 9))
        )
