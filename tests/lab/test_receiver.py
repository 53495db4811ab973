"""Nuwa's receiver in the kernel: the sender keeps to the window that is written into ACKs."""

from __future__ import annotations

import select
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import measured
import numpy as np
import pytest
from export_trees import written
from measured import Measured
from native_lab import SERVER, MakeLab, inside

from data.errors import UserError
from data.lab import receiver
from data.lab.registered import bpftool
from export.bpf.curve import header
from export.params import Options
from export.tanh import tanh_curve
from features.derived import ONE
from pipelines.drive.others import receiver_tree
from pipelines.sources import open_source

pytestmark = pytest.mark.kernel

LINK = """\
stage up rate_mbps=10 queue_packets=400 delay_ms=10
stage down delay_ms=10
path wifi srv stages=up
path srv wifi stages=down
"""
CURVE = tanh_curve(12, 12, 4097)
TARGETS_MS = (15.0, 40.0)
PART_S = 2.5


@dataclass
class Received:
    """RTTs that the sender saw in each part, in ms, and what the receiver knew at the end."""

    rtts_ms: dict[float, list[float]] = field(default_factory=dict)
    bytes: dict[float, int] = field(default_factory=dict)
    flow: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)


@pytest.fixture(scope="module")
def received(make_lab: MakeLab, tmp_path_factory: pytest.TempPathFactory) -> Measured[Received]:
    return Measured(lambda: receive(make_lab, tmp_path_factory.mktemp("receiver")))


@pytest.fixture(scope="module")
def tuned(make_lab: MakeLab, tmp_path_factory: pytest.TempPathFactory) -> Measured[Received]:
    folder = tmp_path_factory.mktemp("tuned")
    bundle = str(written(open_source("nuwa-rl-tree", Options()), folder / "tree"))
    policy = receiver_tree(bundle, folder)
    return Measured(lambda: receive(make_lab, folder, policy, TARGETS_MS[:1]))


def receive(
    make_lab: MakeLab,
    folder: Path,
    policy: tuple[Path, str] | tuple[()] = (),
    targets_ms: tuple[float, ...] = TARGETS_MS,
) -> Received:
    found = Received()
    lab = make_lab(LINK)
    lab.address([SERVER])
    lab.sysctl("net.ipv4.tcp_wmem=4096 4194304 8388608", "net.ipv4.tcp_rmem=4096 4194304 8388608")
    program = receiver.compiled(header(CURVE, "nuwa_tanh"), folder, *policy)
    with receiver.attached(program, lab.server, "srv", folder) as at, inside(lab.server):
        at.set(TARGETS_MS[0], 3.0, 5000)
        listener = socket.create_server((SERVER, 5000))
        with inside(lab.client):
            sender = socket.socket()
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
            sender.setblocking(False)
            sender.connect_ex((SERVER, 5000))
        one = listener.accept()[0]
        for target_ms in targets_ms:
            at.set(target_ms, 3.0, 5000)
            rtts: list[float] = []
            found.bytes[target_ms] = 0
            begin = time.monotonic()
            while (now := time.monotonic()) < begin + PART_S:
                readable, writable, _ = select.select([one], [sender], [], 0.05)
                if readable:
                    found.bytes[target_ms] += len(one.recv(1 << 18))
                if writable:
                    sender.send(bytes(1 << 16))
                if now > begin + PART_S / 2:
                    # tcpi_rtt, in us
                    info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
                    rtts.append(int.from_bytes(info[68:72], "little") / 1e3)
            found.rtts_ms[target_ms] = rtts
        found.flow = at.flows()[0]
        if policy:
            dumped = bpftool("map", "dump", "pinned", str(at.pins / "tree_memories"))
            found.memory = dumped[0]["formatted"]["value"]
        sender.close()
        one.close()
        listener.close()
        time.sleep(0.3)
    lab.finish()
    return found


@measured.of("received")
def test_queueing_delay_goes_to_its_target(received: Received) -> None:
    for target_ms in TARGETS_MS:
        queueing = np.median(received.rtts_ms[target_ms]) - 20
        assert 0.4 * target_ms < queueing < 1.6 * target_ms
        assert received.bytes[target_ms] > 0.6 * 10e6 / 8 * PART_S


@measured.of("received")
def test_windows_are_written_into_acks(received: Received) -> None:
    flow = received.flow
    assert flow["on"] == 1
    assert flow["unread"] == 0
    assert flow["rewritten"] > 100
    assert flow["granted"] < flow["own_window"]
    # What a path of 10 Mbit/s holds at 20 ms and the target's queue.
    held = 10e6 / 8 * (20 + TARGETS_MS[-1]) / 1e3
    assert 0.6 * held < flow["granted"] < 1.6 * held


@measured.of("tuned")
def test_tree_chooses_k_of_a_flow(tuned: Received) -> None:
    flow, memory = tuned.flow, tuned.memory
    # Every 100 ms from the first segment beyond T_d on.
    assert 8 <= flow["decisions"] <= 10 * PART_S
    assert memory["count"] >= flow["decisions"]  # read later
    assert 1000 <= flow["gain_milli"] <= 9000
    # What the ring keeps: queueing delay over T_d, data over its peak, k in thousandths.
    over_target, over_peak, gains = np.array(memory["ring"][: min(32, memory["count"])]).T
    assert ((over_peak > 0) & (over_peak <= ONE)).all()
    assert ((gains >= 1000) & (gains <= 9000)).all()
    assert over_target.max() > ONE / 4
    # The sender's own RTTs say the same of the queue.
    queueing_us = 1e3 * (np.median(tuned.rtts_ms[TARGETS_MS[0]]) - 20)
    assert 0.2 * queueing_us < flow["mean_us"] < 5 * queueing_us + 5000


def test_tree_of_another_schema_chooses_no_k(programs: dict[str, Path], tmp_path: Path) -> None:
    bundle = str(written(open_source("nuwa-rl-tree", Options()), tmp_path / "tree"))
    policy, _ = receiver_tree(bundle, tmp_path)
    with pytest.raises(UserError, match="schema hash differs"):
        receiver.compiled(header(CURVE, "nuwa_tanh"), tmp_path, policy, "5d" * 32)
    sender = str(written(open_source("macc-tcp-tree", Options()), tmp_path / "sender"))
    with pytest.raises(UserError, match="no receiver's"):
        receiver_tree(sender, tmp_path)


def test_table_in_the_kernel_is_the_curve(tmp_path: Path) -> None:
    source = "#include <stdio.h>\n#include <stdint.h>\ntypedef uint32_t __u32;\n"
    source += "typedef uint64_t __u64;\ntypedef int64_t __s64;\n#define __always_inline inline\n"
    source += header(CURVE, "nuwa_tanh")
    source += "int main(void) { for (__u64 x = 0; x < 70000; x++)"
    source += ' printf("%lld\\n", (long long)nuwa_tanh(x)); }\n'
    (tmp_path / "all.c").write_text(source)
    command = ["gcc", "-O1", "-Wno-unused", str(tmp_path / "all.c"), "-o", str(tmp_path / "all")]
    subprocess.run(command, check=True)
    out = subprocess.run([tmp_path / "all"], check=True, capture_output=True, text=True).stdout
    np.testing.assert_array_equal(
        np.array(out.split(), np.int64), CURVE.at(np.arange(70_000, dtype=np.int64))
    )
