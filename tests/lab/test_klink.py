"""The link emulator against physical laws: delay, rate, loss, conservation of packets."""

from __future__ import annotations

import re
import select
import socket
import struct
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import measured
import pytest
from measured import Measured
from native_lab import SERVER, Lab, MakeLab, inside, shell

SO_TIMESTAMPNS, SO_RCVBUFFORCE = 35, 33
HEADER_BYTES = 28  # IPv4 and UDP
FLOOD_S = 2.6
STALL_S = 0.02
"""A sender sends each few milliseconds; one that took as long was kept from running."""

FLOOD_CONFIG = """\
stage w_up delay_ms=10
stage l_up delay_ms=25
stage shared rate_mbps=8 queue_packets=50   # bottleneck of both
stage trace trace={folder}/trace queue_packets=100
stage small trace={folder}/trace queue_packets=500
stage steps steps={folder}/steps queue_bytes=75000
stage lossy loss=0.05 seed=7
stage jitter delay_ms=10 jitter_ms=5
path wifi srv dst=10.0.9.1 stages=w_up,shared
path lte srv dst=10.0.9.1 stages=l_up,shared
path wifi srv dst=10.0.9.3 stages=trace
path wifi srv dst=10.0.9.4 stages=small
path wifi srv dst=10.0.9.5 stages=steps
path wifi srv dst=10.0.9.6 stages=lossy
path wifi srv dst=10.0.9.7 stages=jitter
path srv wifi dst=10.0.1.1 stages=w_up
path srv lte dst=10.0.2.1 stages=l_up
"""


@dataclass
class Flow:
    """Datagrams of one size, evenly sent; what arrived, by the kernel's clock."""

    source: str
    to: str
    ip_bytes: int
    per_second: int
    sent: int = 0
    sent_ns: list[int] = field(default_factory=list)
    arrived: list[tuple[int, int]] = field(default_factory=list)  # sequence number, time in ns


def flows() -> dict[str, Flow]:
    return {
        "wifi": Flow("10.0.1.1", SERVER, 1500, 600),
        "lte": Flow("10.0.2.1", SERVER, 1500, 600),
        "trace": Flow("10.0.1.1", "10.0.9.3", 1500, 750),
        "small": Flow("10.0.1.1", "10.0.9.4", 300, 3100),
        "steps": Flow("10.0.1.1", "10.0.9.5", 1500, 850),
        "lossy": Flow("10.0.1.1", "10.0.9.6", 100, 2000),
        "jitter": Flow("10.0.1.1", "10.0.9.7", 100, 500),
    }


def flood(lab: Lab, named: dict[str, Flow], duration_s: float) -> None:
    """Sends all flows at once; each datagram begins with its flow's index and its number."""
    every = list(named.values())
    senders, receivers = [], []
    with inside(lab.client):
        for flow in every:
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sender.bind((flow.source, 0))
            sender.connect((flow.to, 7000))
            senders.append(sender)
    with inside(lab.server):
        for address in {flow.to for flow in every}:
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            receiver.bind((address, 7000))
            receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
            receivers.append(receiver)
    begin = time.monotonic()
    while (elapsed := time.monotonic() - begin) < duration_s:
        for index, (flow, sender) in enumerate(zip(every, senders, strict=True)):
            while flow.sent < elapsed * flow.per_second:
                payload = struct.pack("!BI", index, flow.sent)
                flow.sent_ns.append(time.clock_gettime_ns(time.CLOCK_REALTIME))
                sender.send(payload.ljust(flow.ip_bytes - HEADER_BYTES, b"\0"))
                flow.sent += 1
        time.sleep(0.002)
    while ready := select.select(receivers, [], [], 0.5)[0]:  # the longest queue empties
        for receiver in ready:
            data, ancillary, _, _ = receiver.recvmsg(2048, 64)
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
            index, number = struct.unpack_from("!BI", data)
            every[index].arrived.append((number, seconds * 10**9 + nanoseconds))
    for one in senders + receivers:
        one.close()


Flooded = tuple[Lab, dict[str, Flow], str]


@pytest.fixture(scope="module")
def flooded(make_lab: MakeLab, tmp_path_factory: pytest.TempPathFactory) -> Measured[Flooded]:
    folder = tmp_path_factory.mktemp("rates")
    (folder / "trace").write_text("2")  # one opportunity each 2 ms: 6 Mbps
    (folder / "steps").write_text("0 4\n1 8\n")  # loops after 2 s
    return Measured(lambda: measure(make_lab, FLOOD_CONFIG.format(folder=folder)))


