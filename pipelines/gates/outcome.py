"""What promotion and release print of their gates and of what came out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WORDS = {True: "pass", False: "REFUSED", None: "-"}


def print_gates(findings: Mapping[str, Mapping[str, Any]]) -> None:
    """A line per gate: whether it passed, and why."""
    for gate, finding in findings.items():
        print(f"{WORDS[finding['passed']]:<8} {gate}: {finding['reason']}")


def print_version(result: Mapping[str, Any], done: str) -> None:
    """Which version now is, or in a dry run would be, ``done`` ("released")."""
    verb = "would be" if result["dry_run"] else "is"
    was = f"was version {result['from']}" if result["from"] else "the first"
    print(f"{result['name']}: version {result['to']} {verb} {done} ({was})")
