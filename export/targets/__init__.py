"""Makes files of models, each kind of file by a target.

A target is a module with

- ``SUMMARY``: one line for ``cczoo export --list``;
- ``emit(source, options) -> {file name: text or bytes}``;
- optionally ``again(bundle, source, options) -> {file name: bytes}``: its files made anew from a
  bundle, if ``emit`` needs more than that or the files are data; see :mod:`export.bundle.reemit`;
- optionally ``CONFINABLE = False``: its files can't be proved in a sandbox;
- optionally ``refuses(form) -> str``: why it can't carry this very form, empty if it can;
- optionally ``stated(source, options, files) -> dict``: what else the manifest states of them;
- ``prove(bundle, vectors, params, work) -> dict``: runs the files and compares, see
  :mod:`export.verify`.

Which kinds of forms it carries stands in :data:`TARGETS`, so that a list of the zoo need not import
what writes files.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from data.errors import UserError, unknown_name
from export.functions import FUNCTIONS

if TYPE_CHECKING:
    from export.params import Options, VerifyParams
    from export.source import Source
    from models.store import ZooModel

TREES = ("tree", "forest", "trees")
PLAIN = (*TREES, "linear", "lut", "mlp", "rbf")
"""Kinds without a state, of any number of features."""
STATEFUL = ("gru", "lstm")
"""Kinds that remember: their ``evaluate`` takes the rows as one sequence from the zero state."""
RECURRENT = "recurrent"
"""Kind of models without a form whose answers depend on a state, which their ONNX file has."""

PROGRAM = "program"
"""Kind of the form that any network gets when a target needs integers of it."""


@dataclass(frozen=True)
class Registered:
    """A target's line in the registry.

    Attributes
    ----------
    module : str
        Where it is.
    takes : tuple of str
        Kinds of forms that it carries; ``"float"`` stands for models that exist as ONNX and answer
        by one observation, `RECURRENT` for those that remember.
    widest : int, optional
        The most features that it takes.
    """

    module: str
    takes: tuple[str, ...]
    widest: int | None = None

    def carries(self, kinds: set[str], features: int) -> bool:
        """Whether it takes one of these kinds of so many features."""
        fits = self.widest is None or features <= self.widest
        return fits and not kinds.isdisjoint(self.takes)


TARGETS: dict[str, Registered] = {
    "bpf": Registered("export.targets.bpf", (*TREES, "linear", "lut", "mlp", "rbf", PROGRAM)),
    "c": Registered("export.targets.c", (*PLAIN, PROGRAM)),
    "json": Registered("export.targets.json", (*PLAIN, "grid", *STATEFUL, PROGRAM)),
    "lut": Registered("export.targets.lut", (*PLAIN, "grid", "float"), widest=128),
    "mlp-c": Registered("export.targets.mlp_c", ("mlp", *STATEFUL)),
    "onnx": Registered("export.targets.onnx", ("float", RECURRENT)),
    "python": Registered("export.targets.python", PLAIN),
    "table": Registered("export.targets.table", (*TREES, "linear", "mlp")),
}
"""Name -> module and what it carries."""


class Target(Protocol):
    """Functions and constants of a target's module."""

    SUMMARY: str

    def emit(self, source: Source, options: Options) -> Mapping[str, str | bytes]:
        """Make the target's files."""
        ...

    def prove(self, bundle: Any, vectors: Any, params: VerifyParams, work: Path) -> dict[str, Any]:
        """Build and run the target's files, and compare."""
        ...


def target(name: str) -> Target:
    """A target by its name.

    Raises
    ------
    UserError
        With the nearest name, if there is no such target.
    """
    if name not in TARGETS:
        raise unknown_name("target", name, TARGETS)
    return cast(Target, importlib.import_module(TARGETS[name].module))


def fitting(source: Source) -> list[str]:
    """Names of the targets that can carry a model.

    Of a network without a form this makes a program: only the attempt says whether it has one.
    """
    return _carried(lowered(source, TARGETS))


def _carried(source: Source) -> list[str]:
    has = {RECURRENT if _remembers(source) else "float"} if source.onnx else set()
    if source.form is not None:
        has.add(source.form.kind)
    found = carrying(has, len(source.features))
    return [name for name in found if not _refused(name, source)]


def lowered(source: Source, names: Iterable[str]) -> Source:
    """The model with a program as its form, if one of the targets needs integers and it has none.

    Parameters
    ----------
    source : Source
    names : iterable of str
        Targets; unknown ones are left to `emit`.
    """
    if source.form is not None or not source.onnx:
        return source
    if not any(PROGRAM in TARGETS[name].takes for name in names if name in TARGETS):
        return source
    # It takes seconds, and is kept as a cached property is. It is none of `Source`, since whatever
    # imports that would depend on all that lowers a network.
    kept = vars(source)
    if "_as_program" not in kept:
        from export.program.made import with_program

        kept["_as_program"] = with_program(source)
    return cast("Source", kept["_as_program"])


def _remembers(source: Source) -> bool:
    if source.form is not None:
        return source.form.kind in STATEFUL or bool(getattr(source.form, "states", ()))
    from export.onnx.metadata import states_of

    return bool(source.onnx and states_of(source.onnx, source.name))


def _refused(name: str, source: Source) -> str:
    function = getattr(target(name), "refuses", None)
    return "" if function is None or source.form is None else str(function(source.form))


def carrying(kinds: set[str], features: int) -> list[str]:
    """Names of the targets that take one of these kinds with that number of features."""
    return [name for name, line in TARGETS.items() if line.carries(kinds, features)]


def targets_of(model: ZooModel) -> list[str]:
    """Names of the targets that can carry a zoo entry."""
    from models.rl.networks import STATELESS
    from models.store import POLICY

    files = model.meta.files
    has = {model.meta.kind} if "model.json" in files else set()
    if POLICY in files and not has:
        has = {"float" if model.meta.kind in STATELESS else RECURRENT, PROGRAM}
        return carrying(has, len(model.meta.features))
    if "model.onnx" in files or model.meta.name in FUNCTIONS:
        has.add(RECURRENT if model.meta.kind in STATEFUL else "float")
    if "model.onnx" in files and "model.json" not in files and model.meta.kind == "neural":
        has.add(PROGRAM)
    return carrying(has, len(model.meta.features))


def emit(name: str, source: Source, options: Options) -> dict[str, bytes]:
    """Make one target's files.

    Raises
    ------
    UserError
        When the target can't carry this model.
    """
    chosen = target(name)
    source = lowered(source, [name])
    if name not in _carried(source):
        state = "its answers depend on a state" if _remembers(source) else ""
        reason = source.no_form or _refused(name, source) or state
        why = f" ({reason})" if reason else ""
        raise UserError(
            f"target {name!r} can't carry {source.name!r}, a {source.kind}{why}: "
            f"try {', '.join(fitting(source)) or 'training it again'}"
        )
    files = chosen.emit(source, options)
    return {k: v.encode() if isinstance(v, str) else v for k, v in files.items()}


def stated(
    name: str, source: Source, options: Options, files: Mapping[str, bytes]
) -> dict[str, Any]:
    """What the manifest states of a target's files besides their names, such as measured losses."""
    function = getattr(target(name), "stated", None)
    return {} if function is None else dict(function(source, options, files))
