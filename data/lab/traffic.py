"""One light process makes all traffic of a lab: the upload, background TCP, and their sinks.

It runs as a script (standard library only, so that a dozen fit on two cores): it reads a JSON plan
on standard input, enters the namespaces by itself, and writes JSON lines: ``{"event": "joined"}``
when every subflow is up, and at the end ``{"event": "done", ...}`` with its byte counts.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import random
import select
import socket
import struct
import sys
import time
from typing import Any

IPPROTO_MPTCP = 262
SOL_MPTCP = 284
MPTCP_INFO = 1
MPTCP_SUBFLOW_ADDRS = 3
ADDRS_BYTES = 256
MOST_SUBFLOWS = 8
CLONE_NEWNET = 0x40000000
CHUNK = b"\0" * 65536
BG_PORT = 5201
JOIN_TIMEOUT_S = 30.0
# Time between looks at the sockets. Their buffers bridge it, and a look at every packet would cost
# a dozen labs more than all else.
NAP_S = 0.005
KERNEL_NAME = {"lia": "bpf_lia", "mpcdg": "bpf_mpcdg"}


def report(**message: object) -> None:
    """Write one JSON line for the parent."""
    print(json.dumps(message), flush=True)


def enter(namespace: str) -> None:
    """Move this process to a network namespace made by `ip netns`."""
    fd = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(fd, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), f"cannot enter namespace {namespace}")
    os.close(fd)


def set_sysctls(values: dict[str, str]) -> None:
    """Set sysctls of the namespace the process is in."""
    for name, value in values.items():
        with open("/proc/sys/" + name.replace(".", "/"), "w") as file:
            file.write(value)


def listener(protocol: int, address: tuple[str, int]) -> socket.socket:
    """Open a listening socket in the namespace the process is in."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(address)
    sock.listen(8)
    sock.setblocking(False)
    return sock


def sender(protocol: int, source: str, target: tuple[str, int], cc: str) -> socket.socket:
    """Begin connecting from `source` with congestion control `cc`."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    name = KERNEL_NAME.get(cc, cc)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
    sock.bind((source, 0))
    sock.setblocking(False)
    status = sock.connect_ex(target)
    if status not in (0, errno.EINPROGRESS):
        raise OSError(status, f"cannot connect {source} -> {target}")
    return sock


class Flow:
    """One sending socket and its application's pattern."""

    def __init__(self, sock: socket.socket, plan: dict[str, Any], now: float) -> None:
        self.sock = sock
        self.rate_bps = (plan.get("rate_mbps") or 0) * 1e6 / 8
        self.burst = plan.get("burst_bytes", len(CHUNK))
        self.on_s, self.off_s = plan.get("on_s"), plan.get("off_s")
        self.random = random.Random(plan.get("seed", 0))
        self.begun = now
        self.allowance_from = now
        self.sent = 0
        self.sent_since = 0
        self.left = 0
        self.size_bytes = plan.get("size_bytes")
        self.active = True
        self.switch_at: float | None = None
        if self.on_s:
            self.switch_at = now + self.random.expovariate(1 / self.on_s)

    def due(self, now: float) -> float | None:
        """Time until which the application writes nothing; None when it may write now."""
        if self.switch_at is not None and now >= self.switch_at:
            self.active = not self.active
            mean_s = float((self.on_s if self.active else self.off_s) or self.on_s or 1.0)
            self.switch_at = now + self.random.expovariate(1 / mean_s)
            self.allowance_from, self.sent_since = now, 0
        if not self.active:
            return self.switch_at
        if self.size_bytes and self.sent >= self.size_bytes:
            return float("inf")
        if self.rate_bps and not self.left:
            # As iperf3 -b: a whole block whenever the average so far is below the target.
            at = self.allowance_from + self.sent_since / self.rate_bps
            if at > now:
                return at
        return None

    def write(self) -> None:
        """Write what the socket takes of the current block."""
        if not self.left:
            self.left = self.burst
            if self.size_bytes:
                self.left = min(self.left, self.size_bytes - self.sent)
        try:
            n = self.sock.send(memoryview(CHUNK)[: min(self.left, len(CHUNK))])
        except BlockingIOError:
            return
        self.left -= n
        self.sent += n
        self.sent_since += n


