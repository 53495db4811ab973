"""The congestion control that an agent drives, and what becomes of a flow whose agent is gone."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import measured
import numpy as np
import pytest
from measured import Measured
from native_lab import PATIENCE_S, SERVER, MakeLab
from uploads import HELD, LINK, Upload, decided_inside, proxy

from data.lab import follow
from data.lab.build import NATIVE
from data.lab.registered import bpftool
from data.lab.reports import (
    ALONE,
    DRIVEN,
    HEADER,
    HELLO,
    REPORT,
    START,
    WINDOW,
    answer,
    hello,
    receive,
)  # fmt: skip

pytestmark = pytest.mark.kernel

SCHEMA = "5c" * 32
SETTINGS = follow.Settings(
    20_000, SCHEMA, late_intervals=15, most_held=4.0, start_cwnd=16, probe_intervals=30
)
LATE_S = 1e-6 * SETTINGS.interval_us * SETTINGS.late_intervals
ALONE_S = 1.2
NAME = f"cczoo_t{os.getpid() % 1_000_000}"


class Engine:
    """Answers a proxy with one window after the other; it can be closed like one that died."""

    def __init__(self, path: Path, schema: str = SCHEMA) -> None:
        self.window, self.seen, self._schema = 20, list[dict[str, int]](), schema
        self.takes_s = 0.0
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._peer: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            self._peer, _ = self._listener.accept()
            if receive(self._peer, HELLO) is None:
                return
            self._peer.sendall(hello(self._schema, SETTINGS.interval_us))
            while (header := receive(self._peer, HEADER)) is not None:
                reports = receive(self._peer, REPORT, int(header["count"][0]))
                if reports is None:
                    return
                names = REPORT.names or ()
                self.seen += [
                    dict(zip(names, r, strict=True)) | {"ordered": self.window}
                    for r in reports.tolist()
                ]
                time.sleep(self.takes_s)
                orders = [(r["slot"], r["generation"], self.window, 0) for r in reports]
                self._peer.sendall(answer(header, np.array(orders, WINDOW)))

    def close(self) -> None:
        for one in (self._peer, self._listener):
            if one is not None:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()
        self._thread.join(PATIENCE_S)


@dataclass
class Driven:
    """What a flow's engines saw in each part of its life, and what the proxy noted."""

    parts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    phases: list[tuple[int, float]] = field(default_factory=list)
    lost_s: float = 0.0
    decisions: int = 0
    applied: int = 0
    late: int = 0
    last: dict[str, Any] = field(default_factory=dict)
    after_proxy_s: float = 0.0


@pytest.fixture(scope="module")
def driven(make_lab: MakeLab, tmp_path_factory: pytest.TempPathFactory) -> Measured[Driven]:
    return Measured(lambda: drive(make_lab, tmp_path_factory.mktemp("follow")))


def drive(make_lab: MakeLab, folder: Path) -> Driven:
    found, where = Driven(), folder / "engine"
    lab = make_lab(LINK)
    lab.address([SERVER])
    lab.sysctl("net.ipv4.tcp_wmem=4096 4194304 8388608", "net.ipv4.tcp_rmem=4096 4194304 8388608")
    inode = os.stat(f"/run/netns/{lab.client}").st_ino
    with follow.loaded(SETTINGS, folder, NAME) as control:
        engine = Engine(where)
        with proxy(control, folder / "out", engine=str(where), netns=inode) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            upload = Upload(lab.client, lab.server, NAME)

            def part(name: str, duration_s: float, window: int) -> None:
                engine.window, at = window, len(engine.seen)
                found.bytes[name] = upload.go_on(duration_s)
                found.parts[name] = engine.seen[at:]

            part("steady", 1.6, 20)
            part("much", 0.3, 60_000)
            part("little", 0.3, 0)
            engine.close()
            found.lost_s = time.monotonic()
            found.bytes["alone"] = upload.go_on(ALONE_S)
            engine = Engine(where)
            part("again", 0.5, 20)
            engine.takes_s = 1.5 * LATE_S
            part("late", 4 * LATE_S, 20)
            engine.takes_s = 0.0
            part("in time", 2 * LATE_S + 0.3, 20)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
        engine.close()
        found.bytes["no proxy"] = upload.go_on(0.5)
        flows = bpftool("map", "dump", "id", str(control.maps["flows"]))
        values = [entry["formatted"]["value"] for entry in flows]
        found.last = next(v for v in values if v["taken"] and v["inode"] == inode)
        upload.close()
        time.sleep(0.3)
    for line in (folder / "out").read_text().splitlines():
        kind, *words = line.split(",")
        found.decisions += kind == "D"
        found.applied += kind == "A"
        found.late += kind == "S"
        if kind == "P":
            found.phases.append((int(words[2]), int(words[3]) / 1e9))
    lab.finish()
    return found


@measured.of("driven")
def test_window_goes_to_its_target_and_stays_there(driven: Driven) -> None:
    settled = [r for r in driven.parts["steady"] if r["phase"] == DRIVEN][10:]
    windows = [r["cwnd"] for r in settled]
    assert len(windows) > 20
    assert max(windows) == 20
    # Now and then the queue is drained: half of what the path holds.
    drained = [w for w in windows if w < 20]
    assert 1 <= len(drained) <= len(windows) / 3
    assert min(drained) <= 0.7 * HELD


