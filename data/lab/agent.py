"""The agent: detection of shared bottlenecks beside a running sender, compiled for one model."""

from __future__ import annotations

import subprocess
from pathlib import Path

from data.errors import UserError
from data.lab.build import BUILD, NATIVE
from data.lab.topology import PORT, Lab

SOURCES = ("agent.c", "agent_detect.c")


def compile_agent(headers: Path, identifier: str, program: Path) -> None:
    """Compile the agent against a model's headers.

    Parameters
    ----------
    headers : Path
        Folder of ``<identifier>_sbd.h`` (features and class) and ``<identifier>_cc.h`` (what the
        model's congestion control is told).
    identifier : str
        The model's name in C.
    program : Path
        What to make. The lab's own programs must be built before.

    Raises
    ------
    UserError
        A header is missing or doesn't compile.
    """
    parts = {"SBD_H": f"{identifier}_sbd.h", "CC_H": f"{identifier}_cc.h"}
    for header in parts.values():
        if not (headers / header).is_file():
            raise UserError(
                f"{headers}: no {header}: export the model with -t c -t bpf "
                "(a model of the smartsbd family)"
            )
    if "SBD_SUBFLOWS" in (headers / parts["SBD_H"]).read_text(encoding="utf-8"):
        raise UserError(
            f"{headers}: made for more than two subflows, the agent has two: "
            "export the model without --set subflows"
        )
    command = ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra"]
    command += [f"-I{NATIVE}", f"-I{BUILD}", f"-I{headers}", f"-DMODEL={identifier}"]
    command += [f'-D{name}="{header}"' for name, header in parts.items()]
    command += [str(NATIVE / source) for source in SOURCES]
    command += ["-o", str(program), "-lbpf", "-lelf", "-lz"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line]
        raise UserError(
            f"{headers}: the agent doesn't compile with these headers: "
            f"{(errors or ['?'])[0].strip()}; export the model again"
        )


def command(
    program: Path, decisions: int, lab: Lab, first: str, out: Path, samples: Path | None = None
) -> list[str]:
    """Command line of the agent of one lab; it prints ``ready`` and ends on SIGTERM.

    Parameters
    ----------
    program : Path
        As `compile_agent` made it.
    decisions : int
        Id of the congestion control's map.
    lab : Lab
        Whose sender.
    first : str
        Interface of the first subflow: ``wifi`` or ``lte``.
    out : Path
        Where its verdicts go, a line of JSON each.
    samples : Path, optional
        Where what it hands to ``sbd_sample`` goes: time in us, subflow, RTT in us, state.
    """
    words = [str(program), "--netns", str(lab.inode("c")), "--port", str(PORT)]
    words += ["--decisions", str(decisions), "--wifi", "0" if first == "wifi" else "1"]
    words += ["--out", str(out)]
    return words + (["--samples", str(samples)] if samples else [])