def extra_subflows(sock: socket.socket) -> int:
    """Subflows beyond the first, from MPTCP_INFO."""
    return sock.getsockopt(SOL_MPTCP, MPTCP_INFO, 8)[0]


def source_ports(sock: socket.socket) -> dict[str, int]:
    """Source port of each subflow by its source address, from MPTCP_SUBFLOW_ADDRS."""
    # struct mptcp_subflow_data, then two struct sockaddr_storage for each subflow.
    size = struct.calcsize("4I") + MOST_SUBFLOWS * ADDRS_BYTES
    buffer = ctypes.create_string_buffer(struct.pack("4I", 16, 0, 0, ADDRS_BYTES), size)
    length = ctypes.c_uint32(size)
    where = (sock.fileno(), SOL_MPTCP, MPTCP_SUBFLOW_ADDRS, buffer, ctypes.byref(length))
    if ctypes.CDLL(None, use_errno=True).getsockopt(*where):
        raise OSError(ctypes.get_errno(), "cannot ask for the subflows' addresses")
    count = struct.unpack_from("4I", buffer.raw)[1]
    found = {}
    for i in range(min(count, MOST_SUBFLOWS)):
        port, address = struct.unpack_from("!2xH4s", buffer.raw, 16 + i * ADDRS_BYTES)
        found[socket.inet_ntoa(address)] = port
    return found


def drive(
    flows: list[Flow],
    sinks: list[socket.socket],
    until: float,
    joined_of: socket.socket | None = None,
    extra: int = 1,
    per_second: list[list[int]] | None = None,
    nap_s: float = NAP_S,
    enough: int | None = None,
) -> dict[int, int]:
    """Move bytes until `until`, or until `joined_of` (a socket) has `extra` further subflows.

    Parameters
    ----------
    flows : list of Flow
        Who sends.
    sinks : list of socket
        Who receives.
    until : float
        On CLOCK_MONOTONIC, in s.
    joined_of : socket, optional
        The MPTCP sender.
    extra : int
        Subflows beyond the first that it shall have.
    per_second : list of list of int, optional
        Filled in: for each sink the bytes of each second, the last of which ends at `until`.
    nap_s : float
        Rest between looks at the sockets.
    enough : int, optional
        End when the last sink has received so many bytes.

    Returns
    -------
    dict
        Bytes received per sink's index.
    """
    begun = until - len(per_second[0]) if per_second else 0.0
    poll = select.epoll()
    by_fd: dict[int, Flow | int] = {}
    received = dict.fromkeys(range(len(sinks)), 0)
    buffer = bytearray(262144)
    for i, sock in enumerate(sinks):
        poll.register(sock.fileno(), select.EPOLLIN)
        by_fd[sock.fileno()] = i
    armed: dict[int, bool] = {}
    for flow in flows:
        poll.register(flow.sock.fileno(), 0)
        armed[flow.sock.fileno()] = False
        by_fd[flow.sock.fileno()] = flow
    while (now := time.monotonic()) < until:
        if joined_of is not None and extra_subflows(joined_of) >= extra:
            break
        if enough is not None and received[len(sinks) - 1] >= enough:
            break
        wake = until if joined_of is None else min(until, now + 0.02)
        for flow in flows:
            at = flow.due(now)
            want = at is None
            if at is not None:
                wake = min(wake, at)
            elif flow.switch_at is not None:
                wake = min(wake, flow.switch_at)
            fd = flow.sock.fileno()
            if armed[fd] != want:
                poll.modify(fd, select.EPOLLOUT if want else 0)
                armed[fd] = want
        for fd, events in poll.poll(max(0.001, wake - now)):
            thing = by_fd[fd]
            if isinstance(thing, Flow):
                if events & (select.EPOLLERR | select.EPOLLHUP):
                    error = thing.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    raise OSError(error, f"flow failed: {os.strerror(error)}")
                if events & select.EPOLLOUT:
                    thing.write()
            else:
                n = sinks[thing].recv_into(buffer)
                received[thing] += n
                if per_second and (second := int(time.monotonic() - begun)) >= 0:
                    bins = per_second[thing]
                    bins[min(second, len(bins) - 1)] += n
                if not n:
                    poll.unregister(fd)
        if joined_of is None and nap_s:
            time.sleep(nap_s)
    poll.close()
    return received


