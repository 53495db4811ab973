"""Print the findings of gates and the outcome of a promotion or a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WORDS = {True: "pass", False: "REFUSED", None: "-"}


def print_gates(findings: Mapping[str, Mapping[str, Any]]) -> None:
    """Print a line per gate: whether it passed, and why."""
    for gate, finding in findings.items():
        print(f"{WORDS[finding['passed']]:<8} {gate}: {finding['reason']}")


def print_version(result: Mapping[str, Any], done: str) -> None:
    """Print which version is now, or in a dry run would be, ``done`` (such as "released")."""
    verb = "would be" if result["dry_run"] else "is"
    was = f"was version {result['from']}" if result["from"] else "the first"
    print(f"{result['name']}: version {result['to']} {verb} {done} ({was})")
