"""Keep the code that each stage of ``dvc.yaml`` depends on equal to the code that it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from data.errors import UserError
from data.files import write_text
from models.families import FAMILIES
from models.rl.agents import AGENTS
from models.rl.line import Agent
from pipelines.gates import GATES
from pipelines.rl.results import SHOWN
from pipelines.stage_imports import PACKAGES, Project, Symbol

EXAMPLE = "example: python -m pipelines.stages --write"
COMMAND: tuple[Symbol, ...] = (("pipelines.cli", ""),)
TRAIN: tuple[Symbol, ...] = (
    ("pipelines.train", "add_arguments"),
    ("pipelines.sbd.train.command", "add_arguments"),
    ("pipelines.sbd.train.shared", "job_of"),
)
FEATURES: tuple[Symbol, ...] = (
    ("pipelines.featurize", "add_arguments"),
    ("pipelines.featurize", "of_windows"),
)
AGENT: tuple[Symbol, ...] = (
    ("pipelines.train", "add_arguments"),
    ("pipelines.rl.command", "add_arguments"),
    ("pipelines.rl.command", "_train"),
    ("pipelines.rl.given", "budgeted"),
    ("pipelines.rl.given", "folder"),
    ("pipelines.rl.budget", "trainable"),
    ("pipelines.rl.judged", "judged"),
    ("models.rl.agents", "settings"),
)


def _named(line: Agent) -> tuple[Symbol, ...]:
    """What an agent's line names: code that is opened by these names."""
    parts = (name.partition(":") for name in (line.maker, line.algorithm, line.params))
    return tuple((module, symbol) for module, _, symbol in parts)


TESTS: tuple[Symbol, ...] = tuple((line.module, "stored_test") for line in FAMILIES.values())
BLOCKS: tuple[Symbol, ...] = tuple((line.module, "blocks") for line in FAMILIES.values())
ENTRIES: dict[str, tuple[Symbol, ...]] = {
    "params": (
        ("pipelines.check_params", "main"),
        *((gate, "Settings") for gate in GATES.values()),
        ("pipelines.rl.budget", "trainable"),
        *(one for line in AGENTS.values() for one in _named(line)[2:]),
    ),
    "ingest": (*COMMAND, ("pipelines.ingest", "run")),
    "features": (*COMMAND, *FEATURES),
    "search": (
        *COMMAND,
        *TRAIN,
        ("pipelines.sbd.train.search", ""),
        ("models.sbd.train.steps", "step_search"),
    ),
    "protocol": (
        *COMMAND,
        *TRAIN,
        ("pipelines.sbd.train.protocol", ""),
        ("models.sbd.train.steps", "step_protocol"),
    ),
    "series": (*COMMAND, *FEATURES),
    "neural": (
        *COMMAND,
        *TRAIN,
        ("pipelines.sbd.train.neural", ""),
        ("pipelines.sbd.neural_job", "NeuralJob"),
        ("pipelines.sbd.neural_fit", "fit"),
    ),
    "qos": (
        *COMMAND,
        ("pipelines.qos.command", "run"),
        ("pipelines.qos.sessions", "run"),
        ("pipelines.train", "add_arguments"),
        ("pipelines.train_family", "run"),
        ("models.qos.family", "train"),
        ("models.qos.family", "card"),
    ),
    "fit": (
        *COMMAND,
        *TRAIN,
        ("pipelines.sbd.train.fit", ""),
        ("pipelines.sbd.fit", "step_fit"),
        ("pipelines.zoo.command", "add_arguments"),
        ("pipelines.zoo.add", "add"),
        *TESTS,
    ),
    "groups": (
        *COMMAND,
        *TRAIN,
        ("pipelines.sbd.train.groups", ""),
        ("pipelines.sbd.groups", "run"),
    ),
    "reproduced": (
        *COMMAND,
        ("pipelines.zoo.command", "add_arguments"),
        ("pipelines.zoo.reproduced", "run"),
    ),
    "bundle": (*COMMAND, ("pipelines.export", "run")),
    "verify": (*COMMAND, ("pipelines.verify", "run")),
    **{f"agent-{name}": (*COMMAND, *AGENT, *_named(line)) for name, line in AGENTS.items()},
    "report": (*COMMAND, ("pipelines.report", "run"), *BLOCKS),
    "register": (("pipelines.registry.register", "run"),),
}
"""Stage -> the functions that its commands call, behind the dispatch of ``cczoo``."""
READ: dict[str, tuple[str, ...]] = {
    f"agent-{name}": (f"data/scenarios/netsim/{scenario}.yaml",)
    for name, (scenario, _) in SHOWN.items()
}
"""Stage -> files that it reads by names which no line of code spells out."""
SETTINGS: tuple[Symbol, ...] = tuple((line.settings, "Params") for line in FAMILIES.values())
"""Code that reads ``params.yaml`` checks all of it, with the settings of every family."""
NEVER: tuple[Symbol, ...] = (
    ("pipelines.gates", "gate"),
    ("pipelines.names", "check"),
    ("models.families", "family"),
    ("models.families", "settings_of"),
    ("pipelines.rl.budget", "trainable"),
    ("pipelines.sources", "policy_source"),
    ("export.feature_code.policy", "*"),
    ("pipelines.zoo", "policies"),
    *(("pipelines.zoo.policies", name) for name in ("is_policy", "is_training", "made", "verify")),
)
"""No stage makes, plays or exports policies of the zoo. Gates are asked at promotion only. Looking
up a mistyped name opens the registries of every command, and changes no result. A stage that calls
functions of families names them itself."""
MADE = (
    "data/raw",
    "data/interim",
    "data/processed",
    "data/reference",
    "models/trained",
    "models/zoo",
)
"""Folders within the packages that hold no code."""


