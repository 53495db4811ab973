"""A policy's network as a function of plain numbers: raw observations and states in and out.

What is around a network in training becomes part of the graph: the scaling of observations
(`features.intervals.scaled`), their logarithms and their standardisation. So whoever runs the file
feeds it what was measured, in the units of `features.whole`, and zeros as the states that begin an
episode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from data.errors import UserError
from features.spec import Feature
from features.whole import divisors, whole
from models.policies.observed import observed
from models.policies.policy import Policy
from models.rl.layout import Layout
from models.rl.networks.lstm import RecurrentModule
from models.rl.networks.module import AgentModule
from models.rl.networks.transformer import TransformerModule

_LEAST = 1e-3
"""As `models.rl.networks.module` has it: a share below which a logarithm falls no further."""
_FLAG = 1e9
"""What a flag is multiplied by, so that 1 stays 1 and 0 stays 0 in x / (1 + x)."""


def layout_of(policy: Policy) -> Layout:
    """Parts that an exported network decides for: a connection's all, of a team one of its kind."""
    whole_one = policy.layout
    if len(whole_one.action_counts) == 1:
        return whole_one
    (kind,) = policy.kinds
    return Layout((kind,), whole_one.action_counts, whole_one.feature_counts, whole_one.context)


def columns(policy: Policy) -> tuple[Feature, ...]:
    """The inputs of an exported network, in order.

    Of several parts each has its features, named by its number, and a flag that it is there.
    """
    features = whole(observed(policy.environment, policy.kinds[0])[0])
    parts = layout_of(policy).parts
    if parts == 1:
        return features
    found: list[Feature] = []
    for part in range(parts):
        found += [_of_part(feature, part) for feature in features]
        found.append(Feature(f"there_{part}", "", 0.0, 1.0, 1, "ours", "1: the subflow is there"))
    return tuple(found)


def answers(policy: Policy) -> tuple[str, ...]:
    """Names of an exported network's scores, in order: of several parts one block for each."""
    from models.policies.observed import actions

    names = actions(policy.environment, policy.kinds[0], policy.params)
    parts = layout_of(policy).parts
    if parts == 1:
        return names
    return tuple(f"subflow {part}: {name}" for part in range(parts) for name in names)


def _of_part(feature: Feature, part: int) -> Feature:
    words = {key: getattr(feature, key) for key in ("unit", "low", "high", "scale", "source")}
    return Feature(f"{feature.name}_{part}", doc=f"{feature.doc}, subflow {part}", **words)


class Flat(nn.Module):
    """The network of any policy; its states are rows of numbers.

    Parameters
    ----------
    policy : Policy
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        layout = layout_of(policy)
        self.module: Any = policy.module(layout)
        self.parts, (kind,) = layout.parts, policy.kinds
        self.actions = layout.action_counts[kind]
        features, half = observed(policy.environment, kind)
        given, by = whole(features), divisors(features)
        self.width = len(given)
        self.logs = bool(self.module.standardise.logs)
        per_unit = [_FLAG if not h else d / h for h, d in zip(half, by, strict=True)]
        for name, row in (("low", [f.low for f in given]), ("high", [f.high for f in given]),
                          ("per_unit", per_unit)):  # fmt: skip
            self.register_buffer(name, torch.tensor(row, dtype=torch.float64))
        self.low: Tensor
        self.high: Tensor
        self.per_unit: Tensor

    def names(self) -> tuple[str, ...]:
        """States, in the order in which they are given and returned."""
        return tuple(self.module.get_initial_state())

    def widths(self) -> tuple[int, ...]:
        """How many numbers each state holds."""
        first = self.module.get_initial_state()
        return tuple(first[name].numel() for name in self.names())

    def forward(self, features: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
        """Scores [N, A C] of raw observations [N, inputs], and the states after, [N, width] each.

        Scores of actions that a part doesn't have are none of them: such a kind has no columns.
        """
        values, mask = self._split(features)
        scores, *after = self.decide(self._standardised(values, mask), mask, list(given))
        return (scores[..., : self.actions].flatten(1), *after)

    def decide(self, seen: Tensor, mask: Tensor, given: list[Tensor]) -> list[Tensor]:
        """Scores [N, A, C] and states after."""
        first = self.module.get_initial_state()
        state = {
            name: _as(value.reshape(-1, *first[name].shape), first[name])
            for name, value in zip(self.names(), given, strict=True)
        }
        out = self.module.act(seen, mask, state)
        rows = seen.shape[0]
        after = [out["state_out"][name].reshape(rows, -1).to(seen.dtype) for name in self.names()]
        return [out["scores"], *after]

    def _split(self, features: Tensor) -> tuple[Tensor, Tensor]:
        if self.parts == 1:
            rows = features[:, None]
            return rows, torch.ones_like(rows[..., 0]) > 0
        rows = features.reshape(-1, self.parts, self.width + 1)
        return rows[..., : self.width], rows[..., self.width] > 0.5

    def _standardised(self, values: Tensor, mask: Tensor) -> Tensor:
        ratio = torch.minimum(torch.maximum(values, self.low), self.high) * self.per_unit
        shares = ratio / (ratio + 1.0)
        if self.logs:
            least = _LEAST / (1.0 - _LEAST)
            logs = ratio.clamp(least, 1.0 / least).log()
            shares = torch.stack([shares, logs], dim=-1).flatten(-2)
        own = self.module.standardise
        # Teams have wider observations than some of their kinds.
        wide = nn.functional.pad(shares, (0, own.shift.shape[-1] - shares.shape[-1]))
        found: Tensor = (wide - own.shift) * own.scale * mask[..., None]
        return found


class FlatTransformer(Flat):
    """Keeps what each observation was made into, so that this happens only once.

    The paper's network has one layer. There a row's keys and values are a linear function of what
    the row was embedded as plus one of its place, which are two tables. With more layers the
    embedded rows are kept.
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        net = self.module.net
        self.single = len(net.blocks) == 1
        self.kept = net.position.shape[1] * (2 if self.single else 1)
        if self.single:
            # The place's share of keys and values, with the layer's bias.
            places = net.blocks[0].both(net.position).detach()
            self.register_buffer("places", places)
            self.places: Tensor

    def names(self) -> tuple[str, ...]:
        """What rows were made into, oldest first, and how many of them there are."""
        return ("context", "count")

    def widths(self) -> tuple[int, ...]:
        """Of all rows together, and one number."""
        return (self.module.context * self.kept, 1)

    def decide(self, seen: Tensor, mask: Tensor, given: list[Tensor]) -> list[Tensor]:
        """As `TransformerModule.act`, from rows that are kept."""
        net, context = self.module.net, self.module.context
        before, count = given
        own = net.each(seen) * mask[..., None]
        row = net.embed(own.flatten(1))
        new = nn.functional.linear(row, net.blocks[0].both.weight) if self.single else row
        rows = torch.cat([before[:, self.kept :], new], dim=1)
        count = (count + 1.0).clamp(max=float(context))
        first = (context - count).to(torch.int64)
        numbers = torch.arange(context)
        kept = rows.reshape(-1, context, self.kept)
        if self.single:
            there = numbers >= first
            both = kept + self.places[(numbers - first).clamp(min=0)]
            asking = (row + net.position[(count[:, 0] - 1.0).to(torch.int64)])[:, None]
            token = net.blocks[0].attend(asking, both, there[:, None, None])[:, 0]
        else:
            # Rows before the episode's are looked at by none but themselves.
            token = net.attended(kept, torch.minimum(first, numbers), last=True)[:, 0]
        spread = token[:, None].expand(-1, own.shape[1], -1)
        return [net.head(torch.cat([spread, own], dim=-1)), rows, count]


