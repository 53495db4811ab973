"""Zoo entries of trained policies: made of a training's folder, played again, measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from models import policies

if TYPE_CHECKING:
    from models.store import ZooModel

REPLAY, CURVE = "replay.json", "curve.json"


def is_training(folder: Path) -> bool:
    """Whether a folder is what ``cczoo train`` of an agent has left."""
    return any(folder.glob("checkpoint-*"))


def is_policy(model: ZooModel) -> bool:
    """Whether a zoo entry is a policy."""
    return policies.ENTRY in model.meta.files


def made(
    folder: Path, zoo: Path, seeds: int, settings: dict[str, Any] | None = None
) -> list[ZooModel]:
    """Make the entries of a training's best network: one for each kind of parts.

    Parameters
    ----------
    folder : Path
        ``reports/rl/macc/seed-7``.
    zoo : Path
        Where the entries are written.
    seeds : int
        Runs of each scenario for the card; none with 0.
    settings : dict, optional
        Laid over these scenarios.

    Raises
    ------
    UserError
        When there is no checkpoint, or nothing of it can be released.
    """
    from data.command_line import made_by
    from export.description import json_file
    from models import store
    from models.closedloop import Player
    from models.policies import card, entry, judged, replay
    from models.policies.policy import of_training
    from models.rl.networks import NETWORKS
    from pipelines.output import progress

    whole = of_training(folder)
    names = entry.released_as(whole)
    if whole.network not in NETWORKS:
        raise UserError(f"{folder}: no line of {whole.network} in models/rl/networks/__init__.py")
    if not names:
        raise UserError(f"{folder}: no entry for {whole.agent!r} in models/policies/__init__.py")
    path = folder / CURVE
    curve = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    command, found = made_by(), []
    for name, kinds in names.items():
        policy = whole.only(name, kinds)
        rows = judged.rows(Player(policy), seeds, settings, progress) if seeds else []
        for row in rows:
            # What a machine takes is measured beside the entry, which holds no times.
            row["metrics"].pop("decision_us", None)
        description = entry.described(policy)
        text = card.render(name, description, curve, rows, command)
        files = {
            **entry.files(policy),
            REPLAY: json_file(replay.recorded(policy)),
            CURVE: json_file({"points": curve}),
            "metrics.json": json_file({"headline": {}, "evaluated": rows}),
            "card.md": text.encode(),
        }
        found.append(store.save(zoo / name, entry.meta(policy, command), files))
    return found


def verify(model: ZooModel) -> dict[str, Any]:
    """Play the recorded scenario again.

    Returns
    -------
    dict
        ``decisions`` and ``problems``.
    """
    from models.policies import entry, replay

    kept = model.read_json(REPLAY)
    problems = replay.differing(entry.of_entry(model), kept)
    return {"decisions": len(kept["decisions"]), "problems": problems}


def same(one: ZooModel, other: ZooModel) -> bool:
    """Whether both act alike: weights and description are the same, byte by byte."""
    names = policies.acts_by(one.meta.files)
    return all(one.meta.files[name] == other.meta.files.get(name) for name in names)


def measured(model: ZooModel) -> dict[str, bytes]:
    """Files to stand beside an entry: what a decision costs on this machine."""
    from export.bundle.certificate import machine
    from export.description import json_file
    from models.closedloop import Player
    from models.policies.entry import of_entry
    from pipelines.zoo import certify
    from pipelines.zoo.certify import HEADING, spent

    if policies.NODES in model.meta.files:
        # A tree is proved and measured as any model that has an integer form.
        return certify.measured(model)
    cost = Player(of_entry(model)).decision_us
    here = machine()
    rows = [{"target": "torch", "ns_per_decision": round(1e3 * cost), "measured": "here"}]
    text = (
        f"{HEADING}\nTime from an observation to the action of one simulation's parts, in torch on "
        f"one thread in double\nprecision, by the machine that released this entry "
        f"({here.get('cpu') or 'CPU unknown'}): {spent(1e3 * cost)}.\n"
    )
    return {"costs.json": json_file({"rows": rows, **here}), "costs.md": text.encode()}
