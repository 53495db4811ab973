"""Queues of the link emulator that a policy runs: what it sees, and what it drops."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import measured
import numpy as np
import pytest
from export_trees import written
from measured import Measured
from native_lab import SERVER, MakeLab, inside

from data.errors import UserError
from data.lab.build import NATIVE
from export.params import Options
from pipelines.drive.others import queue_tree
from pipelines.sources import open_source

pytestmark = pytest.mark.kernel

DATAGRAM = 972  # 1000 bytes with IPv4 and UDP
RATE_MBPS, PER_S = 4, 1000  # twice what the link carries
FULL = 40
POLICY = """\
#include <stdio.h>
#include "aqm.h"
static int drops(void *memory, const struct aqm_seen *seen)
{
	FILE *out = fopen(NOTES, "a");
	fprintf(out, "%ld %ld %ld\\n", seen->queue_packets, seen->dequeue_rate, seen->queue_delay_us);
	fclose(out);
	return seen->queue_packets > LIMIT;
}
const struct aqm_policy aqm_policy = {50000, 0, drops};
"""


@pytest.fixture(scope="module")
def flooded(make_lab: MakeLab, tmp_path_factory: pytest.TempPathFactory) -> Measured[Any]:
    folder = tmp_path_factory.mktemp("queues")
    (folder / "hand.c").write_text(POLICY)
    defines = [f'-DNOTES="{folder / "notes"}"', f"-DLIMIT={FULL}"]
    command = ["cc", "-shared", "-fPIC", "-w", f"-I{NATIVE}", *defines, str(folder / "hand.c")]
    subprocess.run([*command, "-o", str(folder / "hand.so")], check=True)
    bundle = written(open_source("macc-aqm-tree", Options()), folder / "tree")
    tree = queue_tree(str(bundle), folder)
    return Measured(lambda: flood(make_lab, folder, tree))


def flood(make_lab: MakeLab, folder: Path, tree: Path) -> dict[str, Any]:
    notes = folder / "notes"
    notes.unlink(missing_ok=True)
    queue = f"rate_mbps={RATE_MBPS} queue_packets=1000"
    lab = make_lab(
        f"stage hand {queue} policy={folder / 'hand.so'}\n"
        f"stage tree {queue} policy={tree}\n"
        "path wifi srv stages=hand\npath lte srv stages=tree\n"
    )
    lab.address([SERVER])
    with inside(lab.client):
        senders = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
        for table, sender in enumerate(senders, start=1):
            sender.bind((f"10.0.{table}.1", 0))
    begun = time.monotonic()
    for number in range(PER_S):
        for sender in senders:
            sender.sendto(bytes(DATAGRAM), (SERVER, 9))
        time.sleep(max(0.0, begun + number / PER_S - time.monotonic()))
    for sender in senders:
        sender.close()
    time.sleep(0.1)
    lab.finish()
    seen = np.array([line.split() for line in notes.read_text().splitlines()], np.int64)
    return {"stages": lab.stats["stages"], "seen": seen}


@measured.of("flooded")
def test_policy_sees_its_queue(flooded: dict[str, Any]) -> None:
    packets, rate, delay_us = flooded["seen"].T
    busy = packets > 5
    assert busy.sum() > 5
    # 4 Mbit/s are 500 packets a second, 2 ms each.
    assert 300 < np.median(rate[busy]) < 700
    waits = delay_us[busy] / 2000.0
    assert np.all((packets[busy] <= waits) & (waits <= packets[busy] + 1))


@measured.of("flooded")
def test_policy_drops_all_until_it_keeps_again(flooded: dict[str, Any]) -> None:
    hand = flooded["stages"]["hand"]
    assert hand["policy_decisions"] == len(flooded["seen"])
    assert 100 < hand["policy_drops"] <= hand["queue_drops"]
    assert hand["forwarded_packets"] + hand["queue_drops"] == PER_S
    # In one interval 50 come; above the limit none comes until the next one's end.
    assert flooded["seen"][:, 0].max() <= FULL + 60


@measured.of("flooded")
def test_released_tree_runs_a_queue_and_keeps_all(flooded: dict[str, Any]) -> None:
    tree = flooded["stages"]["tree"]
    assert tree["policy_decisions"] >= 5
    assert tree["policy_drops"] == tree["queue_drops"] == 0


def test_tree_that_runs_no_queue_is_refused(tmp_path: Path) -> None:
    sender = written(open_source("macc-tcp-tree", Options()), tmp_path / "sender")
    with pytest.raises(UserError, match="runs no queue"):
        queue_tree(str(sender), tmp_path)
