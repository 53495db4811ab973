"""What each congestion control, queue discipline and scheduler is known for."""

from __future__ import annotations

from typing import Any

import pytest

from data.netsim.cc import CONTROLS, fields, module
from data.netsim.cc.dispatch import HOOKS
from data.netsim.metrics import simulate
from data.netsim.network import Network
from data.netsim.scenario import Scenario, load

pytestmark = pytest.mark.xdist_group("netsim")

TRAINED = [name for name in CONTROLS if name != "agent"]


def one(controller: str, seconds: float = 20.0, seed: int = 1, **changes: Any) -> Network:
    """One flow on a link of 10 Mbps, 40 ms."""
    flow = {"name": "f", "paths": [{"forward": ["b"], "back": ["r"]}]}
    flow.update(changes.pop("flow", {}))
    link = {"rate_mbps": 10.0, "delay_ms": 20.0, "queue_packets": 60, **changes}
    tree = {"links": {"b": link, "r": {"delay_ms": 20.0}}, "flows": [flow]}
    network = Network(Scenario.parse(tree, "test"), controller, seed=seed)
    network.advance(seconds)
    return network


def shared(controller: str, seed: int = 1, seconds: float = 120.0) -> float:
    """Goodput of two subflows over that of one Reno flow, all behind one link."""
    path = {"forward": ["b"], "back": ["r"]}
    tree = {
        "links": {"b": {"rate_mbps": 8.0, "delay_ms": 20.0, "queue_packets": 40},
                  "r": {"delay_ms": 20.0}},
        "flows": [{"name": "m", "cc": controller, "paths": [path, path], "start_spread_s": 1},
                  {"name": "t", "cc": "reno", "paths": [path], "start_spread_s": 1}],
    }  # fmt: skip
    network = Network(Scenario.parse(tree, "test"), seed=seed)
    network.advance(20.0)
    before = network.state.conn["data_rcv"].copy()
    network.advance(seconds)
    gain = network.state.conn["data_rcv"] - before
    return float(gain[0] / gain[1])


def mbps(network: Network) -> float:
    return float(network.state.conn["data_rcv"][0] * 1448 * 8 / network.now_s / 1e6)


def queue_ms(network: Network) -> float:
    link = network.link("b")
    return float(link["wait_sum"] / link["served"] / 1e6)


def test_registry_is_complete() -> None:
    assert fields()
    for name in CONTROLS:
        control = module(name)
        assert control.SUMMARY
        assert control.__doc__
        assert any(hasattr(control, hook) for hook in HOOKS)


def test_simulations_share_their_types() -> None:
    """Else each call into the kernel would compare types field by field."""
    first, second = one("reno", 1.0), one("bbr", 1.0)
    for name in set(first.state._fields) - {"g"}:
        assert getattr(first.state, name).dtype is getattr(second.state, name).dtype, name


@pytest.mark.parametrize("controller", TRAINED)
def test_a_lone_flow_uses_the_link(controller: str) -> None:
    network = one(controller)
    assert 0.85 * 9.65 < mbps(network) <= 9.66
    assert network.state.sub["timeouts"][0] <= 2


@pytest.mark.parametrize("controller", ["vegas", "nv", "wvegas", "bbr", "nuwa"])
def test_delay_based_controls_keep_the_queue_short(controller: str) -> None:
    flow = {"target_delay_ms": 15.0}
    assert queue_ms(one(controller, queue_packets=200, flow=flow)) < 0.6 * queue_ms(
        one("reno", queue_packets=200)
    )


@pytest.mark.parametrize(("controller", "least"), [("bbr", 0.8), ("westwood", 0.5), ("mpcdg", 0.8)])
def test_random_loss_hurts_some_less(controller: str, least: float) -> None:
    reno = mbps(one("reno", 60.0, loss=0.01))
    assert mbps(one(controller, 60.0, loss=0.01)) > max(least * 9.65, 1.05 * reno)


def test_highspeed_is_reno_in_small_windows() -> None:
    slow = {"rate_mbps": 2.0, "queue_packets": 10}
    fast, plain = one("highspeed", **slow), one("reno", **slow)
    assert fast.state.sub["cwnd"][0] < 38
    assert mbps(fast) == pytest.approx(mbps(plain), rel=0.01)


