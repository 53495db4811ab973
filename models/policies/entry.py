"""A policy as a zoo entry: a description, weights, and a short run to compare with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import Field

from data.errors import UserError
from data.strict import Strict
from features import derived
from features.spec import schema_hash
from models import families
from models.policies import ENTRY, RELEASED, WEIGHTS, checked
from models.policies.in_tree import NETWORK, TreePolicy
from models.policies.observed import actions, observation_hash, observed
from models.policies.policy import Policy, as_weights
from models.policies.scenes import ENVIRONMENTS
from models.rl.networks import NETWORKS

if TYPE_CHECKING:
    from models.store import ZooModel

FORMAT = 1
TREE = "model.onnx"
"""File of an entry whose policy is a tree."""
FAMILIES = {(line.environment, line.kind): name for name, line in families.POLICIES.items()}
"""Environment and kind of part -> family of what is observed, as ``meta.json`` calls it."""


class Description(Strict):
    """``policy.json``.

    Attributes
    ----------
    format : int
    agent, environment, network : str
        As of `models.policies.policy.Policy`.
    settings, params : mapping
        The training's and the environment's.
    layout : mapping
        `models.rl.layout.Layout.plain`.
    kind : int
        Kind of parts that it decides for.
    interval_us : int
        Time between decisions.
    actions : list of str
        In the order of the network's scores.
    inputs : list of mapping
        ``name``, ``unit``, ``low``, ``high`` of each feature in order, and ``half``: the network
        sees ``x / (x + half)``, then standardised by the weights' own shift and scale.
    observation_hash : str
        `models.policies.observed.observation_hash`.
    """

    format: int = Field(ge=0)
    agent: str
    environment: str
    network: str
    settings: dict[str, Any]
    params: dict[str, Any]
    layout: dict[str, Any]
    kind: int = Field(ge=0)
    interval_us: int = Field(gt=0)
    actions: list[str]
    inputs: list[dict[str, Any]]
    observation_hash: str


def described(policy: Policy) -> Description:
    """What ``policy.json`` says of a policy of one kind of parts."""
    kind, environment = policy.kinds[0], policy.environment
    features, half = observed(environment, kind)
    inputs = [
        {"name": f.name, "unit": f.unit, "low": f.low, "high": f.high, "half": h}
        for f, h in zip(features, half, strict=True)
    ]
    return Description(
        format=FORMAT,
        agent=policy.agent,
        environment=environment,
        network=policy.network,
        settings=dict(policy.settings),
        params=dict(policy.params),
        layout=policy.layout.plain(),
        kind=kind,
        interval_us=policy.params["observation"]["interval_us"],
        actions=list(actions(environment, kind, policy.params)),
        inputs=inputs,
        observation_hash=observation_hash(environment, kind, policy.params),
    )


def meta(policy: Policy, command: str) -> dict[str, Any]:
    """Fields of `models.meta.Meta`."""
    kind = policy.kinds[0]
    features, _ = observed(policy.environment, kind)
    specs = [
        {
            name: getattr(f, name)
            for name in ("name", "unit", "low", "high", "scale", "source", "doc")
        }
        for f in features
    ]
    return {
        "name": policy.name,
        "kind": policy.network,
        "family": FAMILIES[policy.environment, kind],
        "features": [f.name for f in features],
        "feature_specs": specs,
        "schema_hash": schema_hash(features, {}),
        "created_by": command,
        "labels": actions(policy.environment, kind, policy.params),
        "output": {"kind": "action"},
        "no_form": "a policy: its network and what it remembers have no integer form",
    }


def files(policy: Policy) -> dict[str, bytes]:
    """``policy.json`` and the weights."""
    from safetensors.numpy import save

    text = json.dumps(described(policy).model_dump(mode="json"), indent=2, sort_keys=True)
    return {ENTRY: f"{text}\n".encode(), WEIGHTS: save(dict(sorted(policy.weights.items())))}


def of_entry(model: ZooModel) -> Policy:
    """The policy of a zoo entry; neither Ray nor a training's code is needed.

    Raises
    ------
    UserError
        When it is none, its observations aren't those of this version, or its weights aren't the
        network's.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    where = model.directory / ENTRY
    if ENTRY not in model.meta.files or not {WEIGHTS, TREE} & model.meta.files.keys():
        raise UserError(f"{model.directory}: no policy: its meta.json lists no {ENTRY}")
    found = Description.parse(model.read_json(ENTRY), str(where))
    if (
        found.format != FORMAT
        or found.environment not in ENVIRONMENTS
        or found.network not in {*NETWORKS, NETWORK}
    ):
        raise UserError(f"{where}: made by another version of cczoo: train it again")
    params = checked.params(found.environment, found.kind, found.params, str(where))
    if found.observation_hash != observation_hash(found.environment, found.kind, params):
        raise UserError(
            f"{where}: what it observes has been defined anew since it was trained (hash differs): "
            "train it again"
        )
    made: dict[str, Any] = {
        "name": model.meta.name,
        "agent": found.agent,
        "environment": found.environment,
        "network": found.network,
        "settings": found.settings,
        "params": params,
        "layout": checked.layout(found.environment, found.kind, params, found.layout, str(where)),
        "kinds": (found.kind,),
    }
    if found.network == NETWORK:
        return _tree(model, made)
    try:
        weights = load(model.read(WEIGHTS))
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{model.directory / WEIGHTS}: no safetensors ({error}): restore it"
        ) from None
    policy = Policy(**made, weights=weights)
    checked.check_weights(policy, str(model.directory))
    return policy


def _tree(model: ZooModel, made: dict[str, Any]) -> Policy:
    """A tree, where it sees what this version computes."""
    (kind,) = made["kinds"]
    model.check_schema(
        derived.features(made["environment"], kind, observed(made["environment"], kind)[0])
    )
    content = model.read(TREE)
    weights = as_weights(model.meta.name, content)
    return TreePolicy(**made, weights=weights, trees=((kind, content),))


def released_as(policy: Policy) -> dict[str, tuple[int, ...]]:
    """Names under which a training's policy becomes entries -> kinds of parts of each.

    An agent of a paper has names of its own. A comparison or an ablation never takes those: it is
    called as its training is, with the end of the paper's name where it has several kinds.
    """
    lines = {
        name: line
        for name, line in RELEASED.items()
        if line.environment == policy.environment
        and not line.teacher
        and set(line.kinds) <= set(policy.kinds)
    }
    if policy.agent == policy.environment:
        return {name: line.kinds for name, line in lines.items()}
    ends = {name: name.removeprefix(policy.environment) if len(lines) > 1 else "" for name in lines}
    return {f"{policy.agent}{ends[name]}": line.kinds for name, line in lines.items()}