def code_of(stage: str, project: Project) -> list[str]:
    """Find the files and whole folders of this project's code that a stage runs, sorted.

    Parameters
    ----------
    stage : str
        A key of :data:`ENTRIES`.
    project : Project

    Returns
    -------
    list of str
        The stage's ``deps``; a folder stands for its files if the stage runs all of them.

    Raises
    ------
    UserError
        When `ENTRIES` doesn't have the stage.
    """
    if stage not in ENTRIES:
        raise UserError(
            f"dvc.yaml: stage {stage!r}: say in pipelines/stages.py which functions it calls"
        )
    without = {*NEVER} - {*ENTRIES[stage]}
    files = project.closure(ENTRIES[stage], without) | {*READ.get(stage, ())}
    if "pipelines/params.py" in files:
        files |= project.closure(SETTINGS, without)
    return folded(files, project.files)


def folded(files: Iterable[str], known: Iterable[str]) -> list[str]:
    """Replace the files of each folder that is used as a whole by the folder."""
    used = set(files)
    missing = {path for path in set(known) - used if not path.endswith("__init__.py")}
    broken = {str(parent) for path in missing for parent in PurePosixPath(path).parents}
    found = set()
    for path in used:
        whole = [
            str(parent)
            for parent in PurePosixPath(path).parents
            if str(parent) not in broken and str(parent) not in (".", *PACKAGES)
        ]
        found.add(whole[-1] if whole else path)
    return sorted(found)


def is_code(dependency: str) -> bool:
    """Whether a dependency is this project's code, not data."""
    made = any(dependency == folder or dependency.startswith(f"{folder}/") for folder in MADE)
    return dependency.partition("/")[0] in PACKAGES and not made


def rewritten(tree: dict[str, Any], project: Project) -> dict[str, list[str]]:
    """Dependencies of each stage: the data as they stand, then the computed code."""
    return {
        name: [d for d in stage.get("deps", []) if not is_code(d)] + code_of(name, project)
        for name, stage in tree["stages"].items()
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the dependencies, or print which stages' differ; returns 1 if some do."""
    from ruamel.yaml import YAML
    from ruamel.yaml.compat import StringIO

    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLE)
    parser.add_argument("--write", action="store_true", help="write dvc.yaml (default: only check)")
    args = parser.parse_args(arguments)
    root = Path(__file__).resolve().parent.parent
    path = root / "dvc.yaml"
    yaml = YAML()
    yaml.width, yaml.preserve_quotes = 120, True
    tree = yaml.load(path.read_text(encoding="utf-8"))
    wanted = rewritten(tree, Project(root))
    wrong = [n for n, deps in wanted.items() if deps != list(tree["stages"][n].get("deps", []))]
    for name in wrong:
        now, then = set(tree["stages"][name].get("deps", [])), set(wanted[name])
        print(
            f"{name}: missing {sorted(then - now)}, not run {sorted(now - then)}", file=sys.stderr
        )
        tree["stages"][name]["deps"] = wanted[name]
    if wrong and args.write:
        text = StringIO()
        yaml.indent(mapping=2, sequence=4, offset=2)
        yaml.dump(tree, text)
        write_text(path, text.getvalue())
        return 0
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except UserError as mistake:
        print(f"stages: {mistake}", file=sys.stderr)
        raise SystemExit(2) from None
