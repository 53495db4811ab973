"""The congestion control whose windows an agent sets: loads it, and says how its proxy is called.

``native/follow.bpf.c`` is the agent's client in the kernel, ``native/proxy.c`` stands between it
and a decision engine (tcco.txt section III.C.1).
"""

from __future__ import annotations

import contextlib
import fcntl
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from data.errors import UserError
from data.lab import build, coupled
from data.lab.registered import maps_of, operations

NAME = "cczoo_follow"
SETTINGS = ".rodata.s"
"""How the name of the map with the settings begins; the kernel keeps 15 characters."""
LOCK = Path("/run/lock")
LATE_INTERVALS = 5
"""Intervals without an order after which a flow is CUBIC's."""
_LIFE, _SPAN = 512, 8
"""Room that ``native/observe.h`` has."""


@dataclass(frozen=True)
class Settings:
    """What the control is loaded with; the fields of ``struct follow_settings``.

    Attributes
    ----------
    interval_us : int
        Time between decisions.
    schema : str
        SHA-256 of what is observed and how, in hexadecimal: proxy and engine must have the same.
    late_intervals : int
        Intervals without an order after which the window is CUBIC's.
    min_cwnd, max_cwnd : int
        Bounds of the window, in segments.
    most_held : float
        A target is at most so many times what the path holds; 0: no such bound.
    start_cwnd, start_intervals : int
        Window at which the Start phase ends; it ends after so many intervals in any case.
    probe_intervals : int
        Decisions from one draining of the queue to the next; 0: none.
    life_intervals, span_intervals, explore_after : int
        How observations are made; see `features.tcco.TccoObservation`.
    reach : int
        Actions of a policy in the kernel go from -reach to +reach.
    step_share, step_segments : float, int
        Unit of an action: a share of what the path holds, and at least so many segments.
    orders : bool
        Whether user space decides, and not a policy compiled into the control.
    """

    interval_us: int
    schema: str
    late_intervals: int = LATE_INTERVALS
    min_cwnd: int = 4
    max_cwnd: int = 65_535
    most_held: float = 3.0
    start_cwnd: int = 32
    start_intervals: int = 100
    probe_intervals: int = 500
    life_intervals: int = 500
    span_intervals: int = 5
    explore_after: int = 6
    reach: int = 2
    step_share: float = 1 / 16
    step_segments: int = 1
    orders: bool = True

    def header(self) -> str:
        """C's initialisers of ``struct follow_settings``.

        Raises
        ------
        UserError
            A value has no room in the control.
        """
        for name, most in (("life_intervals", _LIFE), ("span_intervals", _SPAN)):
            if not 1 <= getattr(self, name) <= most:
                raise UserError(
                    f"{name} {getattr(self, name)}: the control has room for 1 to {most}"
                )
        if not 2 <= self.min_cwnd <= self.max_cwnd < 1 << 20:
            raise UserError(
                f"windows from {self.min_cwnd} to {self.max_cwnd}: "
                f"2 to {(1 << 20) - 1} are possible"
            )
        numbers = {
            "interval_ns": 1000 * self.interval_us,
            "late_ns": 1000 * self.interval_us * self.late_intervals,
            "held_milli": round(1000 * self.most_held),
            "step_milli": round(1000 * self.step_share),
            "orders": int(self.orders),
        }
        plain = ("min_cwnd", "max_cwnd", "start_cwnd", "start_intervals", "probe_intervals",
                 "life_intervals", "span_intervals", "explore_after", "reach",
                 "step_segments")  # fmt: skip
        numbers |= {name: int(asdict(self)[name]) for name in plain}
        digest = ", ".join(f"0x{byte:02x}" for byte in bytes.fromhex(self.schema))
        lines = [f"\t.{name} = {value}," for name, value in numbers.items()]
        return "\n".join([*lines, f"\t.schema = {{{digest}}},", ""])


