"""Translate old spellings of commands into today's; the next version drops this.

``cczoo train sbd`` was one parser for several trainings, and ``cczoo evaluate sbd --drift`` a
command of its own under the name of evaluation. If an old spelling is used, the command that was
meant is run, and one line on the standard error gives the new spelling in full.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from typing import NoReturn

_SEARCH = {"--backend", "--seconds", "--trials", "--splits"}
_REGISTRY = {"--offline", "--no-register"}
_TRAIN = (
    *("--features", "--events", "--out", "--zoo", "--step", "--budget", "--groups", "--model"),
    *("--family", "--backend", "--seconds", "--trials", "--splits", "--params", "--seed"),
)
_EVALUATE = (
    *("--model", "--features", "--events", "--predictions", "--by", "--reference", "--plot"),
    "--params",
)
_STEPS = {"--family", *_SEARCH}
_FLAGS = ("--json", "--drift", *sorted(_REGISTRY))
_STEP_NAMES = ("search", "protocol", "fit")
PASSED_OVER: dict[str, set[str]] = {
    "all": _STEPS,
    "search": {*_STEPS, *_REGISTRY, "--events", "--zoo"},
    "protocol": {*_STEPS, *_REGISTRY, "--zoo"},
    "fit": {*_STEPS, *_REGISTRY, "--events"},
    "budget": _SEARCH,
    "groups": _SEARCH,
    "auto": {"--splits"},
    "auto-protocol": _REGISTRY,
    "neural all": {*_STEPS, *_REGISTRY},
    "neural fit": {*_STEPS, *_REGISTRY},
    "neural search": {*_STEPS, *_REGISTRY, "--zoo"},
    "neural protocol": {*_STEPS, *_REGISTRY, "--zoo"},
}
"""Training -> options that it accepted but ignored. All others that it doesn't have it refused, as
its own parser does now."""
_Options = dict[str, str]
"""Option -> its value; "given" for a flag."""


class _Unreadable(Exception):
    """The old parser couldn't have read this command line: there is nothing to translate."""


class _Old(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Unreadable(message)


def translated(command: str, words: Sequence[str]) -> list[str]:
    """Arguments of ``cczoo`` as they are spelled now.

    Parameters
    ----------
    command : str
        The subcommand.
    words : sequence of str
        The words that were given after it.

    Returns
    -------
    list of str
        The subcommand and its words: as given if nothing in them is old, else translated, which
        is reported on the standard error.
    """
    given = [command, *words]
    found = {"train": _training, "evaluate": _drift}[command](words)
    if found is None:
        return given
    print(
        f"cczoo {command}: the next version will not know this spelling; write: "
        f"{shlex.join(['cczoo', *found])}",
        file=sys.stderr,
    )
    return found


def _read(words: Sequence[str], values: Sequence[str], flags: Sequence[str]) -> _Options:
    """Options as the old parser read them; raises `_Unreadable` if there is anything else."""
    parser = _Old(add_help=False)
    parser.add_argument("task", choices=["sbd"])
    for name in values:
        parser.add_argument(name, dest=name, choices=_STEP_NAMES if name == "--step" else None)
    for name in flags:
        parser.add_argument(name, dest=name, action="store_const", const="given")
    found = vars(parser.parse_args(list(words)))
    return {name: value for name, value in found.items() if name != "task" and value is not None}


def _spelled(options: _Options) -> list[str]:
    words = []
    for name, value in options.items():
        if name in _FLAGS:
            words += [name]
        else:
            # A value that looks like an option has to be tied to its own.
            words += [f"{name}={value}"] if value.startswith("-") else [name, value]
    return words


def _drift(words: Sequence[str]) -> list[str] | None:
    try:
        options = _read(words, _EVALUATE, ("--drift", "--json"))
    except _Unreadable:
        return None
    if options.pop("--drift", None) is None:
        return None
    return ["drift", *_spelled(options)]


def _training(words: Sequence[str]) -> list[str] | None:
    try:
        options = _read(words, _TRAIN, (*sorted(_REGISTRY), "--json"))
    except _Unreadable:
        return None
    training, own = _kind(options)
    rest = {name: v for name, v in options.items() if name not in PASSED_OVER[training]}
    return ["train", "sbd", *training.split(), *own, *_spelled(rest)]


def _kind(options: _Options) -> tuple[str, list[str]]:
    """The training that was meant, and its words today; removes their options."""
    if (by := options.pop("--groups", None)) is not None:
        events = options.pop("--events", None)
        if by != "auto":
            return "groups", ["--by", by]
        return "groups", [] if events is None else ["--conditions", events]
    model, step = options.get("--model"), options.get("--step")
    if model == "neural":
        del options["--model"]
        return f"neural {options.pop('--step', 'all')}", []
    if model == "auto":
        del options["--model"]
        if step != "protocol":
            return "auto", []
        del options["--step"]
        return "auto-protocol", []
    if model is not None or "--budget" in options:
        limits = options.pop("--budget", None)
        return "budget", [] if limits is None else [limits]
    return options.pop("--step", "all"), []
