"""Make a registered model the champion, if every gate lets it pass."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models.policies import ENTRY, WEIGHTS
from pipelines import selection
from pipelines.output import print_json

if TYPE_CHECKING:
    from pipelines.gates import Finding
    from pipelines.gates.comparison import Comparison
    from pipelines.registry.aliases import Move

EXAMPLE = """examples:
  cczoo promote smartsbd-dt --dry-run
  cczoo promote smartsbd-dt --features data/processed/sbd.parquet --reason "lossy links"
  cczoo promote tcco --reason "ten seeds"     # a policy: played in the league's families
  cczoo promote smartsbd-dt --log
NAME is a registered model, NAME@ALIAS, NAME/VERSION or NAME?group=GROUP; @candidate by default."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("name", help="registered model")
    parser.add_argument("--to", default="champion", choices=["champion"], help="alias to move")
    parser.add_argument(
        "--features",
        type=Path,
        help="data with the test set (default: where make repro leaves it; without it the models' "
        "own samples)",
    )
    selection.add_arguments(parser)
    parser.add_argument("--params", type=Path, help="settings (default: params.yaml where it is)")
    parser.add_argument("--reason", default="", help="in your own words, for the log")
    parser.add_argument("--dry-run", action="store_true", help="ask the gates, change nothing")
    parser.add_argument("--log", action="store_true", help="print the moves so far instead")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Promote; returns 1 if a gate refuses or another promotion was faster."""
    from data.errors import UserError
    from pipelines import tracking
    from pipelines.registry import aliases, entries

    if args.features is not None and not args.features.is_file():
        raise UserError(f"{args.features}: no such features file: make it with `cczoo features`")
    address = entries.Address.parse(args.name)
    if args.log and tracking.is_missing():
        if args.json:
            print_json([])
        else:
            where, hint = tracking.shown_uri(), entries.nearest(address.registered)
            print(f"{address.registered}: no moves yet: nothing is registered in {where}{hint}")
        return 0
    entries.check_there(address.registered)
    tracking.module()
    with tracking.reported():
        if args.log:
            return print_log(address.registered, args.json)
        try:
            result = _promote(args, address)
        except aliases.Lost as lost:
            result = {"ok": False, "name": address.registered, "problems": [str(lost)]}
    if args.json:
        print_json(result)
    else:
        _print(result)
    return 0 if result["ok"] else 1


def _promote(args: argparse.Namespace, address: Any) -> dict[str, Any]:
    from dataclasses import replace

    from pipelines import gates, params
    from pipelines.registry import aliases, entries

    name = entries.own(address)
    named = "@" in args.name.partition("?")[0] or address.version
    chosen = entries.find(address if named else replace(address, alias="candidate"))
    to = str(chosen.version)
    if not args.dry_run:
        aliases.settle(name)
    before = aliases.aliases(name)
    champion = before.get("champion", "")
    result: dict[str, Any] = {"ok": False, "name": name, "from": champion, "to": to}
    result["dry_run"] = args.dry_run
    if to == champion:
        return result | {"problems": [f"{name}: version {to} is @champion already"]}
    path = args.params or (Path("params.yaml") if Path("params.yaml").is_file() else None)
    settings = params.load(path)
    # A group's first own model takes over from the pooled champion, which serves it so far.
    holder = entries.serving(name)
    comparison = _comparison(args.features, settings, chosen, holder)
    findings = gates.judge(comparison, settings.promotion.gates)
    evidence = {
        "gates": {gate: finding.plain() for gate, finding in findings.items()},
        "settings": settings.promotion.model_dump(mode="json"),
        "test_set": _test_set(comparison, findings),
        "difference": _difference(comparison, chosen, holder),
    }
    result |= {**evidence, "problems": []}
    result["problems"] = [f"{g}: {f.reason}" for g, f in findings.items() if f.passed is False]
    if not args.dry_run:
        _log(name, to, findings)
    if result["problems"] or args.dry_run:
        return result | {"ok": not result["problems"]}
    move = aliases.Move(name, "promote", champion, to, champion, evidence, args.reason)
    return result | _moved(move, findings)


def _test_set(comparison: Comparison, findings: Mapping[str, Finding]) -> dict[str, Any]:
    """What an audit needs to find the same test again; of a policy, what the gate played it in."""
    if ENTRY in comparison.candidate.meta.files:
        played = findings["control"].evidence
        what = "of the league's families"
        return {"what": what, "hash": played["scenarios"], "counted": "scenarios",
                "scenarios": played["runs"]}  # fmt: skip
    return {**comparison.pairing.described, "counted": comparison.pairing.leading}


def _log(name: str, version: str, findings: Mapping[str, Finding]) -> None:
    """Let the version say what each gate found, whether it is promoted or not."""
    from pipelines import tracking
    from pipelines.gates.outcome import WORDS

    client = tracking.client()
    for gate, finding in findings.items():
        client.set_model_version_tag(name, version, f"gate.{gate}", WORDS[finding.passed])
        for key, value in finding.logged.items():
            shown = value if isinstance(value, str) else f"{value:.6g}"
            client.set_model_version_tag(name, version, f"gate.{gate}.{key}", shown)


def _moved(move: Move, findings: Mapping[str, Finding]) -> dict[str, Any]:
    from pipelines import tracking
    from pipelines.registry import aliases

    event = aliases.make(move)
    certificate = (
        findings["certificate"].evidence["certificate"] if "certificate" in findings else {}
    )
    if certificate:
        client = tracking.client()
        client.set_model_version_tag(move.name, move.to, "certificate", "valid")
        client.set_model_version_tag(
            move.name, move.to, "certificate_hash", certificate["certificate_hash"]
        )
    return {"ok": True, "event": event}


def _comparison(data: Path | None, settings: Any, chosen: Any, holder: Any) -> Comparison:
    import json

    from models.store import load
    from pipelines.gates.comparison import Comparison
    from pipelines.registry import entries

    return Comparison(
        name=chosen.name,
        candidate=load(entries.fetch(chosen)),
        champion=load(entries.fetch(holder)) if holder is not None else None,
        data=data,
        settings_of=settings.models.of,
        only=json.loads(chosen.tags.get("group", "{}")),
    )


def _difference(comparison: Comparison, chosen: Any, holder: Any) -> dict[str, Any]:
    """Differences of champion and candidate as ``{part: {key: [champion, candidate]}}``."""
    from pipelines import tracking

    def described(model: Any, version: Any) -> dict[str, dict[str, Any]]:
        if model is None:
            return {"metrics": {}, "params": {}, "model": {}, "cost": {}}
        run = tracking.client().get_run(version.run_id)
        metrics = model.read_json("metrics.json").get("headline", {})
        return {
            "metrics": {k: v for k, v in tracking.flatten(metrics).items() if v is not None},
            "params": {k: v for k, v in run.data.params.items() if not k.startswith("promotion.")},
            "model": {
                "kind": model.meta.kind,
                "features": len(model.meta.features),
                "data_hash": model.meta.data_hash,
                "git_commit": version.tags.get("git_commit", ""),
                **{f"{f} bytes": len(model.read(f)) for f in ("model.json", "model.onnx", WEIGHTS)
                   if f in model.meta.files},
            },
            "cost": comparison.costs(model),
        }  # fmt: skip

    old, new = described(comparison.champion, holder), described(comparison.candidate, chosen)
    found: dict[str, Any] = {}
    for part in new:
        keys = sorted(old[part].keys() | new[part].keys())
        pairs = {key: [old[part].get(key), new[part].get(key)] for key in keys}
        found[part] = {k: pair for k, pair in pairs.items() if pair[0] != pair[1]}
    if holder is None:
        found["params"] = {}
    return found


def _print(result: Mapping[str, Any]) -> None:
    from pipelines.gates.outcome import print_gates, print_version

    for part, pairs in result.get("difference", {}).items():
        for key, (old, new) in pairs.items():
            print(f"{part:<8} {key:<40} {_short(old)} -> {_short(new)}")
    print_gates(result.get("gates", {}))
    if "test_set" in result:
        test = result["test_set"]
        count = f"{test[test['counted']]} {test['counted']}"
        print(f"test set {test['what']}: {count}, {test['hash'][:12]}")
    for problem in result["problems"]:
        print(f"refused: {problem}", file=sys.stderr)
    if result["ok"]:
        print_version(result, "@champion")


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)[:40]


def print_log(name: str, as_json: bool) -> int:
    """Print a model's audit log; returns 1 if the log was tampered with."""
    from pipelines.registry import aliases, entries

    events = aliases.history(name)
    if not events:
        entries.serving(name)  # A name that was mistyped has no moves either.
    if as_json:
        print_json(events)
    else:
        if not events:
            print(f"{name}: no moves yet; the first one: cczoo promote {name}")
        for event in events:
            mark = (
                "" if event["intact"] else "  NOT INTACT: an earlier event was changed or removed"
            )
            what = f"{event['action']} {event['from'] or '-'} -> {event['to']}"
            print(f"{event['when']}  {what:<20} {event['who']}  {event['reason']}{mark}".rstrip())
    return 0 if all(event["intact"] for event in events) else 1
