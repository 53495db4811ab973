"""Namespaces, addresses and the link emulator's configuration of one lab."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from data.errors import UserError
from data.lab import rates
from data.lab.scenario import RateProcess, Scenario, Stage

ROLES = "csb"
PORT = 5000
ADDRESS = {"wifi": "10.0.1.2", "lte": "10.0.2.2", "wired": "10.0.3.2",
           "srv": "10.0.9.2", "bg": "10.0.8.2"}  # fmt: skip
# The background server's second address tells the rival's packets from other background.
RIVAL = "10.0.8.3"
HOME = {"wifi": "c", "lte": "c", "srv": "s", "bg": "b"}
# Only in labs whose scenario has the path.
THIRD = {"wired": "c"}
# From, to, and whose address tells the path apart at a device with several.
ENDS = {
    "wifi": ("wifi", "srv", "src=10.0.1.2 dst=10.0.9.2"),
    "lte": ("lte", "srv", "src=10.0.2.2 dst=10.0.9.2"),
    "wifi_back": ("srv", "wifi", "dst=10.0.1.2"),
    "lte_back": ("srv", "lte", "dst=10.0.2.2"),
    "wired": ("wired", "srv", "src=10.0.3.2 dst=10.0.9.2"),
    "wired_back": ("srv", "wired", "dst=10.0.3.2"),
    "bg_wired": ("wired", "bg", "dst=10.0.8.2"),
    "bg_wired_back": ("bg", "wired", "src=10.0.8.2 dst=10.0.3.2"),
    "bg_wifi": ("wifi", "bg", "dst=10.0.8.2"),
    "bg_lte": ("lte", "bg", "dst=10.0.8.2"),
    "bg_wifi_back": ("bg", "wifi", "src=10.0.8.2 dst=10.0.1.2"),
    "bg_lte_back": ("bg", "lte", "src=10.0.8.2 dst=10.0.2.2"),
    "bg_rival": ("wifi", "bg", "dst=10.0.8.3"),
    "bg_rival_back": ("bg", "wifi", "src=10.0.8.3 dst=10.0.1.2"),
}
SYSCTLS = {
    "net.ipv4.tcp_no_metrics_save": "1",
    # Neither end's buffer may limit 60 Mbps over 350 ms and a deep queue.
    "net.ipv4.tcp_wmem": "4096 262144 33554432",
    "net.ipv4.tcp_rmem": "4096 1048576 33554432",
}
EARLY_SYSCTLS = (
    "net.ipv4.conf.all.rp_filter=0",
    "net.ipv4.conf.default.rp_filter=0",
    "net.ipv6.conf.all.disable_ipv6=1",
    "net.ipv6.conf.default.disable_ipv6=1",
)


def background_ends(over: str) -> dict[str, str]:
    """Source and target address of a background flow over an access link or as ``rival``."""
    if over == "rival":
        return {"source": ADDRESS["wifi"], "target": RIVAL}
    return {"source": ADDRESS[over], "target": ADDRESS["bg"]}


@dataclass(frozen=True)
class Lab:
    """Names of one lab: everything is derived from its slot."""

    slot: int

    def namespace(self, role: str) -> str:
        """Name of the namespace of a role (c, s or b)."""
        return f"cz{self.slot}{role}"

    def inode(self, role: str) -> int:
        """Inode of a namespace, by which the probe filters."""
        return (Path("/run/netns") / self.namespace(role)).stat().st_ino


def ip(batch: list[str], namespace: str | None = None) -> None:
    """Run lines of iproute2 in one process; a failure names the line."""
    command = ["ip", *(["-n", namespace] if namespace else []), "-batch", "-"]
    done = subprocess.run(
        command, input="\n".join(batch) + "\n", capture_output=True, text=True, check=False
    )
    if done.returncode:
        reason = " ".join(done.stderr.split())
        raise UserError(f"cannot set up {namespace or 'namespaces'}: {reason}; try: lab doctor")


def create(lab: Lab) -> None:
    """Make the lab's namespaces, replacing what a killed run left of this slot."""
    remove(lab)
    ip([f"netns add {lab.namespace(role)}" for role in ROLES])
    for role in ROLES:
        subprocess.run(
            ["ip", "netns", "exec", lab.namespace(role), "sysctl", "-q", "-w", *EARLY_SYSCTLS],
            check=True,
            capture_output=True,
        )


def _devices(scenario: Scenario) -> dict[str, str]:
    return HOME | (THIRD if "wired" in scenario.paths else {})


