"""Make the previous champion the champion again."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from pipelines.output import print_json

EXAMPLE = 'example: cczoo rollback smartsbd-dt --reason "stalls behind deep buffers"'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("name", help="registered model, NAME or NAME?group=GROUP")
    parser.add_argument("--reason", default="", help="in your own words, for the log")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Roll back; returns 1 if there is nothing to go back to or another move was faster."""
    from pipelines import tracking
    from pipelines.registry import aliases, entries

    entries.check_there(entries.Address.parse(args.name).registered)
    tracking.module()
    with tracking.reported():
        try:
            result = _roll_back(args.name, args.reason)
        except aliases.Lost as lost:
            result = {"ok": False, "problems": [str(lost)]}
    if args.json:
        print_json(result)
    elif result["ok"]:
        print(f"{result['name']}: version {result['to']} is @champion again")
    for problem in result["problems"]:
        print(f"refused: {problem}", file=sys.stderr)
    return 0 if result["ok"] else 1


def _roll_back(text: str, reason: str) -> dict[str, Any]:
    from data.errors import UserError
    from pipelines import tracking
    from pipelines.registry import aliases, entries

    address = entries.Address.parse(text)
    if address.version or "@" in text.partition("?")[0]:
        raise UserError(
            f"{text}: a rollback goes from @champion to @previous, give NAME alone; to another "
            f"version: cczoo promote {text}"
        )
    name = entries.own(address)
    aliases.settle(name)
    held = aliases.aliases(name)
    champion, to = (held.get(alias, "") for alias in ("champion", "previous"))
    result: dict[str, Any] = {"ok": False, "name": name, "from": champion, "to": to}
    if not to or to == champion:
        return result | {"problems": [f"{name}: no @previous version to go back to"]}
    # Its gates passed when it was promoted; that it is still the same is checked now.
    version = tracking.client().get_model_version(name, to)
    entries.fetch(version)
    stack = aliases.standing(aliases.history(name))
    before = stack[-3] if len(stack) > 2 else ""
    evidence = {"entry_hash": version.tags["entry_hash"]}
    move = aliases.Move(name, "rollback", champion, to, before, evidence, reason)
    return result | {"ok": True, "event": aliases.make(move), "problems": []}
