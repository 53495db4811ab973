"""A trained policy as exporters take it: its network as an ONNX file, decisions to prove it by."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from data.errors import UserError
from export.onnx.metadata import metadata
from export.onnx.run import predict
from export.onnx.torch_file import Ends, written
from export.policy.flat import answers, columns, flat, layout_of, narrowed
from export.source import Source
from features.grid import on_grid
from features.intervals import scaled
from features.whole import divisors, whole
from models.one_thread import one_thread
from models.output import Output
from models.policies import entry
from models.policies.decisions import Recorded, recorded, side_by_side
from models.policies.observed import observed
from models.policies.policy import Policy

if TYPE_CHECKING:
    from models.store import ZooModel

ROWS, SEED = 2048, 20
"""Decisions that are kept with an exported policy, and the seed of the episodes they are from."""
WORST = 1e-5
"""Largest error of the file's scores, of the largest score: what is above it isn't exported."""


def source_of_policy(model: ZooModel, parts: int | None = None) -> Source:
    """A zoo entry of a policy as exporters take it.

    Parameters
    ----------
    model : ZooModel
    parts : int, optional
        Subflows to decide for, by default as many as the policy was trained for.

    Raises
    ------
    UserError
        When it isn't a policy, or PyTorch can't write its network.
    """
    policy = entry.of_entry(model)
    return source(narrowed(policy, parts), model.meta.version, _of_subflows(policy, parts))


def _of_subflows(policy: Policy, parts: int | None) -> Recorded:
    """What was recorded of a policy's connections, of the first subflows alone.

    The network's answers to these differ from those that were given, and are computed anew: a
    recorded observation is one that occurs, whoever acts.
    """
    found = recorded(policy, ROWS, SEED)
    kept = found.there.shape[1] if parts is None else parts
    return Recorded(found.values[:, :kept], found.there[:, :kept])


def source(policy: Policy, version: str, decisions: Recorded) -> Source:
    """A policy as exporters take it.

    Parameters
    ----------
    policy : Policy
        Of one kind of parts.
    version : str
    decisions : Recorded
        What it is proved by.

    Raises
    ------
    UserError
        When PyTorch can't write the network, or the file's scores aren't the network's.
    """
    inputs, labels = columns(policy), answers(policy)
    content = onnx_file(policy)
    parts = layout_of(policy).parts
    features = whole(observed(policy.environment, policy.kinds[0])[0])
    values = on_grid(decisions.values.reshape(-1, len(features)), features)
    kept = Recorded(values.reshape(decisions.values.shape), decisions.there)
    rows = side_by_side(kept.values, kept.there, parts)
    meant = scores(policy, kept)
    found = predict(content, rows, policy.name)
    # Scores of subflows that aren't there are nobody's.
    there = np.repeat(kept.there, meant.shape[1] // parts, axis=1)
    error = float((np.abs(found - meant) * there).max() / np.abs(meant * there).max())
    if not error <= WORST:
        raise UserError(f"{policy.name}: its ONNX form errs by {error:.2g} of its largest score")
    return Source(
        name=policy.name,
        version=version,
        family=entry.FAMILIES[policy.environment, policy.kinds[0]],
        kind=policy.network,
        features=inputs,
        labels=labels,
        threshold=0.5,
        form=None,
        no_form=f"a policy's network; cczoo distill {policy.name} makes a small tree of it",
        onnx=content,
        values=rows,
        probability=meant,
        output=Output(kind="action" if parts == 1 else "scores"),
    )


def onnx_file(policy: Policy) -> bytes:
    """A policy's network as ONNX.

    Inputs are ``features`` [N, inputs] and each state, ``context`` [N, width] for one; outputs are
    ``scores`` [N, labels] and the states after, ``context_after`` for that one. All are float32.
    The metadata hold ``policy``, which is the entry's ``policy.json``: actions, settings, interval.
    """
    network = flat(policy).float()
    names, inputs = network.names(), columns(policy)
    after = tuple(f"{name}_after" for name in names)
    described = entry.described(policy).model_dump(mode="json")
    output = Output(kind="action" if network.parts == 1 else "scores")
    said = metadata(inputs, answers(policy), {}, dict(zip(names, after, strict=True))) | {
        "policy": json.dumps(described, sort_keys=True),
        "output": json.dumps(output.model_dump(mode="json")),
        "parts": str(network.parts),
        "observation_hash": described["observation_hash"],
        "family": entry.FAMILIES[policy.environment, policy.kinds[0]],
    }
    rows = [[(f.low + f.high) / 2 for f in inputs]] * 2
    example = (torch.tensor(rows), *(torch.zeros(2, width) for width in network.widths()))
    ends = Ends(("features", *names), ("scores", *after))
    return written(network, example, ends, policy.name, said)


def scores(policy: Policy, decisions: Recorded) -> NDArray[np.float64]:
    """What the trained network itself answers, in double precision, from one beginning on.

    Returns
    -------
    float64 array [n, A C]
    """
    from models.rl.networks.module import OBS, STATE_IN, STATE_OUT

    layout = layout_of(policy)
    features, half = observed(policy.environment, policy.kinds[0])
    seen = scaled(decisions.values * divisors(features), features, half)
    wide = np.zeros((*seen.shape[:2], layout.features), np.float32)
    wide[..., : seen.shape[2]] = seen
    module = policy.module(layout)
    first = module.get_initial_state()
    count = layout.action_counts[policy.kinds[0]]
    observations = torch.from_numpy(wide).double()
    mask = torch.from_numpy(decisions.there)
    with one_thread(), torch.no_grad():
        if not first:
            out = module.forward_exploration({OBS: observations, "mask": mask})
            return _plain(out["scores"], count)
        state = {k: v.double() if v.is_floating_point() else v for k, v in first.items()}
        state = {k: v[None] for k, v in state.items()}
        found = []
        for row, there in zip(observations, mask, strict=True):
            given = {OBS: row[None], "mask": there[None], STATE_IN: state}
            out = module.forward_exploration(given)
            state = out[STATE_OUT]
            found.append(_plain(out["scores"], count))
    return np.concatenate(found)


def _plain(found: torch.Tensor, count: int) -> NDArray[np.float64]:
    plain: NDArray[np.float64] = found[..., :count].flatten(1).numpy()
    return plain