def test_hybla_beats_reno_on_long_paths() -> None:
    far = {"delay_ms": 280.0, "loss": 0.001, "queue_packets": 500}
    assert mbps(one("hybla", 60.0, **far)) > 2 * mbps(one("reno", 60.0, **far))


def test_dctcp_holds_the_queue_at_the_mark() -> None:
    network = one("dctcp", queue_packets=400, mark_packets=15, delay_ms=2.0)
    assert network.link("b")["dropped"] == 0
    assert network.link("b")["marked"] > 0
    assert queue_ms(network) < 25 * 1.2
    assert mbps(network) > 0.9 * 9.65


def test_coupled_controls_are_fairer_than_uncoupled() -> None:
    alone = sum(shared("reno", seed) for seed in (1, 2, 3)) / 3
    assert alone > 1.5
    for controller in ("lia", "olia", "balia", "mpcdg"):
        ratio = sum(shared(controller, seed) for seed in (1, 2, 3)) / 3
        assert 0.5 < ratio < 0.85 * alone, controller


def test_mpcdg_takes_what_lia_leaves_and_nothing_from_others() -> None:
    settings = {
        "links.core.queue_packets": 20, "links.core.loss": 0.005,
        "links.core.delay_ms": 20, "links.back.delay_ms": 20,
    }  # fmt: skip
    spec = load("mpcdg-table1", settings)[""]
    runs = {name: [simulate(spec, name, seed) for seed in range(4)] for name in ("lia", "mpcdg")}
    a, b = (
        sum(r[metric] for r in runs["mpcdg"]) / sum(r[metric] for r in runs["lia"])
        for metric in ("node_a_mbps", "node_b_mbps")
    )
    assert a > 0.97
    assert b > 1.05


def test_agent_sets_the_window() -> None:
    network = one("agent", 0.0)
    network.advance(1.0)
    network.state.sub["agent_cwnd"] = 20
    network.advance(4.0)
    assert network.state.sub["cwnd"][0] == 20
    before = int(network.state.conn["data_rcv"][0])
    network.advance(8.0)
    rate = (network.state.conn["data_rcv"][0] - before) * 1448 * 8 / 4e6
    assert rate == pytest.approx(20 * 1448 * 8 / 0.0412 / 1e6, rel=0.05)


def test_agent_drops_at_a_link() -> None:
    network = one("reno", 5.0, queue="agent")
    link = network.link("b")
    link["agent_p"] = 0.05
    arrived, dropped = int(link["arrived"]), int(link["dropped"])
    network.advance(200.0)
    share = (int(link["dropped"]) - dropped) / (int(link["arrived"]) - arrived)
    assert share == pytest.approx(0.05, rel=0.15)


def test_active_queues_stay_in_their_bounds() -> None:
    deep = {"queue_packets": 500, "flow": {"count": 4, "start_spread_s": 1}}
    tail = queue_ms(one("cubic", 40.0, **deep))
    assert tail > 100.0
    codel = queue_ms(one("cubic", 40.0, queue="codel", **deep))
    assert 2.0 < codel < 25.0
    pie = queue_ms(one("cubic", 40.0, queue="pie", target_ms=15.0, **deep))
    assert 5.0 < pie < 40.0
    red = {"min_packets": 10, "max_packets": 30, "max_p": 0.1}
    network = one("cubic", 40.0, queue="red", red=red, **deep)
    assert 5.0 < queue_ms(network) < 40.0
    assert network.link("b")["avg"] < 60.0


def test_ecn_marks_in_place_of_drops() -> None:
    flow = {"ecn": True}
    network = one("cubic", 40.0, queue="codel", ecn=True, queue_packets=500, flow=flow)
    assert network.link("b")["marked"] > 0
    assert network.link("b")["dropped"] == 0
    assert network.state.sub["retransmitted"][0] == 0


def test_gilbert_losses_come_in_bursts_at_the_stationary_rate() -> None:
    tree = {
        "links": {"b": {"gilbert": {"to_bad": 0.01, "to_good": 0.2}}},
        "sources": [{"path": ["b"], "rate_mbps": 12.0}],
    }
    network = Network(Scenario.parse(tree, "test"), seed=1)
    network.advance(200.0)
    link = network.link("b")
    assert link["lost"] / link["arrived"] == pytest.approx(0.01 / 0.21, rel=0.05)


