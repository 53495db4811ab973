"""A policy's network as a function of plain numbers: raw observations and states in and out.

What is around a network in training becomes part of the graph: the scaling of observations
(`features.intervals.scaled`), their logarithms and their standardisation. So whoever runs the file
feeds it what was measured, in the units of `features.whole`, and zeros as the states that begin an
episode.
"""

from __future__ import annotations

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
from models.rl.networks.dueling import TeamModule
from models.rl.networks.lstm import RecurrentModule
from models.rl.networks.transformer import TransformerModule

_LEAST = 1e-3
"""As `models.rl.networks.module` has it: a share below which a logarithm falls no further."""
_FLAG = 1e9
"""What a flag is multiplied by, so that 1 stays 1 and 0 stays 0 in x / (1 + x)."""
_SHUT = 1e3
"""What is taken off where attention must not look: nothing is left of its exponential."""


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
        self.kind, self.actions = kind, layout.action_counts[kind]
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
        shares = self.shares(values)
        if self.logs:
            shares = torch.stack(shares.tensor_split(2, dim=-1), dim=-1).flatten(-2)
        own = self.module.standardise
        # Teams have wider observations than some of their kinds.
        wide = nn.functional.pad(shares, (0, own.shift.shape[-1] - shares.shape[-1]))
        found: Tensor = (wide - own.shift) * own.scale * mask[..., None]
        return found

    def shares(self, values: Tensor) -> Tensor:
        """Of raw values [..., inputs] ``x / (x + half)``, and then, if it sees them, logarithms."""
        ratio = torch.minimum(torch.maximum(values, self.low), self.high) * self.per_unit
        shares = ratio / (ratio + 1.0)
        if not self.logs:
            return shares
        least = _LEAST / (1.0 - _LEAST)
        return torch.cat([shares, ratio.clamp(least, 1.0 / least).log()], dim=-1)

    def first(self, layer: nn.Linear) -> nn.Linear:
        """The network's first layer, for `shares`: what standardises them is part of its weights.

        A file for a runtime has a step less for each operation, and steps are what costs there.
        """
        own = self.module.standardise
        scale, shift = own.scale[0].double(), own.shift[0].double()
        weight = layer.weight.double()
        used = weight.shape[1]
        bias = layer.bias.double() - weight @ (scale * shift)[:used]
        weight = weight * scale[:used]
        if self.logs:
            weight = torch.cat([weight[:, ::2], weight[:, 1::2]], dim=1)
        return _linear(weight, bias)


