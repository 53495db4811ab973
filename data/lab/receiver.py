"""Nuwa's receiver in the kernel (nuwa.txt section IV): two tc programs at the server's device.

One filters the one-way queueing delay of the segments that come in, the other writes the window
that follows from it into the ACKs that go out; see ``native/nuwa.bpf.c``. The sender is any TCP:
it never sends more than the receiver's window.
"""

from __future__ import annotations

import contextlib
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.errors import UserError
from data.lab import build
from data.lab.registered import bpftool

PROGRAMS = {"ingress": "nuwa_data", "egress": "nuwa_ack"}


@dataclass(frozen=True)
class Receiver:
    """The programs while they are attached.

    Attributes
    ----------
    pins : Path
        Folder with the pinned maps ``control`` and ``flows``.
    """

    pins: Path

    def set(self, target_ms: float, gain: float, port: int) -> None:
        """Set T_d, k and the receiver's port; what is under way takes them from the next segment.

        Parameters
        ----------
        target_ms : float
            Queueing delay to stay at.
        gain : float
            k of eq. 6.
        port : int
        """
        if not (0.001 <= target_ms <= 10_000 and 0.001 <= gain <= 1000):
            raise UserError(
                f"target {target_ms:g} ms, gain {gain:g}: 0.001 to 10000 ms and 0.001 to 1000 "
                "are possible"
            )
        value = struct.pack("=IIHH", round(1000 * target_ms), round(1000 * gain), port, 0)
        words = ["map", "update", "pinned", str(self.pins / "control"), "key", "hex", *["00"] * 4]
        bpftool(*words, "value", "hex", *(f"{byte:02x}" for byte in value))

    def flows(self) -> list[dict[str, Any]]:
        """What is known of each sender; the fields of ``struct nuwa_flow`` and ``nuwa_key``."""
        found = bpftool("map", "dump", "pinned", str(self.pins / "flows"))
        return [entry["formatted"]["key"] | entry["formatted"]["value"] for entry in found]

    def costs(self) -> dict[str, int]:
        """Ids of the two programs."""
        shown = {way: bpftool("prog", "show", "pinned", str(self.pins / "nuwa" / name))
                 for way, name in PROGRAMS.items()}  # fmt: skip
        return {way: int(one["id"]) for way, one in shown.items()}


def compiled(table: str, work: Path, policy: Path | None = None, schema: str = "") -> Path:
    """Compile the programs.

    Parameters
    ----------
    table : str
        C that defines ``nuwa_tanh()``, see `export.bpf.curve`.
    work : Path
        Folder for what is made.
    policy : Path, optional
        Header of a tree that chooses k, see ``native/nuwa_tree.h``. What it includes is looked for
        in its folder.
    schema : str
        Schema hash of what is observed here.

    Raises
    ------
    UserError
        They don't compile, or the policy's schema hash is another one.
    """
    build.build()
    header, made = work / "nuwa_tanh.bpf.h", work / "nuwa.bpf.o"
    header.write_text(table, encoding="ascii")
    command = ["clang-14", "-O2", "-g", "-target", "bpf", "-mcpu=v3", "-D__TARGET_ARCH_x86"]
    command += ["-Wall", f"-I{build.BUILD}", f"-I{build.NATIVE}", f'-DNUWA_TANH="{header}"']
    if policy is not None:
        command += [f"-I{policy.parent}", f'-DNUWA_POLICY="{policy}"', f'-DNUWA_SCHEMA="{schema}"']
    command += ["-c", str(build.NATIVE / "nuwa.bpf.c"), "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line]
        raise UserError(f"the receiver doesn't compile: {(errors or ['?'])[0].strip()}")
    return made


@contextlib.contextmanager
def attached(program: Path, namespace: str, device: str, work: Path) -> Iterator[Receiver]:
    """Have the receiver run at a device; it ends with the device's namespace, or here.

    Parameters
    ----------
    program : Path
        As `compiled` made it.
    namespace, device : str
        Where the data comes in.
    work : Path
        Folder in which the maps are pinned meanwhile. It isn't /sys/fs/bpf, which isn't there for
        who has gone to another namespace by ``ip`` or ``tc``.

    Raises
    ------
    UserError
        The kernel refuses it.
    """
    pins = work / "pins"
    pins.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "bpf", "bpf", str(pins))
    try:
        _run("bpftool", "prog", "loadall", str(program), str(pins / "nuwa"), "pinmaps", str(pins))
        _run("tc", "-n", namespace, "qdisc", "add", "dev", device, "clsact")
        for way, one in PROGRAMS.items():
            words = ["filter", "add", "dev", device, way, "bpf", "da", "object-pinned"]
            _run("tc", "-n", namespace, *words, str(pins / "nuwa" / one))
        yield Receiver(pins)
    finally:
        _run("umount", str(pins))


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = " ".join((done.stderr or done.stdout).split())[-300:]
        raise UserError(f"{' '.join(words[:2])}: {reason}; run: cczoo lab doctor")
