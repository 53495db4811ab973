"""Programs and maps of a BPF congestion control that the kernel has registered."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

from data.errors import UserError


def bpftool(*words: str) -> Any:
    """Answer of bpftool, as JSON gives it.

    Raises
    ------
    UserError
        With bpftool's own reason.
    """
    done = subprocess.run(["bpftool", "-j", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"bpftool {' '.join(words)}: {done.stdout.strip()[-200:]}")
    return json.loads(done.stdout)


def operations(name: str) -> dict[str, int]:
    """Programs of a registered BPF congestion control, by operation."""
    found = {}
    for item in bpftool("struct_ops", "dump", "name", name):
        for values in item.values():
            for operation, text in (values.get("data") or {}).items():
                program = re.search(r"/prog_id:(\d+)$", str(text))
                if program:
                    found[operation] = int(program[1])
    return found


def maps_of(program: int) -> dict[str, int]:
    """Maps that a program uses: name (the kernel keeps 15 characters) -> id."""
    numbers = bpftool("prog", "show", "id", str(program))["map_ids"]
    shown = [(bpftool("map", "show", "id", str(number)), int(number)) for number in numbers]
    return {str(one.get("name", "")): number for one, number in shown}
