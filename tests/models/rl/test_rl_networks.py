"""What a network says while acting is what it says of the same steps while learning."""

import numpy as np
import pytest
import torch

from models.rl.layout import Layout
from models.rl.networks.dueling import TeamModule
from models.rl.networks.lstm import RecurrentModule
from models.rl.networks.transformer import Block, Transformer, TransformerModule, begins

LAYOUT = Layout(kinds=(0, 1, 0), action_counts=(3, 2), feature_counts=(4, 2), context=5)
SETTINGS = {
    "subflow_width": 8, "width": 16, "heads": 2, "layers": 2, "context": 5,
    "hidden": [16, 16], "cells": 12,
}  # fmt: skip


def made(kind):
    torch.manual_seed(3)
    box, actions = LAYOUT.spaces()
    model = {"layout": LAYOUT.plain(), "network": SETTINGS}
    module = kind(observation_space=box, action_space=actions, model_config=model)
    torch.nn.init.normal_(module.net.actor.weight) if hasattr(module.net, "actor") else None
    return module


def rows(count, lanes=2):
    observations = torch.rand(lanes, count, 3, 4)
    mask = torch.ones(lanes, count, 3, dtype=torch.bool)
    mask[1, :, 2] = False
    return observations, mask


def acted(module, observations, mask, over):
    """Scores and values of all rows, one after the other, as a runner asks for them."""
    lanes = len(observations)
    first = {k: v.expand(lanes, *v.shape) for k, v in module.get_initial_state().items()}
    state, found, values = first, [], []
    for t in range(observations.shape[1]):
        out = module.forward_exploration(
            {"obs": observations[:, t], "mask": mask[:, t], "state_in": state}
        )
        found.append(out["scores"])
        values.append(out.get("values"))
        state = {
            k: torch.where(over[:, t].view(-1, *[1] * (v.dim() - 1)), first[k], v)
            for k, v in out.get("state_out", {}).items()
        }
    return torch.stack(found, 1), values


def compared(one, other, legal):
    assert torch.allclose(one[..., legal], other[..., legal], atol=1e-5)


LEGAL = torch.from_numpy(LAYOUT.legal())


@pytest.mark.parametrize("ends", [None, 1, 3])
def test_the_transformer_sees_the_same_context_in_a_window_as_while_acting(ends):
    module = made(TransformerModule)
    module.make_target()
    observations, mask = rows(6)
    over = torch.zeros(2, 6, dtype=torch.bool)
    if ends is not None:
        over[0, ends] = True
    scores, _ = acted(module, observations, mask, over)
    seen = module.standardise(observations, mask)
    now, best, target = module.values(seen, mask, over, 5)
    compared(now, scores[:, :5], LEGAL)
    compared(target[:, -1], scores[:, 5], LEGAL)
    compared(best[:, -1], scores[:, 5], LEGAL)
    if ends is None:
        compared(best[:, :-1], scores[:, 1:5], LEGAL)


def test_the_transformer_forgets_what_is_older_than_its_context():
    module = made(TransformerModule)
    observations, mask = rows(9)
    over = torch.zeros(2, 9, dtype=torch.bool)
    scores, _ = acted(module, observations, mask, over)
    later, _ = acted(module, observations[:, 4:], mask[:, 4:], over[:, 4:])
    compared(later[:, -1], scores[:, -1], LEGAL)
    assert not torch.allclose(later[:, -2], scores[:, -2], atol=1e-4)


def test_the_network_has_the_sizes_of_tccos_table_1():
    from models.rl.params import TransformerDqn

    two = Layout(kinds=(0, 0), action_counts=(5,), feature_counts=(6,), context=20)
    net = Transformer(two, TransformerDqn().model_dump())
    shapes = {name: tuple(value.shape) for name, value in net.named_parameters()}
    assert shapes["each.0.weight"] == (64, 6)
    assert shapes["each.2.weight"] == (64, 64), "subflow FC1 and FC2, the same for all subflows"
    assert shapes["embed.weight"] == (128, 2 * 64)
    assert shapes["position"] == (20, 128), "learned, one for each place of the context"
    assert (len(net.blocks), net.blocks[0].heads) == (1, 4)
    assert shapes["head.weight"] == (5, 128 + 64), "all actions of one subflow"