@pytest.mark.parametrize(
    ("scheduler", "low", "high"),
    [
        ("minrtt", 13.0, 14.5),
        ("roundrobin", 13.0, 14.5),
        ("redundant", 8.5, 9.7),
        ("qos", 13.0, 14.5),
    ],
)
def test_schedulers(scheduler: str, low: float, high: float) -> None:
    tree = {
        "links": {
            "a": {"rate_mbps": 10.0, "delay_ms": 10.0, "queue_packets": 60},
            "b": {"rate_mbps": 5.0, "delay_ms": 30.0, "queue_packets": 60},
            "r": {"delay_ms": 10.0},
        },
        "flows": [{"name": "f", "scheduler": scheduler, "paths": [
            {"forward": ["a"], "back": ["r"]}, {"forward": ["b"], "back": ["r"]}]}],
    }  # fmt: skip
    network = Network(Scenario.parse(tree, "test"), "reno", seed=1)
    network.advance(30.0)
    assert low < mbps(network) < high


def test_a_dead_paths_queue_goes_to_the_other_in_order() -> None:
    tree = {
        "links": {
            "a": {"steps": [[0, 10.0], [2.0, 0.001]], "period_s": 600, "delay_ms": 10.0,
                  "queue_packets": 60},
            "b": {"rate_mbps": 5.0, "delay_ms": 30.0, "queue_packets": 60},
            "r": {"delay_ms": 10.0},
        },
        "flows": [{"name": "f", "scheduler": "qos", "size_bytes": 6_000_000, "paths": [
            {"forward": ["a"], "back": ["r"]}, {"forward": ["b"], "back": ["r"]}]}],
    }  # fmt: skip
    network = Network(Scenario.parse(tree, "test"), "lia", seed=1)
    network.advance(20.0)
    connection = network.connection(0)
    assert connection["done_t"] > 0
    assert connection["held"] == 0
    assert network.subflows(0)["timeouts"][0] > 0
    first = network.subflows(0)[0]
    assert first["queue_from"] == first["queue_to"], "nothing stays with the dead path"


def test_a_small_shared_buffer_blocks_the_fast_path() -> None:
    def run(window_bytes: int) -> float:
        tree = {
            "links": {
                "a": {"rate_mbps": 10.0, "delay_ms": 5.0, "queue_packets": 100},
                "b": {"rate_mbps": 1.0, "delay_ms": 150.0, "queue_packets": 100},
                "r": {"delay_ms": 5.0},
            },
            "flows": [{"name": "f", "scheduler": "roundrobin",
                       "window_bytes": window_bytes, "paths": [
                {"forward": ["a"], "back": ["r"]}, {"forward": ["b"], "back": ["r"]}]}],
        }  # fmt: skip
        network = Network(Scenario.parse(tree, "test"), "reno", seed=1)
        network.advance(30.0)
        return mbps(network)

    assert run(60_000) < 0.6 * run(4_000_000)


def test_an_application_limit_is_kept() -> None:
    assert mbps(one("cubic", 20.0, flow={"rate_mbps": 3.0})) == pytest.approx(3.0, rel=0.02)


def start_of(controller: str, paths: int, queue_packets: int) -> Network:
    """The first 0.3 s of the lab's 8 Mbit/s and 40 ms, of which its kernel logs tell."""
    tree = {
        "links": {"a": {"rate_mbps": 8.0, "delay_ms": 20.0, "queue_packets": queue_packets},
                  "back": {"delay_ms": 20.0}},
        "flows": [{"name": "f", "paths": [{"forward": ["a"], "back": ["back"]}] * paths}],
    }  # fmt: skip
    network = Network(Scenario.parse(tree, "test"), controller, seed=1)
    network.advance(0.3)
    return network


def test_cubic_leaves_slow_start_where_the_kernel_does() -> None:
    # Of 34 and 35 in the kernel's logs (data/reference/linux, 8m-40ms-two and -half).
    s = start_of("cubic", 1, 27).state.sub[0]
    assert 33 <= s["ssthresh"] <= 36
    assert s["retransmitted"] == 0


@pytest.mark.parametrize(("paths", "quick"), [(1, [62]), (2, [62, 16])])
def test_the_start_is_acknowledged_segment_by_segment(paths: int, quick: list[int]) -> None:
    late = start_of("reno", paths, 1000).state.sub
    for s, first in zip(late, quick, strict=True):
        counted = first + (int(s["received"]) - first) // 2
        # A round trip of ACKs, of two segments each, is on the way.
        assert counted - 16 <= s["acks"] <= counted + 2