def accept(listening: socket.socket, timeout_s: float) -> socket.socket:
    """Take the one connection a listener waits for."""
    if not select.select([listening], [], [], timeout_s)[0]:
        raise TimeoutError("connection not established: the path carries no packets")
    sock, _ = listening.accept()
    sock.setblocking(False)
    return sock


def main() -> int:
    """Carry out the plan on standard input."""
    plan = json.load(sys.stdin)
    mptcp = plan["mptcp"]
    target = (plan["server_address"], plan["port"])
    protocol = IPPROTO_MPTCP if mptcp["transport"] == "mptcp" else 0
    enter(plan["server"])
    set_sysctls(plan["sysctls"])
    server = listener(protocol, target)
    enter(plan["bg"])
    set_sysctls(plan["sysctls"])
    bg_server = listener(0, ("0.0.0.0", BG_PORT))
    enter(plan["client"])
    set_sysctls(plan["sysctls"])

    flows: list[Flow] = []
    sinks: list[socket.socket] = []
    for flow in plan["background"]:
        sock = sender(0, flow["source"], (flow["target"], BG_PORT), flow["cc"])
        sinks.append(accept(bg_server, JOIN_TIMEOUT_S))
        flows.append(Flow(sock, flow, time.monotonic()))
    drive(flows, sinks, time.monotonic() + plan["warmup_s"])

    size_bytes = mptcp["size_bytes"]
    asked = time.monotonic()
    sock = sender(protocol, plan["addresses"][mptcp["first"]], target, mptcp["cc"])
    upload = Flow(sock, {"size_bytes": size_bytes}, asked)
    if size_bytes:
        # A sender writes as soon as it may, and doesn't wait until the receiver has heard of it.
        select.select([], [sock], [], JOIN_TIMEOUT_S)
        upload.write()
    sinks.append(accept(server, JOIN_TIMEOUT_S))
    begun = time.monotonic()
    flows.append(upload)
    if protocol and not size_bytes:
        extra = mptcp["subflows"] - 1
        drive(flows, sinks, begun + JOIN_TIMEOUT_S, joined_of=sock, extra=extra)
        if (joined := extra_subflows(sock)) < extra:
            raise TimeoutError(f"only {joined + 1} of {extra + 1} subflows joined")
    sports = source_ports(sock) if protocol and not size_bytes else {}
    report(event="joined", after_s=round(time.monotonic() - begun, 4), sports=sports)
    until = begun + mptcp["duration_s"]
    nap_s = NAP_S if plan["nap_s"] is None else plan["nap_s"]
    series: dict[str, Any] = {}
    if plan["per_second"]:
        bins = [[0] * int(mptcp["duration_s"]) for _ in sinks]
        received = drive(flows, sinks, until, per_second=bins, nap_s=nap_s, enough=size_bytes)
        series = {"begun_s": begun, "per_second": {"mptcp": bins[-1], "background": bins[:-1]}}
    else:
        received = drive(flows, sinks, until, nap_s=nap_s, enough=size_bytes)
    ended = time.monotonic()
    if size_bytes and received[len(sinks) - 1] >= size_bytes:
        series["completed_s"] = round(ended - asked, 6)
    for flow in flows:
        # Reset: what still waits in the send buffer must not run on after the measured time.
        flow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        flow.sock.close()
    report(
        event="done",
        duration_s=round(time.monotonic() - begun, 3),
        mptcp_bytes=received[len(sinks) - 1],
        background_bytes=[flow.sent for flow in flows[:-1]],
        **series,
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, TimeoutError) as error:
        report(event="failed", reason=str(error))
        sys.exit(1)