def measure(make_lab: MakeLab, config: str) -> Flooded:
    lab = make_lab(config)
    lab.address([SERVER] + [f"10.0.9.{i}" for i in range(3, 8)])
    sent = flows()
    pings = "".join(
        shell(
            *("ip", "netns", "exec", lab.client, "ping", "-c", "5", "-i", "0.05"),
            *("-I", source, SERVER),
        )
        for source in ("10.0.1.1", "10.0.2.1")
    )
    flood(lab, sent, FLOOD_S)
    lab.finish()
    return lab, sent, pings


def held_up_s(lab: Lab, *sent: Flow) -> float:
    """For how long the machine kept the flows' sender, or the emulator, from running."""
    times = sorted(at for flow in sent for at in flow.sent_ns)
    gaps = [(after - before) / 1e9 for before, after in pairwise(times)]
    lateness = lab.stats["lateness_us"]
    assert isinstance(lateness, dict)
    return sum(gap for gap in gaps if gap > STALL_S) + lateness["max"] / 1e6


def mbps(flow_arrivals: list[tuple[int, int]], ip_bytes: int) -> float:
    """Rate between the first and the last arrival."""
    times = sorted(time_ns for _, time_ns in flow_arrivals)
    return (len(times) - 1) * ip_bytes * 8e3 / (times[-1] - times[0])


pytestmark = pytest.mark.kernel


@measured.of("flooded")
def test_ping_takes_the_sum_of_the_delays(flooded: Flooded) -> None:
    rtts = [float(text) for text in re.findall(r"time=([0-9.]+) ms", flooded[2])]
    assert len(rtts) == 10, flooded[2]
    late_ms = 2e3 * held_up_s(flooded[0])
    # 84 bytes take 0.084 ms at 8 Mbps, one way
    assert 20.08 <= min(rtts[:5]) <= 21.0 + late_ms
    assert 50.08 <= min(rtts[5:]) <= 51.0 + late_ms


@measured.of("flooded")
def test_shared_stage_divides_its_rate(flooded: Flooded) -> None:
    lab, sent, _ = flooded
    both = sent["wifi"].arrived + sent["lte"].arrived
    slack = held_up_s(lab, sent["wifi"], sent["lte"]) / FLOOD_S
    assert mbps(both, 1500) == pytest.approx(8, rel=0.02 + slack)
    for name in ("wifi", "lte"):
        assert 2 < mbps(sent[name].arrived, 1500) < 6


@measured.of("flooded")
def test_mahimahi_trace_sets_the_rate(flooded: Flooded) -> None:
    lab, sent, _ = flooded
    slack = held_up_s(lab, sent["trace"]) / FLOOD_S
    assert mbps(sent["trace"].arrived, 1500) == pytest.approx(6, rel=0.02 + slack)


@measured.of("flooded")
def test_small_packets_share_an_opportunity(flooded: Flooded) -> None:
    lab, sent, _ = flooded
    slack = held_up_s(lab, sent["small"]) / FLOOD_S
    assert mbps(sent["small"].arrived, 300) == pytest.approx(6, rel=0.02 + slack)


@measured.of("flooded")
def test_steps_are_followed_over_the_loop(flooded: Flooded) -> None:
    lab, sent, _ = flooded
    offset_ns = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns()
    times_s = [(at - offset_ns - lab.t0_ns) / 1e9 for _, at in sorted(sent["steps"].arrived)]
    seconds = Counter(int(at * 2) for at in times_s)  # halves of a second since t0
    first, last = int(times_s[0] * 2) + 1, int(times_s[0] * 2 + FLOOD_S * 2) - 1
    rates = {half: seconds[half] * 1500 * 8 / 0.5e6 for half in range(first, last)}
    assert len(rates) >= 3
    slack = 8 * held_up_s(lab, sent["steps"]) / 0.5
    for half, rate in rates.items():
        assert rate == pytest.approx(4 if half % 4 < 2 else 8, abs=0.1 + slack), rates


