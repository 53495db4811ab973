"""Losses against other people's, or against sums worked out by hand."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from models.rl.learners.ppo import advantages
from models.rl.learners.q import QLearner, td_errors
from models.rl.networks.dueling import Dueling


def batch(seed=0, rows=32, parts=4, actions=3):
    """A batch of single steps with random Qs."""
    g = torch.Generator().manual_seed(seed)
    q = [torch.randn(rows, 1, parts, actions, generator=g) for _ in range(3)]
    chosen = torch.randint(actions, (rows, 1, parts), generator=g)
    mask = torch.ones(rows, 2, parts, dtype=torch.bool)
    rewards = torch.randn(rows, 1, generator=g)
    terminated = torch.rand(rows, 1, generator=g) < 0.2
    return q, chosen, mask, rewards, terminated


def test_parts_that_are_not_there_do_not_count():
    q, chosen, mask, rewards, terminated = batch()
    mask[:, :, 3] = False
    short = [one[:, :, :3] for one in q]
    whole = td_errors(*q, chosen, mask, rewards, terminated, 0.9)
    less = td_errors(*short, chosen[:, :, :3], mask[:, :, :3], rewards, terminated, 0.9)
    assert torch.allclose(whole, less)


def test_the_best_action_is_chosen_by_one_network_and_valued_by_the_other():
    now, best, target = torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 1, 2)
    now[..., 1], best[..., 0] = 3.0, 1.0
    target[..., 0], target[..., 1] = 5.0, 100.0
    mask = torch.ones(1, 2, 1, dtype=torch.bool)
    chosen, rewards = torch.ones(1, 1, 1, dtype=torch.int64), torch.full((1, 1), 0.5)
    go_on, end = torch.zeros(1, 1, dtype=torch.bool), torch.ones(1, 1, dtype=torch.bool)
    error = td_errors(now, best, target, chosen, mask, rewards, go_on, 0.9)
    assert float(error) == pytest.approx(3.0 - (0.5 + 0.9 * 5.0))
    assert float(td_errors(now, best, target, chosen, mask, rewards, end, 0.9)) == 2.5


class AsItIs:
    """Stands for inputs that are of the right scale, and rewards of a mean of 0.25."""

    def __call__(self, observations, mask):
        return observations

    def rewarded(self):
        return 0.25, 1.0


def test_the_loss_is_the_mean_square_of_every_position_that_was_acted_in():
    """tcco.txt eqs. 15 and 16, row by row; without ``double`` as ma-cc.txt eq. 6 has it."""
    g = torch.Generator().manual_seed(4)
    now, best, target = (torch.randn(3, 4, 2, 5, generator=g) for _ in range(3))
    best[..., 4] = -torch.inf
    over = torch.zeros(3, 5, dtype=torch.bool)
    over[1, 2] = True
    batch = {
        "observations": torch.zeros(3, 5, 2, 6), "mask": torch.ones(3, 5, 2, dtype=torch.bool),
        "actions": torch.randint(4, (3, 5, 2), generator=g), "over": over,
        "rewards": torch.randn(3, 5, generator=g), "weights": torch.ones(3),
        "terminated": torch.rand(3, 5, generator=g) < 0.3,
    }  # fmt: skip
    agent = SimpleNamespace(values=lambda *_: (now, best, target), standardise=AsItIs())
    for double, centre in ((True, False), (False, True)):
        learner = SimpleNamespace(
            agent=agent, settings={"gamma": 0.969, "double": double, "centre": centre}
        )
        learner.squares = lambda one, learner=learner: QLearner.squares(learner, one)
        loss, report = QLearner.loss(learner, batch)
        squares = []
        for b in range(3):
            for t in range(4):
                if over[b, t]:
                    continue
                chooser = best if double else target
                q = sum(now[b, t, a, batch["actions"][b, t, a]] for a in range(2))
                later = sum(target[b, t, a, chooser[b, t, a, :4].argmax()] for a in range(2))
                wanted = batch["rewards"][b, t] - (0.25 if centre else 0.0)
                wanted = wanted + (0.0 if batch["terminated"][b, t] else 0.969) * later
                squares.append(float((q - wanted) ** 2))
        assert len(squares) == 11
        assert float(loss) == pytest.approx(np.mean(squares), rel=1e-5)
        assert report["errors"].shape == (3,)


def test_advantages_are_the_discounted_sum_of_surprises():
    rewards = np.array([1.0, 2.0, 0.0, 4.0, 5.0], np.float32)[:, None]
    values = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 1.0], np.float32)[:, None]
    truncated_after = 1
    over = np.zeros((5, 1), bool)
    over[truncated_after + 1] = True
    never = np.zeros((5, 1), bool)
    g, lam = 0.9, 0.8
    found = advantages(rewards, values, never, over, g, lam)[:, 0]
    last = 5.0 + g * 1.0 - 0.9
    fourth = 4.0 + g * 0.9 - 0.8
    # The value of the last observation counts, what comes in the next episode doesn't.
    second = 2.0 + g * 0.7 - 0.6
    first = 1.0 + g * 0.6 - 0.5
    expected = [first + g * lam * second, second, 0.0, fourth + g * lam * last, last]
    assert found == pytest.approx(expected, abs=1e-5)
    terminated = never.copy()
    terminated[truncated_after] = True
    found = advantages(rewards, values, terminated, over, g, lam)[:, 0]
    assert found[1] == pytest.approx(2.0 - 0.6, abs=1e-6)


def torchrls_loss(network, aside, parts):
    """TorchRL's loss of a team whose parts share ``network``, and whose target is ``aside``."""
    from tensordict.nn import TensorDictModule
    from torchrl.modules import QValueModule, SafeSequential
    from torchrl.modules.models.multiagent import VDNMixer
    from torchrl.objectives.multiagent import QMixerLoss

    keys = [("agents", name) for name in ("action", "action_value", "chosen_action_value")]
    q = TensorDictModule(copy.deepcopy(aside), [("agents", "observation")], keys[1:2])
    choice = QValueModule(action_value_key=keys[1], out_keys=keys, action_space="categorical")
    mixer = TensorDictModule(
        VDNMixer(n_agents=parts, device="cpu"), keys[2:], ["chosen_action_value"]
    )
    loss = QMixerLoss(
        SafeSequential(q, choice), mixer, action_space="categorical", delay_value=True
    )
    loss.make_value_estimator(gamma=0.9)
    # Its target was copied from the first weights; now those that learn get the others.
    with torch.no_grad():
        for theirs, ours in zip(loss.parameters(), network.parameters(), strict=True):
            theirs.copy_(ours)
    return loss


