"""The lab's native programs against physical laws: delay, rate, conservation of packets."""

from __future__ import annotations

import contextlib
import csv
import ctypes
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from data.errors import UserError
from data.lab.build import build

CLONE_NEWNET = 0x40000000
SO_TIMESTAMPNS, SO_RCVBUFFORCE = 35, 33
IPPROTO_MPTCP = 262
HEADER_BYTES = 28  # IPv4 and UDP
FLOOD_S = 2.6
SERVER = "10.0.9.1"


def why_not() -> str | None:
    if os.geteuid():
        return "needs root (network namespaces)"
    if not Path("/dev/net/tun").exists():
        return "needs /dev/net/tun"
    if not shutil.which("ip") or not shutil.which("ping"):
        return "needs iproute2 and iputils-ping: apt-get install -y iproute2 iputils-ping"
    try:
        build()
    except UserError as error:
        return str(error)
    return None


@pytest.fixture(scope="module")
def programs() -> dict[str, Path]:
    reason = why_not()
    if reason:
        print(f"tests/lab/test_native.py not run: {reason}")
        pytest.skip(reason)
    return build()


def shell(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def inside(netns: str) -> Iterator[None]:
    """Sockets made in here belong to the namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{netns}") as there:
        assert libc.setns(there.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        try:
            yield
        finally:
            assert libc.setns(home.fileno(), CLONE_NEWNET) == 0


@dataclass
class Lab:
    """Client with two interfaces, server with one, and the klink between them."""

    folder: Path
    client: str
    server: str
    klink: subprocess.Popen[str]
    log: list[list[str]] = field(default_factory=list)
    t0_ns: int = 0
    stats: dict[str, object] = field(default_factory=dict)

    def address(self, server_addresses: list[str], route_options: tuple[str, ...] = ()) -> None:
        for table, device in (("1", "wifi"), ("2", "lte")):
            own = f"10.0.{table}.1"
            shell("ip", "-n", self.client, "addr", "add", f"{own}/32", "dev", device)
            shell("ip", "-n", self.client, "rule", "add", "from", own, "table", table)
            route = ["default", "dev", device, "src", own, *route_options]
            shell("ip", "-n", self.client, "route", "add", *route, "table", table)
        shell("ip", "-n", self.client, "route", "add", "default", "dev", "wifi", *route_options)
        for own in server_addresses:
            shell("ip", "-n", self.server, "addr", "add", f"{own}/32", "dev", "srv")
        shell("ip", "-n", self.server, "route", "add", "default", "dev", "srv")

    def sysctl(self, *settings: str) -> None:
        for netns in (self.client, self.server):
            shell("ip", "netns", "exec", netns, "sysctl", "-qw", *settings)

    def finish(self) -> None:
        """Ends klink and reads what it wrote."""
        self.klink.send_signal(signal.SIGTERM)
        _, errors = self.klink.communicate(timeout=10)
        assert self.klink.returncode == 0, errors
        first, *rest = (self.folder / "log").read_text().splitlines()
        self.t0_ns = int(first.removeprefix("#t0_mono_ns="))
        self.log = [line.split(",") for line in rest]
        self.stats = json.loads((self.folder / "stats").read_text())


def start_klink(folder: Path, programs: dict[str, Path], config: str) -> subprocess.Popen[str]:
    (folder / "config").write_text(config)
    command = [str(programs["klink"]), str(folder / "config"), "--fifo", "50"]
    command += ["--log", str(folder / "log"), "--stats", str(folder / "stats")]
    klink = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    )
    assert klink.stdout is not None
    line = klink.stdout.readline()
    if line != "ready\n":
        raise AssertionError(klink.communicate(timeout=5)[1])
    return klink


MakeLab = Callable[[str], Lab]


@pytest.fixture(scope="module")
def make_lab(
    programs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MakeLab]:
    made: list[Lab] = []
    names: list[str] = []

    def make(stages_and_paths: str) -> Lab:
        folder = tmp_path_factory.mktemp("lab")
        netns = [f"czn_t{os.getpid()}_{len(made)}{role}" for role in "cs"]
        for name in netns:
            shell("ip", "netns", "add", name)
            names.append(name)
            shell("ip", "-n", name, "link", "set", "lo", "up")
        config = f"netns c /run/netns/{netns[0]}\nnetns s /run/netns/{netns[1]}\n"
        config += "tun wifi c\ntun lte c\ntun srv s\n" + stages_and_paths
        lab = Lab(folder, *netns, start_klink(folder, programs, config))
        made.append(lab)
        return lab

    yield make
    for lab in made:
        if lab.klink.poll() is None:
            lab.klink.kill()
            lab.klink.wait()
    for name in names:
        shell("ip", "netns", "del", name)


# --- datagrams: rates, losses, order ---------------------------------------------------------

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
    time.sleep(0.5)  # the longest queue empties
    while ready := select.select(receivers, [], [], 0)[0]:
        for receiver in ready:
            data, ancillary, _, _ = receiver.recvmsg(2048, 64)
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
            index, number = struct.unpack_from("!BI", data)
            every[index].arrived.append((number, seconds * 10**9 + nanoseconds))
    for one in senders + receivers:
        one.close()


@pytest.fixture(scope="module")
def flooded(
    make_lab: MakeLab, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Lab, dict[str, Flow], str]:
    folder = tmp_path_factory.mktemp("rates")
    (folder / "trace").write_text("2")  # one opportunity each 2 ms: 6 Mbps
    (folder / "steps").write_text("0 4\n1 8\n")  # loops after 2 s
    lab = make_lab(FLOOD_CONFIG.format(folder=folder))
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


def mbps(flow_arrivals: list[tuple[int, int]], ip_bytes: int) -> float:
    """Rate between the first and the last arrival."""
    times = sorted(time_ns for _, time_ns in flow_arrivals)
    return (len(times) - 1) * ip_bytes * 8e3 / (times[-1] - times[0])


pytestmark = pytest.mark.kernel
Flooded = tuple[Lab, dict[str, Flow], str]


def test_ping_takes_the_sum_of_the_delays(flooded: Flooded) -> None:
    rtts = [float(text) for text in re.findall(r"time=([0-9.]+) ms", flooded[2])]
    assert len(rtts) == 10, flooded[2]
    # 84 bytes take 0.084 ms at 8 Mbps, one way
    assert 20.08 <= min(rtts[:5]) <= 21.0
    assert 50.08 <= min(rtts[5:]) <= 51.0


def test_shared_stage_divides_its_rate(flooded: Flooded) -> None:
    _, sent, _ = flooded
    both = sent["wifi"].arrived + sent["lte"].arrived
    assert mbps(both, 1500) == pytest.approx(8, rel=0.02)
    for name in ("wifi", "lte"):
        assert 2 < mbps(sent[name].arrived, 1500) < 6


def test_mahimahi_trace_sets_the_rate(flooded: Flooded) -> None:
    _, sent, _ = flooded
    assert mbps(sent["trace"].arrived, 1500) == pytest.approx(6, rel=0.02)


def test_small_packets_share_an_opportunity(flooded: Flooded) -> None:
    _, sent, _ = flooded
    assert mbps(sent["small"].arrived, 300) == pytest.approx(6, rel=0.02)


def test_steps_are_followed_over_the_loop(flooded: Flooded) -> None:
    lab, sent, _ = flooded
    offset_ns = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns()
    times_s = [(at - offset_ns - lab.t0_ns) / 1e9 for _, at in sorted(sent["steps"].arrived)]
    seconds = Counter(int(at * 2) for at in times_s)  # halves of a second since t0
    first, last = int(times_s[0] * 2) + 1, int(times_s[0] * 2 + FLOOD_S * 2) - 1
    rates = {half: seconds[half] * 1500 * 8 / 0.5e6 for half in range(first, last)}
    assert len(rates) >= 3
    for half, rate in rates.items():
        assert rate == pytest.approx(4 if half % 4 < 2 else 8, abs=0.1), rates


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
    assert sorted(delays_ms)[50] == pytest.approx(10 + 51 * 1.5, abs=3)
    paths = lab.stats["stages"]["shared"]["paths"]
    assert 0.05 < paths["0"]["queue_delay_s"] / paths["0"]["packets"] < 0.075


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


def test_jitter_keeps_order_and_bounds(flooded: Flooded) -> None:
    flow = flooded[1]["jitter"]
    assert [i for i, _ in flow.arrived] == list(range(flow.sent))
    delays_ms = sorted((at - flow.sent_ns[i]) / 1e6 for i, at in flow.arrived)
    assert delays_ms[0] >= 9.97  # released together with a neighbour: at most 20 us early
    assert delays_ms[0] < 11.5
    assert 14 < delays_ms[len(delays_ms) * 95 // 100] < 16


def test_lateness_is_small_and_counted(flooded: Flooded) -> None:
    lateness = flooded[0].stats["lateness_us"]
    forwarded = sum(len(flow.arrived) for flow in flooded[1].values())
    assert lateness["count"] == forwarded + 20  # ten pings there and back
    assert 0 <= lateness["p50"] <= lateness["p99"] <= lateness["max"]
    assert lateness["p50"] < 1000


# --- MPTCP: the probe and LIA ----------------------------------------------------------------

MPTCP_CONFIG = """\
stage w_up delay_ms=20
stage l_up delay_ms=20
stage w_down delay_ms=20
stage l_down delay_ms=20
path wifi srv stages=w_up
path lte srv stages=l_up
path srv wifi dst=10.0.1.1 stages=w_down
path srv lte dst=10.0.2.1 stages=l_down
"""
START_WINDOW = 20  # packets: slow start ends there, by the routes' metric
UPLOAD_S = 2.6


def upload(lab: Lab, controls: list[str], duration_s: float) -> None:
    """One MPTCP connection to port 5000 for each congestion control, all at once."""
    with inside(lab.server):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((SERVER, 5000))
        listener.listen()
    ends = []
    for control in controls:
        with inside(lab.client):
            sender = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        sender.bind(("10.0.1.1", 0))
        sender.connect((SERVER, 5000))
        receiver = listener.accept()[0]
        sender.setblocking(False)
        receiver.setblocking(False)
        ends.append((sender, receiver))
    data = bytes(1 << 18)
    senders, receivers = [pair[0] for pair in ends], [pair[1] for pair in ends]
    begin = time.monotonic()
    while time.monotonic() < begin + duration_s:
        readable, writable, _ = select.select(receivers, senders, [], 0.1)
        for one in readable:
            one.recv(1 << 20)
        for one in writable:
            one.send(data)
    for one in [*senders, *receivers, listener]:
        one.close()


@pytest.fixture(scope="module")
def uploaded(make_lab: MakeLab, programs: dict[str, Path]) -> list[dict[str, str]]:
    """The probe's rows of one Reno and one LIA connection."""
    lab = make_lab(MPTCP_CONFIG)
    lab.address([SERVER], ("ssthresh", "lock", str(START_WINDOW)))
    lab.sysctl(
        "net.ipv4.tcp_no_ssthresh_metrics_save=0",
        "net.ipv4.tcp_rmem=4096 4194304 8388608",
        "net.ipv4.tcp_wmem=4096 4194304 8388608",
    )
    for netns in (lab.client, lab.server):
        shell(*f"ip -n {netns} mptcp limits set subflow 4 add_addr_accepted 4".split())
    shell(*f"ip -n {lab.client} mptcp endpoint add 10.0.2.1 dev lte subflow".split())
    learn_route_metrics(lab)
    if "bpf_lia" not in shell("bpftool", "struct_ops", "list"):  # it stays, as labs may use it
        subprocess.run(
            ["bpftool", "struct_ops", "register", str(programs["lia"])], capture_output=True
        )
    out = lab.folder / "probe.csv"
    inum = str(os.stat(f"/run/netns/{lab.client}").st_ino)
    probe = subprocess.Popen(
        [str(programs["probe"]), "--netns", inum, "--port", "5000", "--sender", "--out", str(out)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert probe.stdout is not None
    assert probe.stdout.readline() == "ready\n"
    upload(lab, ["reno", "bpf_lia"], UPLOAD_S)
    time.sleep(1)  # the closing handshakes
    probe.terminate()
    assert probe.wait(timeout=10) == 0
    lab.finish()
    text = out.read_text()
    assert text.endswith("#lost=0\n")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def learn_route_metrics(lab: Lab) -> None:
    """A route's ssthresh counts from the second connection between two addresses on."""
    with inside(lab.server):
        listener = socket.create_server((SERVER, 5001))
    for source in ("10.0.1.1", "10.0.2.1"):
        with inside(lab.client):
            sender = socket.create_connection((SERVER, 5001), 5, (source, 0))
        receiver = listener.accept()[0]
        sender.sendall(b"x")
        assert receiver.recv(1) == b"x"
        sender.close()
        assert receiver.recv(1) == b""
        receiver.close()
    listener.close()
    time.sleep(0.1)


def by_connection(rows: list[dict[str, str]]) -> list[list[dict[str, str]]]:
    """Rows of ACKs, one list for each token, in order of appearance."""
    tokens: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        if row["ev"] == "probe" and row["token"] != "00000000":
            tokens.setdefault(row["token"], []).append(row)
    return list(tokens.values())


def test_probe_tells_connections_and_subflows_apart(uploaded: list[dict[str, str]]) -> None:
    connections = by_connection(uploaded)
    assert len(connections) == 2
    for rows in connections:
        assert {row["dport"] for row in rows} == {"5000"}
        ports = {(row["sfid"], row["sport"], row["cookie"]) for row in rows if row["sfid"] != "0"}
        assert len(ports) == 2
        assert {sfid for sfid, _, _ in ports} == {"1", "2"}


def test_probe_reads_clock_rtt_and_sequence(uploaded: list[dict[str, str]]) -> None:
    now_s = time.monotonic()
    for rows in by_connection(uploaded):
        assert all(now_s - 60 < float(row["ts"]) < now_s for row in rows)
        assert all(len(row["ts"].split(".")[1]) == 9 for row in rows)
        rtts_ms = sorted(int(row["rtt_us"]) / 1e3 for row in rows if row["rtt_us"] != "0")
        assert 39.9 <= rtts_ms[0] <= 41
        assert rtts_ms[len(rtts_ms) // 2] < 43
        for sfid in ("1", "2"):
            mine = [row for row in rows if row["sfid"] == sfid]
            acked = (int(mine[-1]["ack_seq"]) - int(mine[0]["ack_seq"])) % 2**32
            delivered = int(mine[-1]["delivered"]) - int(mine[0]["delivered"])
            assert len(mine) > 100
            assert acked == pytest.approx(delivered * 1420, rel=0.1)


def growth_per_round(rows: list[dict[str, str]]) -> float:
    """Packets by which both windows together grow in a round (a window's worth of ACKs).

    Counted after the second subflow has left slow start. Rounds rather than seconds, so that a
    sender kept from running by a busy machine changes nothing.
    """
    begin = min(float(row["ts"]) for row in rows if row["sfid"] == "2") + 0.5
    end = begin + UPLOAD_S - 0.9
    total = 0.0
    for sfid in ("1", "2"):
        mine = [row for row in rows if row["sfid"] == sfid and begin < float(row["ts"]) < end]
        delivered = [int(row["delivered"]) for row in mine]
        windows = [int(row["cwnd"]) for row in mine]
        rounds = sum(
            (after - before) / window
            for before, after, window in zip(delivered, delivered[1:], windows, strict=False)
        )
        total += (windows[-1] - windows[0]) / rounds
    return total


def test_lia_grows_as_half_a_reno_where_two_renos_grow_as_two(
    uploaded: list[dict[str, str]],
) -> None:
    reno, lia = (growth_per_round(rows) for rows in by_connection(uploaded))
    # Reno: one packet a round and subflow. LIA (RFC 6356) with two alike: alpha / total is
    # 1 / (4 cwnd), a quarter of a packet each.
    assert 1.6 < reno < 2.15
    assert 0.35 < lia < 0.65


def test_stats_name_paths_as_the_config_does(flooded: Flooded) -> None:
    paths = flooded[0].stats["paths"]
    assert paths[1] == {
        "from": "lte",
        "to": "srv",
        "src": None,
        "dst": SERVER,
        "stages": ["l_up", "shared"],
    }


def test_a_missing_compiler_comes_with_the_line_that_mends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needed = {"no-such-compiler": "clang-99"}
    monkeypatch.setattr("data.lab.build.REQUIREMENTS", needed)
    with pytest.raises(UserError, match=r"no-such-compiler.*apt-get install -y clang-99"):
        build(force=True)


# --- messages --------------------------------------------------------------------------------

BAD_CONFIGS = {
    "tun wifi c": "line 1: no netns 'c' was named above",
    "netns c /nowhere\ntun wifi c\npath wifi wifi": "line 2: open netns c (/nowhere): No such file",
    "stage a rate_mbps=fast": "line 1: rate_mbps=fast is not a number",
    "stage a queue_packets=3": "line 1: stage a: a queue needs a rate",
    "# nothing\nstage a rate=3": "line 2: stage a: unknown key 'rate'",
    "stage a trace=/nowhere": "line 1: stage a: open /nowhere: No such file",
    "link a": "line 1: unknown directive 'link'",
    "netns c /x\ntun d c\nstage a\npath d e": "line 4: no tun 'e' was named above",
    "netns c /x\ntun d c\npath d d stages=q": "line 3: no stage 'q' was named above",
    "netns c /x\nnetns s /y\ntun d c\ntun d s\npath d d": "line 5: several devices are named 'd'",
    "netns c /x\ntun d c\npath d d src=1.2.3": "line 3: src=1.2.3 is not an IPv4 address",
    "stage a": "no path",
}


@pytest.mark.parametrize("config", BAD_CONFIGS)
def test_errors_say_where_and_what(config: str, programs: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "config").write_text(config + "\n")
    done = subprocess.run(
        [str(programs["klink"]), "config", "--log", "log", "--stats", "stats"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=10,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("klink: ")
    assert BAD_CONFIGS[config] in done.stderr
