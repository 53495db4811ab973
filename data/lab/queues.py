"""A distilled tree as the policy of the link emulator's queues (`native/aqm.h`)."""

from __future__ import annotations

import subprocess
from pathlib import Path

from data.errors import UserError
from data.lab.build import NATIVE


def compiled(
    header: Path, observe: Path, name: str, upper: str, drop: int, schema: str, work: Path
) -> Path:
    """Compile a tree into a shared object that the emulator's ``policy=`` takes.

    Parameters
    ----------
    header, observe : Path
        The tree's exported C, and the C of what it sees.
    name, upper : str
        Its identifier, as functions and as constants have it.
    drop : int
        Number of the action that drops.
    schema : str
        Schema hash of what is observed here.
    work : Path
        Folder for what is made.

    Raises
    ------
    UserError
        It doesn't compile, or its schema hash is another one.
    """
    made = work / f"{name}.so"
    defines = {
        "TREE_HEADER": f'"{header}"',
        "TREE_OBSERVE": f'"{observe}"',
        "TREE_NAME": name,
        "TREE_UPPER": upper,
        "TREE_DROP": str(drop),
        "TREE_SCHEMA": f'"{schema}"',
    }
    command = ["cc", "-std=gnu11", "-O2", "-Wall", "-Wno-unused-function", "-fPIC", "-shared"]
    command += [f"-I{NATIVE}", *(f"-D{key}={value}" for key, value in defines.items())]
    command += ["-o", str(made), str(NATIVE / "aqm_tree.c")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line]
        raise UserError(f"the queue's policy doesn't compile: {(errors or ['?'])[0].strip()}")
    return made