class FlatRecurrent(Flat):
    """The LSTM's one step, written out: exporters differ in how they write a whole LSTM."""

    def decide(self, seen: Tensor, mask: Tensor, given: list[Tensor]) -> list[Tensor]:
        """As `RecurrentModule.act`, without the critic."""
        net = self.module.net
        h, c = given
        memory = net.memory
        inputs = torch.cat([net.before(seen.flatten(1)), h], dim=1)
        weights = torch.cat([memory.weight_ih_l0, memory.weight_hh_l0], dim=1)
        gates = nn.functional.linear(inputs, weights, memory.bias_ih_l0 + memory.bias_hh_l0)
        into, keep, new, out = gates.chunk(4, dim=1)
        c = torch.sigmoid(keep) * c + torch.sigmoid(into) * torch.tanh(new)
        h = torch.sigmoid(out) * torch.tanh(c)
        return [net.actor(h).reshape(-1, self.parts, self.actions), h, c]


_OWN: Sequence[tuple[type[AgentModule], type[Flat]]] = (
    (TransformerModule, FlatTransformer),
    (RecurrentModule, FlatRecurrent),
)


def flat(policy: Policy) -> Flat:
    """The network of a policy of one kind of parts, in double precision."""
    made = Flat(policy)
    kind = next((one for module, one in _OWN if type(made.module) is module), None)
    return (made if kind is None else kind(policy)).double().eval()


def _as(value: Tensor, like: Tensor) -> Tensor:
    return (
        value > 0.5
        if like.dtype == torch.bool
        else value.to(value.dtype if like.is_floating_point() else like.dtype)
    )


def narrowed(policy: Policy, parts: int | None) -> Policy:
    """A connection's policy for fewer subflows than it was trained for, with the same answers.

    Parameters
    ----------
    policy : Policy
    parts : int, optional
        How many; all by default.

    Raises
    ------
    UserError
        When it has fewer, or decides for each of its parts alone.
    """
    if parts is None or parts == layout_of(policy).parts:
        return policy
    had = layout_of(policy).parts
    if policy.network != "transformer" or parts > had:
        raise UserError(
            f"--set parts={parts}: {policy.name} decides for {had}: leave it out"
            + (f", or give 1 to {had}" if policy.network == "transformer" else "")
        )
    # Parts that aren't there are embedded as zeros: their columns add nothing.
    weight = policy.weights["net.embed.weight"]
    weights = dict(policy.weights)
    weights["net.embed.weight"] = np.ascontiguousarray(weight[:, : weight.shape[1] // had * parts])
    layout = replace(policy.layout, kinds=policy.layout.kinds[:parts])
    params = {**policy.params, "subflows": parts}
    return replace(policy, weights=weights, layout=layout, params=params)
