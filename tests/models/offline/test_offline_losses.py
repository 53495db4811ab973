"""Losses are those of their papers, and CQL's term is TorchRL's."""

import copy

import pytest
import torch
from torch import nn

from models.offline import losses
from models.offline.methods.conservative import ConservativeMethod
from models.offline.params import Conservative
from models.rl.layout import Layout

SETTINGS = Conservative(
    context=1, subflows=1, subflow_width=8, width=16, heads=2, double=False, gamma=0.9, alpha=1.0
)


class Flat(nn.Module):
    """The agent's network of one subflow and one observation, as TorchRL calls one."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, seen):
        rows = len(seen)
        there, first = torch.ones(rows, 1, 1, dtype=torch.bool), torch.zeros(rows, 1).long()
        return self.net(seen[:, None, None], there, first)[:, 0, 0]


def torchrls_loss(method):
    from torchrl.modules import QValueActor
    from torchrl.objectives import DiscreteCQLLoss

    actor = QValueActor(
        Flat(copy.deepcopy(method.aside).requires_grad_(True)),
        in_keys=["observation"],
        action_space="categorical",
    )
    loss = DiscreteCQLLoss(actor, action_space="categorical", delay_value=True)
    loss.make_value_estimator(gamma=SETTINGS.gamma)
    with torch.no_grad():
        for theirs, ours in zip(loss.parameters(), method.agent.net.parameters(), strict=True):
            theirs.copy_(ours)
    return loss


def shared_batch(method):
    """Rows of one subflow: as our losses take them, and as TorchRL's do."""
    from tensordict import TensorDict

    rows, inputs = 32, method.agent.layout.features
    seen = torch.randn(rows, 2, 1, inputs)
    actions, rewards = torch.randint(5, (rows, 1, 1)), torch.randn(rows, 1)
    terminated = torch.rand(rows, 1) < 0.3
    batch = {
        "mask": torch.ones(rows, 2, 1, dtype=torch.bool),
        "actions": actions,
        "terminated": terminated,
        "known": torch.ones(rows, 1, dtype=torch.bool),
    }
    after = {"observation": seen[:, 1, 0], "reward": rewards, "done": terminated,
             "terminated": terminated}  # fmt: skip
    given = {"observation": seen[:, 0, 0], "action": actions[:, 0, 0],
             "next": TensorDict(after, [rows])}  # fmt: skip
    return (batch, seen, rewards), TensorDict(given, [rows])


@pytest.mark.filterwarnings("ignore:No target network updater")
def test_discrete_cql_and_its_gradient_are_torchrls_on_a_shared_batch():
    """While the target is the network itself: TorchRL values what comes next by the latter."""
    torch.manual_seed(3)
    method = ConservativeMethod(Layout((0,), (5,), (6,), 1), SETTINGS)
    given, same = shared_batch(method)
    ours = method.losses(*given)
    (ours["td"] + ours["conservatism"]).backward()
    loss = torchrls_loss(method)
    theirs = loss(same)
    (theirs["loss_qvalue"] + theirs["loss_cql"]).backward()
    assert float(ours["td"]) == pytest.approx(float(theirs["loss_qvalue"]), rel=1e-5)
    assert float(ours["conservatism"]) == pytest.approx(float(theirs["loss_cql"]), rel=1e-5)
    for mine, other in zip(method.agent.net.parameters(), loss.parameters(), strict=True):
        assert torch.allclose(mine.grad, other.grad, atol=1e-5)


def test_the_error_of_one_step_is_against_the_target_that_was_set_aside():
    torch.manual_seed(3)
    method = ConservativeMethod(Layout((0,), (5,), (6,), 1), SETTINGS)
    with torch.no_grad():
        for one in method.aside.parameters():
            one += 0.1 * torch.randn_like(one)
    (batch, seen, rewards), _ = shared_batch(method)
    ours = method.losses(batch, seen, rewards)
    with torch.no_grad():
        taken = Flat(method.agent.net)(seen[:, 0, 0]).gather(1, batch["actions"][:, 0])[:, 0]
        later = Flat(method.aside)(seen[:, 1, 0]).max(1).values
    error = taken - rewards[:, 0] - SETTINGS.gamma * ~batch["terminated"][:, 0] * later
    assert float(ours["td"]) == pytest.approx(0.5 * float(error.square().mean()), rel=1e-5)


def test_a_teams_conservatism_is_that_over_all_joint_actions():
    torch.manual_seed(1)
    q = torch.randn(6, 1, 2, 3)
    actions, mask = torch.randint(3, (6, 1, 2)), torch.ones(6, 1, 2, dtype=torch.bool)
    mask[0, 0, 1] = False
    found = losses.conservatism(q, actions, mask)[:, 0]
    joint = (q[:, 0, 0, :, None] + q[:, 0, 1, None, :]).flatten(1)
    taken = joint[torch.arange(6), 3 * actions[:, 0, 0] + actions[:, 0, 1]]
    assert torch.allclose(found[1:], (joint.logsumexp(1) - taken)[1:], atol=1e-6)
    alone = q[0, 0, 0]
    assert torch.allclose(found[0], alone.logsumexp(0) - alone[actions[0, 0, 0]], atol=1e-6)


def test_an_expectile_is_what_makes_its_loss_least():
    values = torch.tensor([0.0, 1.0, 4.0])
    tried = torch.linspace(0.0, 4.0, 4001)
    found = losses.expectile(values - tried[:, None], 0.8).sum(1).argmin()
    # By hand: 0.2 (m - 0) + 0.2 (m - 1) = 0.8 (4 - m).
    assert float(tried[found]) == pytest.approx(3.4 / 1.2, abs=1e-3)


def test_weights_of_advantages_and_the_bound_are_as_written_out():
    weights = losses.advantage_weights(torch.tensor([0.0, 1.0, 9.0]), 2.0, 50.0)
    assert weights.tolist() == pytest.approx([1.0, 7.389056, 50.0])
    assert losses.lower_bound(torch.tensor([[1.0], [3.0]]), 2.0).tolist() == [0.0]
    odds = torch.tensor([[[[0.0, 0.0], [0.0, 0.0]]]])
    there = torch.tensor([[[True, False]]])
    found = losses.unlikelihood(odds, torch.zeros(1, 1, 2, dtype=torch.int64), there)
    assert float(found) == pytest.approx(0.693147)
