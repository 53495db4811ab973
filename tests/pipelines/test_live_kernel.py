"""One short live run in the running kernel, and what a killed one leaves."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from data.lab import clean, coupled, probes
from data.lab.traffic import IPPROTO_MPTCP
from export.bpf import live

pytestmark = [pytest.mark.kernel, pytest.mark.xdist_group("live")]

SLOT = 97
SCENARIO = {
    "label": "NSB",
    "case": "short",
    "duration_s": 9,
    "stages": {
        "wifi": {"rate_mbps": 5, "delay_ms": 3, "queue_bytes": 18000},
        "lte": {"rate_mbps": 3, "delay_ms": 5, "queue_bytes": 12000},
        "wifi_back": {"delay_ms": 3},
        "lte_back": {"delay_ms": 5},
    },
    "paths": {
        "wifi": ["wifi"],
        "lte": ["lte"],
        "wifi_back": ["wifi_back"],
        "lte_back": ["lte_back"],
    },
    "bottleneck": {"wifi": "wifi", "lte": "lte"},
}


def why_not() -> str | None:
    if os.geteuid():
        return "needs root (network namespaces, BPF)"
    if not Path("/dev/net/tun").exists():
        return "needs /dev/net/tun"
    if not shutil.which("ip"):
        return "needs iproute2: apt-get install -y iproute2"
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP).close()
    except OSError as error:
        return f"needs MPTCP in the kernel: {error}"
    return probes.why_no_bpf()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reason = why_not()
    if reason is None and live.LOCK.exists():
        done = subprocess.run(["flock", "-n", str(live.LOCK), "true"], check=False)
        if done.returncode:
            reason = "another live run goes on on this machine"
    if reason:
        print(f"no live run: {reason}")
        pytest.skip(reason)
    made = tmp_path_factory.mktemp("live") / "bundle"
    export = ["export", "smartsbd-dt", "-t", "c", "-t", "bpf", "--out", str(made)]
    subprocess.run([sys.executable, "-m", "pipelines.cli", *export], check=True)
    return made


@pytest.fixture
def command(bundle: Path, tmp_path: Path) -> list[str]:
    (tmp_path / "short.yaml").write_text(yaml.safe_dump(SCENARIO))
    group = {"name": "here", "scenario": str(tmp_path / "short.yaml"), "repeats": 1}
    campaign = tmp_path / "campaign.yaml"
    campaign.write_text(yaml.safe_dump({"campaign": "short", "groups": [group]}))
    words = [sys.executable, "-m", "pipelines.cli", "lab", "live", str(bundle), "--check", "--json"]
    words += ["--scenario", str(campaign), "--cc", "smartsbd", "--jobs", "1"]
    return [*words, "--out", str(tmp_path / "out"), "--first-slot", str(SLOT)]


def test_kernel_answers_as_the_agent_and_the_agent_as_python(
    command: list[str], tmp_path: Path
) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert "Traceback" not in done.stderr, done.stderr
    kept = tmp_path / "out" / "live.jsonl"
    assert kept.is_file(), done.stderr
    lines = kept.read_text().splitlines()
    runs = [run for run in map(json.loads, lines) if run["kind"] == "run"]
    if not runs[-1]["valid"]:
        reason = f"the machine is too busy for a valid run: {runs[-1]['reasons']}"
        print(f"no live run: {reason}")
        pytest.skip(reason)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["verdicts"]
    assert found["verdicts"] >= 3
    assert found["answered_by_the_kernel"] >= found["verdicts"] - 1
    assert found["mismatches"] == 0
    assert found["checked_in_python"] == found["verdicts"]
    assert found["unequal_to_python"] == 0
    assert sum(runs[-1]["mptcp_mbps"]) > 20
    assert not coupled.registered(coupled.LIVE)
    assert not clean.namespaces(SLOT)


def test_killed_run_leaves_nothing_after_clean(command: list[str]) -> None:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 600
    while not _agents():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 120
    while _agents() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _agents()
    clean.clean(SLOT)
    assert not clean.namespaces(SLOT)
    if not clean.namespaces():
        assert not coupled.registered(coupled.LIVE)


def _agents() -> list[str]:
    """Agents of this test's lab."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "--decisions" in words and "here-smartsbd" in words:
            found.append(words)
    return found
