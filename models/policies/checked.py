"""Checks of a policy that comes from a file: sizes, weights and settings are what its kind has."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import Field, ValidationError, create_model

from data.errors import UserError
from data.strict import Strict
from models.policies.observed import OBSERVED, actions, observed
from models.policies.policy import SCALES, Policy, Weights
from models.policies.scenes import ENVIRONMENTS
from models.rl.layout import Layout
from models.rl.networks import NETWORKS

Count = Annotated[int, Field(ge=1, le=1000)]
Width = Annotated[int, Field(ge=1, le=8192)]

_ATTENDS: dict[str, Any] = {"subflow_width": Width, "width": Width, "heads": Count,
                            "layers": Count, "context": Width}  # fmt: skip
SIZES: dict[str, dict[str, Any]] = {
    "transformer": _ATTENDS,
    "joint": _ATTENDS,
    "lstm": {"width": Width, "cells": Width},
    "dueling": {"hidden": Annotated[list[Width], Field(min_length=1, max_length=64)]},
    "stacked": {"subflow_width": Width, "width": Width, "context": Width},
    "actor": {"width": Width, "context": Width},
}
"""Network -> those of a training's settings that its shape depends on."""


class Parts(Strict):
    """A description's ``layout``, as of `models.rl.layout.Layout`."""

    kinds: list[Annotated[int, Field(ge=0, le=100)]] = Field(min_length=1, max_length=1000)
    action_counts: list[Count]
    feature_counts: list[Count]
    context: int = Field(ge=1)


def params(environment: str, kind: int, given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """An environment's settings, whole and within their bounds.

    Parameters
    ----------
    environment : str
    kind : int
        Kind of the parts that are decided for.
    given : mapping
        As the description has them.
    where : str
        The description's path, for the message.

    Raises
    ------
    UserError
        When there is no such environment, kind or setting, or nothing is said of what it observes.
    """
    if environment not in ENVIRONMENTS or (environment, kind) not in OBSERVED:
        raise UserError(f"{where}: no parts of kind {kind} in {environment!r}: restore it")
    if "observation" not in given:
        raise UserError(f"{where}: params.observation: not there: restore it")
    settings: Any = ENVIRONMENTS[environment].settings().parse({"params": dict(given)}, where)
    found: dict[str, Any] = settings.params.model_dump(mode="json")
    return found


def layout(
    environment: str, kind: int, set_to: Mapping[str, Any], tree: dict[str, Any], where: str
) -> Layout:
    """The layout that a description has, where it is one of its environment's.

    Parameters
    ----------
    environment, kind, where
        As for `params`.
    set_to : mapping
        What `params` gave.
    tree : dict
        As of `models.rl.layout.Layout.plain`.

    Raises
    ------
    UserError
        When it isn't.
    """
    try:
        plain = Parts.model_validate(tree)
    except ValidationError as error:
        at = ".".join(map(str, ("layout", *error.errors()[0]["loc"])))
        raise UserError(f"{where}: {at}: {error.errors()[0]['msg'].lower()}: restore it") from None
    found = Layout.read(plain.model_dump())
    known = [k for name, k in OBSERVED if name == environment]
    counts = tuple(len(actions(environment, k, set_to)) for k in known)
    features = tuple(len(observed(environment, k)[0]) for k in known)
    same = (found.action_counts, found.feature_counts) == (counts, features)
    if not same or kind not in found.kinds or not set(found.kinds) <= set(known):
        raise UserError(f"{where}: layout: no such parts in {environment!r}: restore it")
    # A team's network acts for any number of parts; one connection's for those it was made for.
    if len(known) == 1 and found.parts != set_to.get("subflows", 1):
        raise UserError(
            f"{where}: layout.kinds: {found.parts} parts, by its params it has "
            f"{set_to.get('subflows', 1)}: restore it"
        )
    return found


def check_weights(policy: Policy, where: str) -> None:
    """Refuse weights that aren't the network's, all of them, each of its shape and finite.

    Nothing is allocated by what a description claims: shapes are compared before.

    Parameters
    ----------
    policy : Policy
        Of a network in `models.rl.networks.NETWORKS`.
    where : str
        The entry's folder, for the message.

    Raises
    ------
    UserError
        One line that says which.
    """
    wanted = _shapes(policy, where)
    wrong = {**dict.fromkeys(wanted.keys() - policy.weights.keys(), "missing"),
             **dict.fromkeys(policy.weights.keys() - wanted.keys(), "unknown")}  # fmt: skip
    for key in sorted(wrong):
        raise UserError(f"{where}: weights: {key} is {wrong[key]}: restore them")
    for key, shape in wanted.items():
        value = policy.weights[key]
        if value.shape != shape:
            raise UserError(
                f"{where}: weights: {key} is {list(value.shape)}, the network has {list(shape)}: "
                "restore them"
            )
        if not np.issubdtype(value.dtype, np.floating) or not np.isfinite(value).all():
            raise UserError(f"{where}: weights: {key} holds what is no finite number: restore them")


def _shapes(policy: Policy, where: str) -> dict[str, tuple[int, ...]]:
    """Name -> shape of all weights that an entry has."""
    import torch

    settings = _sizes(policy, where)
    module, _, name = NETWORKS[policy.network].partition(":")
    network = getattr(importlib.import_module(module), name)
    with torch.device("meta"):
        made = network(model_config={"layout": policy.layout.plain(), "network": settings})
    whole: Weights = {k: v for k, v in made.state_dict().items() if k.startswith("net.")}
    others = [k for k in range(len(policy.layout.action_counts)) if k not in policy.kinds]
    prefixes = tuple(f"net.kinds.{k}." for k in others)
    found = {k: tuple(v.shape) for k, v in whole.items() if not k.startswith(prefixes)}
    rows = (len(policy.layout.action_counts), made.layout.features)
    return found | dict.fromkeys(SCALES, rows)


def _sizes(policy: Policy, where: str) -> dict[str, Any]:
    fields = {key: (kind, ...) for key, kind in SIZES[policy.network].items()}
    sizes: Any = create_model("Sizes", __base__=Strict, logs=(bool, False), **fields)  # type: ignore[call-overload]
    given = {key: policy.settings[key] for key in sizes.model_fields if key in policy.settings}
    found: dict[str, Any] = sizes.parse(given, f"{where}: settings").model_dump()
    if found.get("width", 1) % found.get("heads", 1):
        raise UserError(f"{where}: settings: width must be a multiple of heads")
    return found
