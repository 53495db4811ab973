"""Look after a store of logs that grows: what is in it, whether it is whole, what leaves it."""

from __future__ import annotations

import argparse

from pipelines import lazy

ACTIONS: dict[str, tuple[str, str]] = {
    "list": ("pipelines.fleet.list", "days and labels, or logs, or lines in the quarantine"),
    "check": ("pipelines.fleet.check", "read everything: files, and every line of every log"),
    "version": ("pipelines.fleet.version", "hash of the connections a condition selects"),
    "export": ("pipelines.fleet.export", "a part as a directory, for what takes --events"),
    "remove": ("pipelines.fleet.remove", "take logs out, which can be taken again"),
    "compact": ("pipelines.fleet.compact", "make few files of many; delete those no longer in use"),
    "forget": ("pipelines.fleet.forget", "remove connections for good, with all made of them"),
}
"""Name -> (module with ``add_arguments``, ``run`` and ``EXAMPLE``, one line of help)."""

EXAMPLE = """examples:
  cczoo store list STORE --where "day >= 2026-11-01"
  cczoo store check STORE --json
  cczoo store export STORE --where "isp = 'x'" --out data/interim/x
  cczoo store remove STORE '/var/log/cc/2026-11-03/*'
  cczoo store compact STORE --keep-days 7
  cczoo store forget STORE --where "isp = 'x' and day < 2026-01-01"
A store is made by `cczoo ingest LOGS --into STORE`; docs/fleet.md has the whole way."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo store``."""
    lazy.add(parser, "action", ACTIONS)


def run(args: argparse.Namespace) -> int:
    """Hand over to the action that was asked for."""
    return lazy.run(ACTIONS, args.action, args)
