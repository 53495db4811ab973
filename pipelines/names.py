"""Look up the names that a user gives before anything is imported that takes long.

The commands look them up too, in the same registries; this only spares a mistyped name the wait.
Nothing but the standard library is imported here, nor by the modules that hold the registries.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import data
import models
from data.errors import UserError, unknown_name

_SCENARIOS = Path(data.__file__).parent / "scenarios"
_ZOO = Path(models.__file__).parent / "zoo"


class Parser(argparse.ArgumentParser):
    """A parser that refuses unknown choices in one line with the nearest one, and empty paths."""

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        if not arg_string and (action.type is Path or action.metavar == "PATH"):
            # Path("") would be the directory at hand.
            name = action.option_strings[-1] if action.option_strings else action.dest.upper()
            raise UserError(f"{name} is empty: give a file or a folder, . for this one")
        return super()._get_value(action, arg_string)

    def error(self, message: str) -> NoReturn:
        """Refuse in one line, as every other mistake is refused."""
        raise UserError(f"{message}: see `{self.prog} --help`")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            kind = action.option_strings[-1] if action.option_strings else action.dest
            raise unknown_name(kind, str(value), map(str, action.choices))


def check(command: str, args: argparse.Namespace) -> None:
    """Refuse names that a command would refuse after its imports.

    Parameters
    ----------
    command : str
        The subcommand.
    args : Namespace
        Its arguments.

    Raises
    ------
    UserError
        With the nearest name.
    """
    given = vars(args)
    action = given.get("action")
    if command == "ingest" and args.format != "auto":
        from data.formats import FORMATS

        _known("format", args.format, FORMATS)
    if command == "lab" and action in {"run", "collect"}:
        name = given.get("scenario") or given.get("campaign")
        _scenario(str(name), _SCENARIOS)
    if command == "export":
        from export.targets import TARGETS

        for target in args.target:
            _known("target", target, TARGETS)
    if command in {"train", "verify"} and given.get("budget"):
        from export.budget import FIGURES

        for part in filter(None, args.budget.split(",")):
            _known("budget key", part.partition("=")[0].rpartition(".")[2].strip(), FIGURES)
    if command == "predict":
        _known("prediction", args.what, ("sbd",))
    if command == "league":
        from pipelines.league import command as league
        from pipelines.league import players

        players.named(args.cc)
        league.chosen(args.only)
        for name in filter(None, args.scenario.split(",")):
            _scenario(name, _SCENARIOS / "netsim")
    kept = command == "zoo" and action in {"show", "verify", "prove", "certify"}
    if (kept or command in {"evaluate", "drift", "predict", "export"}) and given.get("model"):
        functions = command == "export" or action == "prove"
        _model(str(args.model), given.get("zoo") or _ZOO, functions)


def check_simulation(rest: Sequence[str]) -> None:
    """Refuse unknown scenarios and controllers of ``cczoo evaluate cc``.

    Parameters
    ----------
    rest : sequence of str
        Arguments as they were given, since parsing them would need the simulator's imports.
    """
    from data.netsim.cc import CONTROLS
    from models import policies

    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--scenario", default="")
    parser.add_argument("--cc", default="all")
    try:
        known, _ = parser.parse_known_args(list(rest))
    except argparse.ArgumentError:
        return  # the command itself reports what is wrong
    for name in filter(None, known.scenario.split(",")):
        _scenario(name, _SCENARIOS / "netsim")
    for name in filter(None, map(str.strip, known.cc.split(","))):
        if name != "all" and name not in CONTROLS:
            policies.check_name(name, _ZOO, CONTROLS)


def _known(kind: str, name: str, names: Iterable[str]) -> None:
    if name not in (names := tuple(names)):
        raise unknown_name(kind, name, names)


def _scenario(name: str, folder: Path) -> None:
    if Path(name).exists() or name.endswith((".yaml", ".yml")):
        return
    _known("scenario", name, (path.stem for path in folder.glob("*.yaml")))


def _model(name: str, zoo: Path, functions: bool) -> None:
    from export.functions import FUNCTIONS

    if name.startswith("rule:"):
        from models.sbd.rules import RULES

        _known("rule-based scheme", name.removeprefix("rule:"), RULES)
    elif not (os.sep in name or name.startswith("registry:") or name.endswith(".onnx")):
        if Path(name).exists():
            return
        kept = [path.parent.name for path in zoo.glob("*/meta.json")]
        _known("model", name, [*(FUNCTIONS if functions else ()), *kept])