@measured.of("driven")
def test_start_ends_at_its_threshold(driven: Driven) -> None:
    first = [r for r in driven.parts["steady"] if r["phase"] == START]
    assert all(r["cwnd"] <= SETTINGS.start_cwnd for r in first)
    assert driven.phases[0][0] == DRIVEN


@measured.of("driven")
def test_orders_are_bounded_in_the_kernel(driven: Driven) -> None:
    much = driven.parts["much"][5:]
    assert all(r["cwnd"] <= SETTINGS.most_held * 1.3 * HELD for r in much)
    assert all(r["target"] == r["most"] for r in much)
    little = driven.parts["little"][8:]
    assert {r["target"] for r in little} == {SETTINGS.min_cwnd}
    assert all(r["cwnd"] <= SETTINGS.min_cwnd for r in little)


@measured.of("driven")
def test_dead_engine_leaves_the_flow_to_cubic_until_the_next_one(driven: Driven) -> None:
    phases = [phase for phase, _ in driven.phases]
    assert phases[:3] == [DRIVEN, ALONE, DRIVEN]
    # The ACK after the limit finds that it is over; how late that is read, a busy machine decides.
    fell_s = driven.phases[1][1] - driven.lost_s
    assert -SETTINGS.interval_us / 1e6 - LATE_S < fell_s - LATE_S < 0.5
    # From a window of four segments CUBIC finds more than that again.
    assert driven.bytes["alone"] > 0.5 * ALONE_S * SETTINGS.min_cwnd * 1448 / 0.02
    assert driven.parts["again"][0]["cwnd"] > SETTINGS.min_cwnd
    assert driven.parts["again"][-1]["cwnd"] == 20
    assert driven.bytes["again"] > 0


@measured.of("driven")
def test_late_engine_leaves_the_flow_to_cubic_until_it_is_in_time(driven: Driven) -> None:
    # Of one engine that died and one that took too long, and said of each.
    assert [phase for phase, _ in driven.phases][:5] == [DRIVEN, ALONE, DRIVEN, ALONE, DRIVEN]
    # What was seen so long ago is no ground to act on.
    assert driven.late > 0
    assert driven.bytes["late"] > 0.2 * 4 * LATE_S * 1e6
    assert driven.parts["in time"][-1]["phase"] == DRIVEN
    assert driven.parts["in time"][-1]["cwnd"] == 20


@measured.of("driven")
def test_dead_proxy_harms_no_connection(driven: Driven) -> None:
    assert driven.last["phase"] == ALONE
    assert driven.last["fallbacks"] == 3
    assert driven.last["returns"] == 2
    assert driven.bytes["no proxy"] > 0.2 * 0.5 * 1e6


@measured.of("driven")
def test_what_was_ordered_was_applied(driven: Driven) -> None:
    assert driven.decisions > 50
    # An order may be overtaken by the next one before an ACK comes.
    assert 0.5 * driven.decisions < driven.applied <= driven.decisions


@pytest.fixture(scope="module")
def alone(make_lab: MakeLab, tmp_path_factory: pytest.TempPathFactory) -> Measured[Driven]:
    return Measured(lambda: decide_in_kernel(make_lab, tmp_path_factory.mktemp("kernel")))


def decide_in_kernel(make_lab: MakeLab, folder: Path) -> Driven:
    found, settings = Driven(), replace(SETTINGS, orders=False)
    policy = NATIVE / "follow_tracking.h"
    seen = decided_inside(make_lab, folder, settings, policy, NAME, 1.5)
    found.bytes["then"], found.last = seen["bytes"], seen["flow"]
    found.parts["decisions"] = [seen["decisions"]]
    return found


@measured.of("alone")
def test_policy_inside_the_control_needs_no_user_space(alone: Driven) -> None:
    assert alone.last["phase"] == DRIVEN
    assert alone.last["fallbacks"] == 0
    # Where two processes move the bytes by hand, a busy machine has a say in how many.
    assert alone.bytes["then"] > 0.2 * 1e6
    assert SETTINGS.min_cwnd <= alone.last["target"] <= alone.last["most"]
    [found] = alone.parts["decisions"]
    assert found["decisions"] > 40
    assert found["kernel_ns"]["p50"] < 20_000


def test_wrong_schema_is_refused(programs: dict[str, Path], tmp_path: Path) -> None:
    with follow.loaded(SETTINGS, tmp_path, NAME) as control:
        with proxy(control, tmp_path / "out", schema="5d" * 32) as process:
            _, said = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 1
        assert "another schema" in said
        engine = Engine(tmp_path / "engine", "5d" * 32)
        with proxy(control, tmp_path / "out", engine=str(tmp_path / "engine")) as process:
            _, said = process.communicate(timeout=PATIENCE_S)
        engine.close()
        assert process.returncode == 1
        assert "schema hash differs" in said


def test_settings_that_have_no_room_are_refused(tmp_path: Path) -> None:
    for wrong in (
        follow.Settings(20_000, SCHEMA, life_intervals=513),
        follow.Settings(20_000, SCHEMA, min_cwnd=1),
        follow.Settings(20_000, SCHEMA, max_cwnd=1 << 20),
    ):
        with pytest.raises(follow.UserError):
            wrong.header()