class FlatTeam(Flat):
    """A dueling network without steps that only the training of a team needs."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        network = self.module.net.kinds[self.kind]
        first, *others = network.body
        # The value and the advantages less their mean are sums of one layer's answers.
        head = network.head
        mix = torch.eye(self.actions, dtype=torch.float64) - 1.0 / self.actions
        mix = torch.cat([torch.ones(self.actions, 1, dtype=torch.float64), mix], dim=1)
        joined = _linear(mix @ head.weight.double(), mix @ head.bias.double())
        self.chain = nn.Sequential(self.first(first), *others, joined)

    def forward(self, features: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
        """As `Flat.forward`."""
        return (self.chain(self.shares(features)),)


class FlatTransformer(Flat):
    """Keeps what each observation was made into, so that this happens only once.

    The paper's network has one layer. There a row's keys and values are a linear function of what
    the row was embedded as plus one of its place, which are two tables; how many rows there are
    says which lines of them are meant, and one row of weights is all that attention needs.
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        net, self.context = self.module.net, self.module.context
        (block,) = net.blocks
        self.wide, self.heads = net.position.shape[1], block.heads
        own, token = net.each[2].out_features, self.wide
        self.each = nn.Sequential(self.first(net.each[0]), *net.each[1:])
        keys = block.both.weight.detach()
        # The weights of attention are of keys over the root of a head's width.
        small = (self.wide // self.heads) ** -0.5
        self.query = _linear(block.query.weight.double() * small, block.query.bias.double() * small)
        self.from_token = _linear(net.head.weight[:, :token], net.head.bias)
        self.from_own = nn.Linear(own, net.head.out_features, bias=False).double()
        self.from_own.weight = _constant(net.head.weight[:, token:])
        self.keys = nn.Linear(token, 2 * token, bias=False).double()
        self.keys.weight = _constant(keys)
        row = torch.arange(self.context)
        # Of a window with so many rows before, the oldest first: their places, and who is there.
        place = row - (self.context - 1 - row[:, None])
        shut = torch.where(place < 0, -_SHUT, 0.0).double()
        tables = {
            "places": block.both(net.position).detach(),
            "position": net.position.detach(),
            "place": place.clamp(min=0),
            "shut": shut[..., None, None],
        }
        for name, table in tables.items():
            self.register_buffer(name, table)
        self.places: Tensor
        self.position: Tensor
        self.place: Tensor
        self.shut: Tensor

    def names(self) -> tuple[str, ...]:
        """What rows were made into, oldest first, and how many of them there are."""
        return ("context", "count")

    def widths(self) -> tuple[int, ...]:
        """Of all rows together, and one number."""
        return (self.context * 2 * self.wide, 1)

    def forward(self, features: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
        """As `Flat.forward`."""
        before, count = given
        values, mask = self._split(features)
        net, (block,) = self.module.net, self.module.net.blocks
        own = self.each(self.shares(values)) * mask[..., None]
        row = net.embed(own.flatten(1))
        rows = torch.cat([before[:, 2 * self.wide :], self.keys(row)], dim=1)
        others = count[:, 0].clamp(max=float(self.context - 1))
        at = others.to(torch.int64)
        both = rows.reshape(-1, self.context, 2 * self.wide)
        both = both + nn.functional.embedding(self.place.index_select(0, at), self.places)
        k, v = both.reshape(-1, self.context, 2 * self.heads, self.wide // self.heads).chunk(2, 2)
        asking = row + self.position.index_select(0, at)
        q = self.query(asking).reshape(-1, 1, self.heads, self.wide // self.heads)
        weights = ((q * k).sum(3, keepdim=True) + self.shut.index_select(0, at)).softmax(1)
        found = block.out((weights * v).sum(1).flatten(1))
        token = block.norms[0](asking + found)
        token = block.norms[1](token + block.feed(token))
        scores = self.from_token(token)[:, None] + self.from_own(own)
        return (scores.flatten(1), rows, others[:, None] + 1.0)


class FlatDeep(Flat):
    """A Transformer of several layers, which keeps what each observation was embedded as."""

    def names(self) -> tuple[str, ...]:
        """As `FlatTransformer.names`."""
        return ("context", "count")

    def widths(self) -> tuple[int, ...]:
        """Of all rows together, and one number."""
        return (self.module.net.position.numel(), 1)

    def decide(self, seen: Tensor, mask: Tensor, given: list[Tensor]) -> list[Tensor]:
        """As `TransformerModule.act`, from rows that are kept."""
        net, context = self.module.net, self.module.context
        before, count = given
        own = net.each(seen) * mask[..., None]
        row = net.embed(own.flatten(1))
        rows = torch.cat([before[:, row.shape[1] :], row], dim=1)
        count = (count + 1.0).clamp(max=float(context))
        first = (context - count).to(torch.int64)
        # Rows before the episode's are looked at by none but themselves.
        first = torch.minimum(first, torch.arange(context))
        token = net.attended(rows.reshape(-1, context, row.shape[1]), first, last=True)[:, 0]
        spread = token[:, None].expand(-1, own.shape[1], -1)
        return [net.head(torch.cat([spread, own], dim=-1)), rows, count]


class FlatRecurrent(Flat):
    """The LSTM's one step, written out: exporters differ in how they write a whole LSTM."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        first, *others = self.module.net.before
        self.before = nn.Sequential(self.first(first), *others)
        memory = self.module.net.memory
        both = torch.cat([memory.weight_ih_l0, memory.weight_hh_l0], dim=1)
        self.gates = _linear(both, memory.bias_ih_l0.double() + memory.bias_hh_l0.double())

    def forward(self, features: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
        """As `Flat.forward`."""
        h, c = given
        inputs = torch.cat([self.before(self.shares(features)), h], dim=1)
        into, keep, new, out = self.gates(inputs).chunk(4, dim=1)
        c = torch.sigmoid(keep) * c + torch.sigmoid(into) * torch.tanh(new)
        h = torch.sigmoid(out) * torch.tanh(c)
        return (self.module.net.actor(h), h, c)


def _own(module: Any, parts: int) -> type[Flat]:
    """Which of these writes a network with the fewest steps."""
    if type(module) is TransformerModule:
        blocks: Any = module.net.blocks
        return FlatTransformer if len(blocks) == 1 else FlatDeep
    if parts == 1 and type(module) in (RecurrentModule, TeamModule):
        return FlatRecurrent if type(module) is RecurrentModule else FlatTeam
    return Flat


def flat(policy: Policy) -> Flat:
    """The network of a policy of one kind of parts, in double precision."""
    layout = layout_of(policy)
    return _own(policy.module(layout), layout.parts)(policy).double().eval()


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0]).double()
    layer.weight, layer.bias = _constant(weight), _constant(bias)
    return layer


def _constant(value: Tensor) -> nn.Parameter:
    return nn.Parameter(value.detach().double().contiguous(), requires_grad=False)


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
