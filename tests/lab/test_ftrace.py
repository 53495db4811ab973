"""The probe without BPF: what it keeps of a trace, when it is chosen, and that nothing stays."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from backports import zstd
from native_lab import PATIENCE_S, inside, shell

from data.errors import UserError
from data.formats import ftrace as ftrace_format
from data.lab import build, clean, ftrace, ftrace_probe, probes

PORT = ftrace.port(80)
LINE = "  klink-1 [000] b..1. "


def probe(time_s: float, source: str, una: int, cwnd: int, srtt: int, to: str = "") -> str:
    return (
        f"{LINE}{time_s:.6f}: tcp_probe: family=AF_INET src={source} "
        f"dest={to or f'10.0.9.2:{PORT}'} mark=0x0 data_len=0 snd_nxt=0x1 snd_una={una:#x} "
        f"snd_cwnd={cwnd} ssthresh=9 snd_wnd=9 srtt={srtt} rcv_wnd=9 sock_cookie=7"
    )


def state(time_s: float, source: str, sport: int, new: int) -> str:
    return (
        f"{LINE}{time_s:.6f}: tcp_cong_state_set: family=AF_INET sport={sport} dport={PORT} "
        f"saddr={source} daddr=10.0.9.2 saddrv6=::ffff:{source} daddrv6=::ffff:10.0.9.2 "
        f"cong_state={new}"
    )


WIFI, LTE = "10.0.1.2:40001", "10.0.2.2:40002"
TRACE = [
    state(5.0, "10.0.1.2", 40001, 0),
    probe(5.1, WIFI, 2**32 - 100, 10, 30_000),
    probe(5.3, WIFI, 50, 11, 31_000),
    probe(5.2, LTE, 7, 10, 80_000),
    "CPU:1 [LOST 3 EVENTS]",
    state(5.4, "10.0.1.2", 40001, 3),
    probe(5.5, "10.0.3.2:40009", 1, 1, 1),  # somebody else's client
    probe(5.5, WIFI, 1, 1, 1, to=f"10.0.9.9:{PORT}"),  # somebody else's server
]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "ftrace.txt"
    path.write_text("\n".join(TRACE) + "\n")
    return path


def test_only_the_labs_own_lines_are_kept_in_order(trace: Path) -> None:
    events, about, text = ftrace.read(trace, PORT, "wifi")
    assert events.t0_us == 5_000_000
    assert events.time_us.tolist() == [0, 100_000, 200_000, 300_000, 400_000]
    assert events.kind.tolist() == [1, 0, 0, 0, 1]
    assert events.subflow.tolist() == [1, 1, 2, 1, 1]
    assert events.ack.tolist() == [0, 0, 0, 150, 0]  # past the wrap
    assert events.rtt_us.tolist() == [0, 30_000, 80_000, 31_000, 0]
    assert (events.old[4], events.new[4]) == (0, 3)
    assert about["lost_events"] == 3
    assert {n: s["sport"] for n, s in about["subflows"].items()} == {"1": 40001, "2": 40002}
    assert [line.split(b": ")[0].split()[-1] for line in text.splitlines()] == [
        b"5.000000", b"5.100000", b"5.200000", b"5.300000", b"5.400000",
    ]  # fmt: skip


def test_the_first_subflow_is_the_first_interfaces(trace: Path) -> None:
    _, about, _ = ftrace.read(trace, PORT, "lte")
    assert {n: s["sport"] for n, s in about["subflows"].items()} == {"1": 40002, "2": 40001}


def test_a_connection_without_its_second_subflow_is_refused(trace: Path) -> None:
    trace.write_text("\n".join(line for line in TRACE if "10.0.2.2" not in line) + "\n")
    with pytest.raises(UserError, match="1 from wifi, 0 from lte"):
        ftrace.read(trace, PORT, "wifi")


def test_what_is_written_is_what_ingest_reads(trace: Path, tmp_path: Path) -> None:
    _, _, text = ftrace.read(trace, PORT, "wifi")
    path = tmp_path / "a.ftrace.zst"
    assert ftrace.write(path, text, {"label": "SB"}) == path.stat().st_size
    kept = zstd.decompress(path.read_bytes())
    assert kept.split(b"\n", 1)[0] == b'# cczoo-ftrace {"label":"SB"}'
    assert ftrace_format.sniff(kept) == 95


def test_ports_tell_labs_apart() -> None:
    assert len({ftrace.port(slot) for slot in range(100)}) == 100
    with pytest.raises(UserError, match="--slot 60000"):
        ftrace.port(60_000)


@pytest.mark.parametrize(
    ("wanted", "no_bpf", "no_ftrace", "chosen"),
    [
        (None, None, None, "bpf"),
        (None, "no BTF", None, "ftrace"),
        ("ftrace", None, None, "ftrace"),
        ("bpf", None, "no tracefs", "bpf"),
    ],
)
def test_bpf_is_chosen_where_it_is_available(
    monkeypatch: pytest.MonkeyPatch,
    wanted: str | None,
    no_bpf: str | None,
    no_ftrace: str | None,
    chosen: str,
) -> None:
    monkeypatch.setattr(probes, "why_no_bpf", lambda: no_bpf)
    monkeypatch.setattr(ftrace_probe, "why_not", lambda: no_ftrace)
    assert probes.choose(wanted) == chosen


@pytest.mark.parametrize("wanted", [None, "bpf", "ftrace"])
def test_no_probe_at_all_is_said(monkeypatch: pytest.MonkeyPatch, wanted: str | None) -> None:
    monkeypatch.setattr(probes, "why_no_bpf", lambda: "no BTF")
    monkeypatch.setattr(ftrace_probe, "why_not", lambda: "no tracefs")
    with pytest.raises(UserError, match="no BTF" if wanted == "bpf" else "no tracefs"):
        probes.choose(wanted)


@pytest.mark.parametrize("control", ["lia", "mpcdg"])
def test_lia_without_bpf_is_said(monkeypatch: pytest.MonkeyPatch, control: str) -> None:
    monkeypatch.setattr(probes.coupled, "registered", lambda name: False)
    monkeypatch.setattr(probes, "why_no_bpf", lambda: "no BTF")
    with pytest.raises(UserError, match=rf"{control} needs BPF: no BTF.*reno"):
        probes.prepare("ftrace", control)


def test_the_emulator_alone_needs_no_bpf_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build.shutil, "which", lambda name: None if "clang" in name else name)
    assert "clang-14" in build.missing_requirements()
    assert "clang-14" not in build.missing_requirements(("klink",))


def test_names_of_logs() -> None:
    assert probes.log_name({"id": "a"}) == "a.klog.zst"
    assert probes.log_name({"id": "a", "probe": "ftrace"}) == "a.ftrace.zst"


# --- in the kernel ---------------------------------------------------------------------------

SLOT = 10_000 + os.getpid() % 10_000  # no lab's


@pytest.fixture
def netns() -> Iterator[str]:
    reason = "needs root" if os.geteuid() else ftrace_probe.why_not()
    if reason:
        print(f"ftrace's kernel tests not run: {reason}")
        pytest.skip(reason)
    name = f"czn_t{os.getpid()}_f"
    shell("ip", "netns", "add", name)
    shell("ip", "-n", name, "link", "set", "lo", "up")
    yield name
    shell("ip", "netns", "del", name)
    assert ftrace_probe.remove(ftrace_probe.name_of(SLOT))


def start(out: Path, *before: str) -> subprocess.Popen[str]:
    lab = probes.Lab(SLOT)
    recorder = subprocess.Popen(
        [*before, *probes.command("ftrace", {}, lab, out)], stdout=subprocess.PIPE, text=True
    )
    assert recorder.stdout is not None
    assert recorder.stdout.readline() == "ready\n"
    return recorder


def talk(netns: str, port: int) -> None:
    with inside(netns):
        listener = socket.create_server(("127.0.0.1", port))
        sender = socket.create_connection(listener.getsockname(), PATIENCE_S)
    receiver = listener.accept()[0]
    for _ in range(20):
        sender.sendall(b"x")
        assert receiver.recv(1) == b"x"
        receiver.sendall(b"y")
        assert sender.recv(1) == b"y"
    for one in (sender, receiver, listener):
        one.close()


@pytest.mark.kernel
def test_only_senders_to_the_port_are_recorded(netns: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    global_state = (ftrace_probe.root() or Path()) / "events/enable"
    before = global_state.read_text()
    begun_s = time.monotonic()
    recorder = start(out)
    try:
        port = ftrace.port(SLOT)
        talk(netns, port)
        talk(netns, port + 1)
        assert ftrace_probe.instances(SLOT) == [ftrace_probe.name_of(SLOT)]
        assert global_state.read_text() == before
    finally:
        recorder.terminate()
        assert recorder.wait(timeout=PATIENCE_S) == 0
    text = out.read_text()
    assert text.count("tcp_probe: ") >= 20
    assert all(f"dest=127.0.0.1:{port} " in line for line in text.splitlines() if "dest=" in line)
    times = [float(line.split(": tcp_")[0].split()[-1]) for line in text.splitlines()]
    assert all(begun_s < at < time.monotonic() for at in times)
    assert ftrace_probe.instances(SLOT) == []


@pytest.mark.kernel
def test_a_killed_parent_leaves_no_instance(netns: str, tmp_path: Path) -> None:
    recorder = probes.command("ftrace", {}, probes.Lab(SLOT), tmp_path / "out")
    code = (
        "import subprocess, sys; "
        "child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE); "
        "print(child.stdout.readline().decode(), flush=True); child.wait()"
    )
    command = ["setpriv", "--pdeathsig", "TERM", "--", *recorder]
    parent = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code, *command], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ready\n"
    parent.send_signal(signal.SIGKILL)
    parent.communicate(timeout=PATIENCE_S)
    deadline = time.monotonic() + PATIENCE_S
    while ftrace_probe.instances(SLOT) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert ftrace_probe.instances(SLOT) == []


@pytest.mark.kernel
def test_clean_and_the_next_run_remove_what_a_killed_recorder_left(
    netns: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clean.coupled, "unregister", lambda name: False)
    for again in ("clean", "run"):
        killed = start(tmp_path / "out")
        killed.kill()
        killed.wait()
        assert ftrace_probe.instances(SLOT) == [ftrace_probe.name_of(SLOT)]
        if again == "clean":
            removed = clean.clean(SLOT)
            assert removed["trace instances"] == [ftrace_probe.name_of(SLOT)]
        else:
            second = start(tmp_path / "out")
            second.terminate()
            assert second.wait(timeout=PATIENCE_S) == 0
        assert ftrace_probe.instances(SLOT) == []
    with contextlib.suppress(FileNotFoundError):
        assert not (tmp_path / "out").read_text()