def test_a_block_is_torchs_with_the_layer_norm_after_a_residual_gate():
    """ResGate is a sum of what comes in and what a layer makes of it (DTQN, arXiv 2206.01078)."""
    torch.manual_seed(0)
    ours = Block(16, 4)
    theirs = torch.nn.TransformerEncoderLayer(
        16, 4, 64, dropout=0.0, norm_first=False, batch_first=True
    )
    both = [(theirs.self_attn.out_proj, ours.out), (theirs.linear1, ours.feed[0]),
            (theirs.linear2, ours.feed[2]), (theirs.norm1, ours.norms[0]),
            (theirs.norm2, ours.norms[1])]  # fmt: skip
    for one, other in both:
        one.load_state_dict(other.state_dict())
    with torch.no_grad():
        for part in ("weight", "bias"):
            inputs = torch.cat([getattr(ours.query, part), getattr(ours.both, part)])
            getattr(theirs.self_attn, f"in_proj_{part}").copy_(inputs)
    tokens = torch.randn(3, 7, 16)
    allowed = torch.ones(7, 7, dtype=torch.bool).tril()
    expected = theirs(tokens, src_mask=~allowed)
    found = ours(tokens, allowed[None, None].expand(3, 1, 7, 7), last=False)
    assert torch.allclose(found, expected, atol=1e-6)
    last = ours(tokens, allowed[None, None, -1:].expand(3, 1, 1, 7), last=True)
    assert torch.allclose(last[:, 0], expected[:, -1], atol=1e-6)


def test_rows_know_where_their_episode_begins():
    over = torch.tensor([[0, 1, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1]], dtype=torch.bool)
    assert begins(over).tolist() == [[0, 0, 2, 2, 2, 5], [0] * 6]


@pytest.mark.parametrize("ends", [None, 2])
def test_the_lstm_remembers_the_same_in_a_window_as_while_acting(ends):
    module = made(RecurrentModule)
    observations, mask = rows(7)
    over = torch.zeros(2, 7, dtype=torch.bool)
    if ends is not None:
        over[0, ends] = True
    scores, values = acted(module, observations, mask, over)
    seen = module.standardise(observations, mask)
    zero = torch.zeros(2, 12)
    logits, critic = module.windows(seen, over, (zero, zero))
    compared(logits, scores, LEGAL)
    assert torch.allclose(critic, torch.stack(values, 1), atol=1e-6)


def test_parts_of_a_kind_share_a_network_and_others_see_their_own_features_alone():
    module = made(TeamModule)
    module.make_target()
    seen = torch.rand(2, 1, 3, 4)
    seen[:, :, 2] = seen[:, :, 0]
    q = module.net(seen)
    assert torch.equal(q[:, :, 2], q[:, :, 0])
    changed = seen.clone()
    changed[:, :, 1, 2:] += 1.0
    assert torch.equal(module.net(changed), q)
    scores = module.act(seen[:, 0], torch.ones(2, 3, dtype=torch.bool), {})["scores"]
    assert torch.isinf(scores[:, 1, 2]).all()


def test_inputs_have_mean_0_and_deviation_1_and_parts_that_are_not_there_do_not_count():
    module = made(TeamModule)
    rng = np.random.default_rng(0)
    observations = torch.from_numpy(rng.normal(3, 2, (50, 20, 3, 4)).astype(np.float32))
    observations[..., 1, :] = 0.25
    mask = torch.ones(50, 20, 3, dtype=torch.bool)
    mask[:, 5:, 2] = False
    observations[:, 5:, 2] = 1e6
    acted = torch.ones(50, 20, dtype=torch.bool)
    acted[0] = False
    rewards = torch.full((50, 20), 5.0)
    rewards[1::2] = 7.0
    rewards[0] = 100.0
    for piece in (slice(0, 10), slice(10, 50)):
        module.standardise.learn(observations[piece], mask[piece], rewards[piece], acted[piece])
    seen = module.standardise(observations, mask)
    there = seen[:, :, 0].reshape(-1, 4)
    assert there.mean(0).abs().max() < 0.05
    assert (there.std(0) - 1).abs().max() < 0.05
    # What never changes isn't blown up.
    assert seen[:, :, 1].abs().max() < 1e-5
    assert seen[:, 5:, 2].abs().max() == 0.0
    mean, spread = module.standardise.rewarded()
    assert mean == pytest.approx(6.02, abs=0.01)
    assert spread == pytest.approx(1.0, abs=0.01)


def test_a_runner_gets_a_network_without_the_one_set_aside():
    assert "target" in made(TeamModule).get_non_inference_attributes()
