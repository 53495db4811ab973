import numpy as np
import pytest
from scipy.signal import lfilter
from synthetic import SITES

from data.errors import UserError
from models.sbd.rules import RULES, judge_of
from models.sbd.rules.pair import pair, smooth, time_shares
from models.sbd.rules.threshold import Threshold
from models.sbd.windows import Windows

S = 1_000_000


def sawtooth(period_us: int, phase_us: int, base_us: int, height_us: int, seed: int) -> np.ndarray:
    """A queue that fills and drains, sampled every 5 ms for 20 s, as (time, RTT)."""
    time = np.arange(0, 20 * S, 5000)
    queue = ((time + phase_us) % period_us) / period_us * height_us
    noise = np.random.default_rng(seed).normal(0, 0.01 * height_us, time.size)
    return np.stack([time, (base_us + queue + noise).astype(np.int64)])


def subflow(rtt: np.ndarray, losses: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    losses = np.asarray(losses, dtype=np.int64)
    times = np.sort(np.concatenate([losses, losses + 100_000]))
    states = np.where(np.isin(times, losses), 3, 0)
    return {
        "rtt_us": (rtt[0], rtt[1]),
        "ca_state": (times, states),
        "retransmit": (losses, np.ones(losses.size, np.int64)),
    }


def connection(shared: bool) -> dict[int, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """Two subflows behind one queue, or behind two that fill at another pace and height."""
    one = np.arange(S, 20 * S, S)
    two = one + 20_000 if shared else np.arange(1_430_000, 20 * S, 1_370_000)
    first = subflow(sawtooth(S, 0, 20_000, 80_000, 1), one)
    if shared:
        return {1: first, 2: subflow(sawtooth(S, 0, 30_000, 80_000, 2), two)}
    return {1: first, 2: subflow(sawtooth(1_370_000, 940_000, 30_000, 240_000, 2), two)}


WINDOWS = np.array([[8 * S, 12 * S], [12 * S, 16 * S], [16 * S, 19 * S]])


@pytest.mark.parametrize("name", list(RULES))
def test_each_rule_tells_a_clear_case(name: str) -> None:
    judge = judge_of(name)
    shared, apart = (pair(connection(kind)) for kind in (True, False))
    assert shared is not None
    assert apart is not None
    together = judge(shared, WINDOWS)
    assert together.shape == (3, 2)
    assert (together >= 0).all()
    assert (together.sum(axis=1) <= 1 + 1e-9).all()
    assert together[:, 0].mean() > 0.9
    # Independent queues coincide by chance, the more so with DWC's delay condition.
    assert judge(apart, WINDOWS)[:, 1].mean() > together[:, 1].mean() + 0.4


@pytest.mark.parametrize("name", list(RULES))
def test_rules_take_connections_without_losses(name: str) -> None:
    events = connection(True)
    for variables in events.values():
        del variables["ca_state"], variables["retransmit"]
    two = pair(events)
    assert two is not None
    assert np.isfinite(judge_of(name)(two, WINDOWS)).all()


def test_ton20_says_nothing_before_three_equal_judgements() -> None:
    events = connection(True)
    two = pair(events)
    assert two is not None
    early = judge_of("ton20")(two, np.array([[0, S], [0, 2 * S]]))
    assert early[0].tolist() == [0, 0]
    assert early[1].sum() < 0.6


def test_one_subflow_is_no_pair() -> None:
    assert pair({1: connection(True)[1]}) is None


def test_smoothing_is_tcps() -> None:
    rtt = np.array([80, 160, 0], dtype=np.int64)
    np.testing.assert_allclose(smooth(rtt), [80, 90, 78.75])


@pytest.mark.parametrize("size", [1, 2, 50_000])
def test_smoothing_is_the_filter_of_a_signal_library_to_the_bit(size: int) -> None:
    rtt = np.random.default_rng(size).integers(1, 10**7, size)
    expected, _ = lfilter([1 / 8], [1, -7 / 8], rtt.astype(float), zi=[7 / 8 * rtt[0]])
    assert smooth(rtt).tobytes() == expected.tobytes()
    assert smooth(rtt[:0]).size == 0


def test_time_shares_by_hand() -> None:
    shares = time_shares(
        np.array([10, 30]), np.array([1, 2]), np.array([[0, 40], [20, 30], [30, 40]]), (0, 1, 2)
    )
    np.testing.assert_allclose(shares, [[0.25, 0.5, 0.25], [0, 1, 0], [0, 0, 1]])


def test_unknown_rule_names_the_nearest() -> None:
    with pytest.raises(UserError, match="dwc"):
        judge_of("dcw")


def test_threshold_is_the_best_there_is() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        y = rng.integers(0, 2, 60)
        x = np.round(rng.normal(0, 1, 60) + y, 1)[:, None]
        found = Threshold().fit(x, y)
        hits = (found.predict(x) == y).sum()
        values = np.concatenate([[-9], np.unique(x)])
        assert hits == max(((x[:, 0] > v).astype(int) == y).sum() for v in values)
        np.testing.assert_array_equal(found.predict_proba(x)[:, 1] > 0.5, found.predict(x) == 1)


def test_rule_table_counts_time_and_its_all_is_the_sites(table: Windows) -> None:
    from models.sbd.evaluate.tables import rules
    from models.sbd.params import Params

    shares = np.where(table.y[:, None] == 1, [[0.8, 0.2]], [[0.7, 0.3]])
    rows = {row["dataset"]: row for row in rules(table, {"x": shares}, Params(bootstrap=100))}
    assert rows["ALL"]["sb"]["mean"] == pytest.approx(0.8)
    assert rows["ALL"]["nsb"]["mean"] == pytest.approx(0.3)
    assert rows["ALL"]["window"]["mean"] == pytest.approx(0.5)
    assert (
        rows["ALL"]["connections"]
        == np.isin(
            table.column("dataset")[np.unique(table.group, return_index=True)[1]],
            SITES,
        ).sum()
    )
