"""Families of models, and what the house asks of each.

A family is a folder below ``models`` with a module that meets :class:`Family`, and one line in
:data:`FAMILIES`. ``cczoo train`` and ``evaluate``, ``cczoo zoo verify``, the gates of a promotion,
the registry and the report go through this dict and know no family by its name.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from data.errors import UserError, unknown_name

if TYPE_CHECKING:
    from data.strict import Strict
    from models.judged import Asked, Block, Figure, Pairing, StoredTest
    from models.meta import Meta
    from models.store import ZooModel
    from models.trained import Job, Trained


@dataclass(frozen=True)
class Registered:
    """A family's line in the registry.

    Attributes
    ----------
    module : str
        Meets :class:`Family`.
    settings : str
        Module with ``Params``, the family's settings, all with defaults: ``models.NAME`` of
        ``params.yaml``. Every command validates them, so that it imports nothing heavy.
    observes : tuple of str
        Families of features that its models observe, as ``Meta.family`` names them. No two
        families of models share one.
    experiment : str
        Name of its experiment in the tracking store.
    summary : str
        What its models are, in a few words.
    """

    module: str
    settings: str
    observes: tuple[str, ...]
    experiment: str
    summary: str


FAMILIES: dict[str, Registered] = {
    "sbd": Registered(
        "models.sbd.family",
        "models.sbd.params",
        ("smartsbd", "smartsbd-plus", "smartsbd-plus-kernel", "smartsbd-series"),
        "smartsbd",
        "classifiers of shared bottlenecks (SmartSBD)",
    ),
    "qos": Registered(
        "models.qos.family",
        "models.qos.params",
        ("qos",),
        "qos",
        "a Bayesian network from a stream's context to its quality (MP-CDG)",
    ),
}
"""Name, as in ``cczoo train NAME`` and ``models.NAME`` of ``params.yaml``, -> the family."""


@dataclass(frozen=True)
class PolicyKind:
    """A line of :data:`POLICIES`.

    Attributes
    ----------
    environment : str
        Key of `models.policies.scenes.ENVIRONMENTS`.
    kind : int
        Kind of parts that it decides for, of those that its environment has.
    experiment : str
        Name of the experiment in the tracking store that its registrations go to.
    summary : str
        What it is, in a few words.
    """

    environment: str
    kind: int
    experiment: str
    summary: str


POLICIES: dict[str, PolicyKind] = {
    "tcco": PolicyKind("tcco", 0, "tcco", "windows of all subflows of a connection (TCCO)"),
    "nuwa": PolicyKind("nuwa", 0, "nuwa", "k of a receiver that sets the window (Nuwa-RL)"),
    "macc-sender": PolicyKind("macc", 0, "macc", "windows of senders (MA-CC)"),
    "macc-router": PolicyKind("macc", 1, "macc", "drops of routers (MA-CC)"),
}
"""Name, as ``Meta.family`` has it, -> a kind of trained policy.

Agents are trained, played and judged by their own registries (docs/architecture.md): a line here is
what the registry of models and its gates ask."""


class Family(Protocol):
    """What a family's module holds."""

    def data(self, observes: str) -> Path:
        """Where ``make repro`` leaves the data of models that observe these features."""
        ...

    def train(self, job: Job) -> Iterable[Trained]:
        """Train what the family keeps; each model as soon as it is ready to be written."""
        ...

    def evaluate(self, entry: ZooModel, data: Path) -> Mapping[str, Figure]:
        """Measure an entry on data; figures by their names, the most telling first."""
        ...

    def stored_test(self, entry: ZooModel) -> StoredTest | None:
        """The test that was stored with an entry, None where none was."""
        ...

    def paired(self, candidate: ZooModel, champion: ZooModel | None, asked: Asked) -> Pairing:
        """Both models on the same test, thing by thing."""
        ...

    def card(self, trained: Trained) -> str:
        """The model card, in Markdown."""
        ...

    def blocks(self, root: Path) -> Sequence[Block]:
        """What the report shows of the family, from the files below ``root``."""
        ...


def family(name: str) -> Family:
    """A family by its name.

    Raises
    ------
    UserError
        With the nearest name, where there is none.
    """
    if name not in FAMILIES:
        raise unknown_name("family of models", name, FAMILIES)
    return cast(Family, importlib.import_module(FAMILIES[name].module))


def settings_of(name: str) -> type[Strict]:
    """Type of a family's settings; as :func:`family`."""
    if name not in FAMILIES:
        raise unknown_name("family of models", name, FAMILIES)
    found: type[Strict] = importlib.import_module(FAMILIES[name].settings).Params
    return found


def find(meta: Meta) -> str | None:
    """Name of the family that a model belongs to, by the features that it observes."""
    found = (name for name, line in FAMILIES.items() if meta.family in line.observes)
    return next(found, None)


def name_of(meta: Meta) -> str:
    """As :func:`find`, of a model that must belong to one.

    Raises
    ------
    UserError
        When no family of this version observes its features, or it is a policy.
    """
    name = find(meta)
    if name is not None:
        return name
    if meta.family in POLICIES:
        raise UserError(
            f"model {meta.name!r}: a policy, which belongs to no family of models: play it with "
            "cczoo evaluate cc, or cczoo league"
        )
    raise UserError(
        f"model {meta.name!r}: no family of models observes {meta.family!r}: it was made by "
        "another version of cczoo, or its line in models/families.py is missing"
    )


def kind_of(meta: Meta) -> str:
    """Kind of policy, a key of :data:`POLICIES`, or family of a model, as :func:`name_of`."""
    return meta.family if meta.family in POLICIES else name_of(meta)


def experiment_of(meta: Meta) -> str:
    """Experiment that registrations of a model go to; as :func:`kind_of`."""
    name = kind_of(meta)
    return POLICIES[name].experiment if name in POLICIES else FAMILIES[name].experiment


def family_of(meta: Meta) -> Family:
    """The family that a model belongs to; as :func:`name_of`."""
    return family(name_of(meta))