@pytest.mark.filterwarnings("ignore:No target network updater")
def test_a_teams_loss_and_its_gradient_are_torchrls_on_a_shared_batch():
    from tensordict import TensorDict

    torch.manual_seed(1)
    rows, parts = 32, 4
    observations = torch.randn(rows, 2, parts, 5)
    chosen = torch.randint(3, (rows, 1, parts))
    rewards, terminated = torch.randn(rows, 1), torch.rand(rows, 1) < 0.3
    network, aside = Dueling(5, [16], 3), Dueling(5, [16], 3)
    after = aside(observations[:, 1:]).detach()
    # As in the paper's algorithm 1 the one set aside chooses, too.
    error = td_errors(
        network(observations[:, :1]),
        after,
        after,
        chosen,
        torch.ones(rows, 2, parts, dtype=torch.bool),
        rewards,
        terminated,
        0.9,
    )
    ours = error.square().mean()
    ours.backward()
    loss = torchrls_loss(network, aside, parts)
    after_it = {
        "agents": TensorDict({"observation": observations[:, 1]}, [rows, parts]),
        "reward": rewards,
        "done": terminated,
        "terminated": terminated,
    }
    agents = {"observation": observations[:, 0], "action": chosen[:, 0]}
    given = TensorDict(
        {"agents": TensorDict(agents, [rows, parts]), "next": TensorDict(after_it, [rows])}, [rows]
    )
    theirs = loss(given)["loss"]
    theirs.backward()
    assert ours.item() == pytest.approx(theirs.item(), abs=1e-6)
    assert ours.item() > 0.1
    for one, other in zip(network.parameters(), loss.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad, atol=1e-6)
