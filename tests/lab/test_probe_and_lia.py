"""The probe and the coupled congestion control, on MPTCP over the link emulator."""

from __future__ import annotations

import csv
import os
import select
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import measured
import pytest
from measured import Measured
from native_lab import IPPROTO_MPTCP, PATIENCE_S, SERVER, Lab, MakeLab, inside, shell

from data.lab import coupled

pytestmark = pytest.mark.kernel

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


@dataclass
class Uploaded:
    """The probe's rows of a Reno, a LIA and an MP-CDG connection, and when they were made."""

    rows: list[dict[str, str]]
    begun_s: float
    ended_s: float


@pytest.fixture(scope="module")
def uploaded(mptcp: None, make_lab: MakeLab, programs: dict[str, Path]) -> Measured[Uploaded]:
    return Measured(lambda: measure(make_lab, programs))


def measure(make_lab: MakeLab, programs: dict[str, Path]) -> Uploaded:
    begun_s = time.monotonic()
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
    for control, name in coupled.COUPLED.items():
        coupled.ensure(programs[control], name)  # it stays, as labs may use it
    out = lab.folder / "probe.csv"
    inum = str(os.stat(f"/run/netns/{lab.client}").st_ino)
    probe = subprocess.Popen(
        [str(programs["probe"]), "--netns", inum, "--port", "5000", "--sender", "--out", str(out)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert probe.stdout is not None
    assert probe.stdout.readline() == "ready\n"
    upload(lab, ["reno", *coupled.COUPLED.values()], UPLOAD_S)
    time.sleep(1)  # the closing handshakes
    probe.terminate()
    assert probe.wait(timeout=PATIENCE_S) == 0
    lab.finish()
    text = out.read_text()
    assert text.endswith("#lost=0\n")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return Uploaded(list(csv.DictReader(lines)), begun_s, time.monotonic())


def learn_route_metrics(lab: Lab) -> None:
    """A route's ssthresh counts from the second connection between two addresses on."""
    with inside(lab.server):
        listener = socket.create_server((SERVER, 5001))
    for source in ("10.0.1.1", "10.0.2.1"):
        with inside(lab.client):
            sender = socket.create_connection((SERVER, 5001), PATIENCE_S, (source, 0))
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


@measured.of("uploaded")
def test_probe_tells_connections_and_subflows_apart(uploaded: Uploaded) -> None:
    connections = by_connection(uploaded.rows)
    assert len(connections) == 3
    for rows in connections:
        assert {row["dport"] for row in rows} == {"5000"}
        ports = {(row["sfid"], row["sport"], row["cookie"]) for row in rows if row["sfid"] != "0"}
        assert len(ports) == 2
        assert {sfid for sfid, _, _ in ports} == {"1", "2"}


@measured.of("uploaded")
def test_probe_reads_clock_rtt_and_sequence(uploaded: Uploaded) -> None:
    for rows in by_connection(uploaded.rows):
        assert all(uploaded.begun_s < float(row["ts"]) < uploaded.ended_s for row in rows)
        assert all(len(row["ts"].split(".")[1]) == 9 for row in rows)
        rtts_ms = sorted(int(row["rtt_us"]) / 1e3 for row in rows if row["rtt_us"] != "0")
        # No ACK comes sooner than the links let it; how much later, a busy machine has a say in.
        # In another unit it would be a thousandth or a thousandfold, as the kernel keeps a
        # smoothed one (eighths) the eightfold.
        assert 39.9 <= rtts_ms[0] < 60
        assert rtts_ms[len(rtts_ms) // 2] < 160
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


@measured.of("uploaded")
def test_lia_grows_as_half_a_reno_where_two_renos_grow_as_two(
    uploaded: Uploaded,
) -> None:
    reno, lia, mpcdg = (growth_per_round(rows) for rows in by_connection(uploaded.rows))
    # Reno: one packet a round and subflow. LIA (RFC 6356) with two alike: alpha / total is
    # 1 / (4 cwnd), a quarter of a packet each.
    assert 1.6 < reno < 2.15
    assert 0.35 < lia < 0.65
    # MP-CDG grows as LIA, but for what it gives up when round-trip times rise on a busy machine.
    assert mpcdg < 0.65