@dataclass(frozen=True)
class Control:
    """The control while it is loaded.

    Attributes
    ----------
    name : str
        As `TCP_CONGESTION` knows it.
    settings : Settings
    maps : mapping
        ``flows``, ``events`` and ``settings`` -> id.
    programs : mapping
        Operation -> id of its BPF program.
    """

    name: str
    settings: Settings
    maps: Mapping[str, int]
    programs: Mapping[str, int]


def compiled(settings: Settings, work: Path, name: str = NAME, policy: Path | None = None) -> Path:
    """Compile the control for its settings.

    Parameters
    ----------
    settings : Settings
    work : Path
        Folder for what is made.
    name : str
        Name of the congestion control, 15 characters at most.
    policy : Path, optional
        Header of a policy that decides inside the control: it defines ``follow_action()``. What
        it includes is looked for in its folder.

    Raises
    ------
    UserError
        It doesn't compile, or the policy's schema hash isn't the settings'.
    """
    build.build(("klink", "probe", "proxy"))
    header, made = work / "follow_settings.h", work / f"{name}.bpf.o"
    header.write_text(settings.header(), encoding="ascii")
    command = ["clang-14", "-O2", "-g", "-target", "bpf", "-mcpu=v3", "-D__TARGET_ARCH_x86"]
    command += ["-Wall", f"-I{build.BUILD}", f"-I{build.NATIVE}", f"-I{work}"]
    command += [f"-D{NAME}={name}", f'-DFOLLOW_NAME="{name}"', f'-DFOLLOW_SETTINGS="{header}"']
    command += [f'-DFOLLOW_SCHEMA="{settings.schema}"']
    if policy is not None:
        command += [f"-I{policy.parent}", f'-DFOLLOW_POLICY="{policy}"']
    command += ["-c", str(build.NATIVE / "follow.bpf.c"), "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line]
        raise UserError(f"the control doesn't compile: {(errors or ['?'])[0].strip()}")
    return made


@contextlib.contextmanager
def loaded(
    settings: Settings, work: Path, name: str = NAME, policy: Path | None = None
) -> Iterator[Control]:
    """Compile the control, register it, and take it out at the end.

    Sockets that still use it then keep it until they are closed; without an agent they are CUBIC's.

    Parameters
    ----------
    settings, work, name, policy
        See `compiled`.

    Raises
    ------
    UserError
        Another run has it loaded, or it doesn't compile or load.
    """
    with (LOCK / f"cczoo-{name}").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError("another agent drives on this machine; wait for its end") from None
        coupled.unregister(name)
        coupled.ensure(compiled(settings, work, name, policy), name)
        try:
            programs = operations(name)
            found = maps_of(programs["pkts_acked"])
            read_only = next(value for key, value in found.items() if key.startswith(SETTINGS))
            ids = {"flows": found["flows"], "events": found["events"], "settings": read_only}
            yield Control(name, settings, ids, programs)
        finally:
            coupled.unregister(name)


def proxy(
    control: Control,
    out: Path,
    engine: str | None = None,
    behind_ms: int = 0,
    netns: int | None = None,
    fifo: int | None = None,
    schema: str | None = None,
) -> list[str]:
    """Command line of the proxy; it prints ``ready`` and ends on SIGTERM.

    Parameters
    ----------
    control : Control
    out : Path
        Where it notes decisions and what became of them; see `data.lab.decisions`.
    engine : str, optional
        Path of a Unix socket or ``HOST:PORT``; without it nobody decides in user space.
    behind_ms : int
        How much later answers count, as if the engine were that far away.
    netns : int, optional
        Inode of the only network namespace whose flows are reported.
    fifo : int, optional
        Real-time priority.
    schema : str, optional
        Another schema hash than the control's own, which the proxy refuses.
    """
    words = [str(build.TARGETS["proxy"]), "--schema", schema or control.settings.schema]
    for what, number in control.maps.items():
        words += [f"--{what}", str(number)]
    words += ["--out", str(out), "--behind-ms", str(behind_ms)]
    for option, value in (("engine", engine), ("netns", netns), ("fifo", fifo)):
        words += [f"--{option}", str(value)] if value is not None else []
    return words