@measured.of("flooded")
def test_no_packet_is_unaccounted_for(flooded: Flooded) -> None:
    lab, sent, _ = flooded
    stages = lab.stats["stages"]
    assert lab.stats["unmatched"] == 0
    assert lab.stats["write_errors"] == 0
    in_log = Counter((row[0], row[2], row[3]) for row in lab.log if row[0] in "DL")
    stage_of = {"wifi": "shared", "lte": "shared"}
    for index, (name, flow) in enumerate(sent.items()):
        stage = stage_of.get(name, name)
        path = stages[stage]["paths"][str(index)]
        pings = 5 if stage == "shared" else 0
        assert path["packets"] == len(flow.arrived) + pings
        assert path["packets"] + path["drops"] + path["losses"] == flow.sent + pings
        assert path["drops"] == in_log["D", stage, str(index)]
        assert path["losses"] == in_log["L", stage, str(index)]
    assert stages["shared"]["queue_drops"] > 100
    assert stages["lossy"]["queue_drops"] == 0


@measured.of("flooded")
def test_queue_holds_what_it_may_and_no_more(flooded: Flooded) -> None:
    lab, sent, _ = flooded
    shared = [row for row in lab.log if row[2] == "shared"]
    for row in shared:
        packets, size = int(row[-2]), int(row[-1])
        assert packets <= 50
        if row[0] == "D":
            assert (packets, size) == (50, 75000)
    assert any(row[0] == "Q" for row in shared)
    # Once the queue is full, a packet waits for the 50 before it and its own service: 51 * 1.5 ms
    delays_ms = [(at - sent["wifi"].sent_ns[i]) / 1e6 for i, at in sent["wifi"].arrived[-100:]]
    slack_s = held_up_s(lab, sent["wifi"], sent["lte"])
    assert sorted(delays_ms)[50] == pytest.approx(10 + 51 * 1.5, abs=3 + 1e3 * slack_s)
    paths = lab.stats["stages"]["shared"]["paths"]
    least_s = 0.05 * max(0.2, 1 - slack_s / FLOOD_S)
    assert least_s < paths["0"]["queue_delay_s"] / paths["0"]["packets"] < 0.075


@measured.of("flooded")
def test_loss_rate_and_seed(flooded: Flooded, make_lab: MakeLab) -> None:
    lost = flooded[1]["lossy"]
    count = lost.sent - len(lost.arrived)
    sigma = (lost.sent * 0.05 * 0.95) ** 0.5
    assert abs(count - lost.sent * 0.05) < 4 * sigma
    again = make_lab("stage lossy loss=0.05 seed=7\npath wifi srv stages=lossy\n")
    again.address([SERVER])
    repeated = {"lossy": Flow("10.0.1.1", SERVER, 100, 2000)}
    flood(again, repeated, 0.5)
    again.finish()
    arrived = {number for number, _ in repeated["lossy"].arrived}
    assert 0 < len(arrived) < repeated["lossy"].sent
    assert arrived == {i for i, _ in lost.arrived if i < repeated["lossy"].sent}


@measured.of("flooded")
def test_jitter_keeps_order_and_bounds(flooded: Flooded) -> None:
    lab, sent, _ = flooded
    flow = sent["jitter"]
    assert [i for i, _ in flow.arrived] == list(range(flow.sent))
    delays_ms = sorted((at - flow.sent_ns[i]) / 1e6 for i, at in flow.arrived)
    assert delays_ms[0] >= 9.97  # released together with a neighbour: at most 20 us early
    assert delays_ms[0] < 11.5
    assert 14 < delays_ms[len(delays_ms) * 95 // 100] < 16 + 1e3 * held_up_s(lab, flow)


@measured.of("flooded")
def test_lateness_is_small_and_counted(flooded: Flooded) -> None:
    lateness = flooded[0].stats["lateness_us"]
    forwarded = sum(len(flow.arrived) for flow in flooded[1].values())
    assert lateness["count"] == forwarded + 20  # ten pings there and back
    assert 0 <= lateness["p50"] <= lateness["p99"] <= lateness["max"]
    assert lateness["p50"] < 1000


@measured.of("flooded")
def test_stats_name_paths_as_the_config_does(flooded: Flooded) -> None:
    paths = flooded[0].stats["paths"]
    assert paths[1] == {
        "from": "lte",
        "to": "srv",
        "src": None,
        "dst": SERVER,
        "stages": ["l_up", "shared"],
    }