def address(lab: Lab, scenario: Scenario) -> None:
    """Give the emulator's devices addresses, routes and MPTCP's endpoints."""
    client = ["link set lo up", "mptcp limits set subflow 4 add_addr_accepted 4"]
    interfaces = [device for device, home in _devices(scenario).items() if home == "c"]
    for table, device in enumerate(interfaces, start=1):
        client += [
            f"addr add {ADDRESS[device]}/32 dev {device}",
            f"link set {device} up",
            f"route add default dev {device} src {ADDRESS[device]} table {table}",
            f"rule add from {ADDRESS[device]} table {table}",
        ]
    client += [
        f"route add default dev wifi src {ADDRESS['wifi']}",
        # The first subflow comes from the address the connection is bound to; the path manager
        # adds the others.
        *(f"mptcp endpoint add {ADDRESS[name]} dev {name} subflow" for name in interfaces),
    ]
    ip(client, lab.namespace("c"))
    for role, device in (("s", "srv"), ("b", "bg")):
        lines = [
            "link set lo up",
            "mptcp limits set subflow 4 add_addr_accepted 4",
            f"addr add {ADDRESS[device]}/32 dev {device}",
            f"link set {device} up",
            f"route add default dev {device} src {ADDRESS[device]}",
        ]
        if device == "bg":
            lines.append(f"addr add {RIVAL}/32 dev bg")
        ip(lines, lab.namespace(role))


def remove(lab: Lab) -> None:
    """Delete the lab's namespaces; nothing happens to those that aren't there."""
    for role in ROLES:
        if (Path("/run/netns") / lab.namespace(role)).exists():
            with contextlib.suppress(UserError):
                ip([f"netns delete {lab.namespace(role)}"])


def _stage_line(
    name: str, stage: Stage, folder: Path, duration_s: float, seed: int, policy: Path | None
) -> str:
    parts = [f"stage {name}"]
    if stage.rate_mbps is not None:
        parts.append(f"rate_mbps={stage.rate_mbps:.6g}")
    elif stage.trace is not None:
        parts.append(f"trace={Path(stage.trace).resolve()}")
    elif isinstance(stage.steps, RateProcess):
        process = stage.steps
        file = folder / f"{name}.steps"
        series = rates.series(process.kind, process.mean_mbps, duration_s + 5, process.seed)
        rates.write(file, series)
        parts.append(f"steps={file.resolve()}")
    elif stage.steps is not None:
        parts.append(f"steps={Path(stage.steps).resolve()}")
    elif stage.schedule is not None:
        file = folder / f"{name}.steps"
        # The emulator starts over at the end of a series: here only long after the run's.
        beyond_s = stage.schedule[-1][0] + 10 * duration_s
        series = np.array([*stage.schedule, (beyond_s, stage.schedule[-1][1])])
        rates.write(file, series)
        parts.append(f"steps={file.resolve()}")
    if stage.delay_ms:
        parts.append(f"delay_ms={stage.delay_ms:.6g}")
    if stage.jitter_ms:
        parts.append(f"jitter_ms={stage.jitter_ms:.6g}")
    if stage.queue_packets is not None:
        parts.append(f"queue_packets={stage.queue_packets}")
    elif stage.limit_bytes is not None:
        parts.append(f"queue_bytes={stage.limit_bytes}")
    if stage.loss:
        parts.append(f"loss={stage.loss:.6g}")
    if policy is not None:
        parts.append(f"policy={policy}")
    parts.append(f"seed={seed}")
    return " ".join(parts)


def emulator_config(
    scenario: Scenario,
    lab: Lab,
    folder: Path,
    seed: int,
    queues: Mapping[str, Path] = MappingProxyType({}),
) -> str:
    """Text of the link emulator's configuration; rate series are written to `folder`.

    Parameters
    ----------
    scenario : Scenario
        What to emulate.
    lab : Lab
        Whose namespaces.
    folder : Path
        Where generated steps files go.
    seed : int
        Seed of the stages' jitter and loss.
    queues : mapping
        Stage to the shared object with its queue's policy, see `data.lab.queues`.

    Returns
    -------
    str
        As data/lab/README.md describes it; paths stand in the scenario's order.
    """
    lines = [f"netns {r} /run/netns/{lab.namespace(r)}" for r in ROLES]
    lines += [f"tun {device} {home}" for device, home in _devices(scenario).items()]
    for number, (name, stage) in enumerate(scenario.stages.items()):
        stage_seed = (seed * 1009 + number + 1) % 2**31
        made = (folder, scenario.duration_s, stage_seed, queues.get(name))
        lines.append(_stage_line(name, stage, *made))
    for path, stages in paths(scenario).items():
        start, end, match = ENDS[path]
        suffix = f" stages={','.join(stages)}" if stages else ""
        lines.append(f"path {start} {end} {match}{suffix}")
    return "\n".join(lines) + "\n"


def paths(scenario: Scenario) -> dict[str, tuple[str, ...]]:
    """Paths as the emulator numbers them: name to stages, in the order of its configuration."""
    named = dict(scenario.paths)
    backs = {"wifi": "wifi_back", "lte": "lte_back", "wired": "wired_back", "rival": "wifi_back"}
    for access, back in backs.items():
        # ACKs of background flows come back as the data path's do unless the scenario says how.
        if f"bg_{access}" in named:
            named.setdefault(f"bg_{access}_back", named[back])
    return named
