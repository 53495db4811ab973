"""The comparisons learn by the formulas that they are named after, and act as they learn."""

import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from data.errors import UserError
from models.rl import agents
from models.rl.comparisons.actor import ActorModule
from models.rl.comparisons.independent import IndependentLearner
from models.rl.comparisons.joint import JointLearner, JointModule
from models.rl.comparisons.lines import COMPARISONS
from models.rl.comparisons.qmix import Mixer, QmixLearner
from models.rl.comparisons.stacked import StackedModule
from models.rl.layout import Layout
from models.rl.learners.ppo import PpoLearner
from models.rl.learners.q import Asked, QLearner, td_errors
from models.rl.networks.dueling import Dueling

LAYOUT = Layout(kinds=(0, 1, 0), action_counts=(3, 2), feature_counts=(4, 2), context=5)
ALIKE = Layout(kinds=(0, 0), action_counts=(3,), feature_counts=(4,), context=4)
SETTINGS = {"subflow_width": 8, "width": 16, "heads": 2, "layers": 1, "context": 4}


def made(kind, layout=ALIKE, **changes):
    torch.manual_seed(3)
    box, actions = layout.spaces()
    model = {"layout": layout.plain(), "network": SETTINGS | changes}
    module = kind(observation_space=box, action_space=actions, model_config=model)
    if hasattr(module.net, "actor"):
        torch.nn.init.normal_(module.net.actor.weight)
    return module


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
        values.append(out.get("values", torch.zeros(lanes)))
        state = {
            k: torch.where(over[:, t].view(-1, *[1] * (v.dim() - 1)), first[k], v)
            for k, v in out["state_out"].items()
        }
    return torch.stack(found, 1), torch.stack(values, 1)


def asked(rows=16, parts=3, actions=3, own=None, seed=0):
    """Random Qs of single steps, of which one part isn't there in some rows."""
    g = torch.Generator().manual_seed(seed)
    now, best, target = (torch.randn(rows, 1, parts, actions, generator=g) for _ in range(3))
    mask = torch.ones(rows, 2, parts, dtype=torch.bool)
    mask[::3, :, -1] = False
    return Asked(
        now.requires_grad_(),
        best,
        target,
        torch.randn(rows, 2, parts, 5, generator=g),
        mask,
        torch.randint(actions, (rows, 1, parts), generator=g),
        torch.randn(rows, 1, generator=g),
        torch.rand(rows, 1, generator=g) < 0.3,
        own,
    )


def told(**more):
    """What a learner's `squares` needs of it."""
    return SimpleNamespace(settings={"gamma": 0.9}, **more)


@pytest.mark.filterwarnings("ignore:No target network updater")
def test_the_mixed_loss_and_its_gradient_are_torchrls_on_a_shared_batch():
    from tensordict import TensorDict
    from tensordict.nn import TensorDictModule
    from torchrl.modules import QValueModule, SafeSequential
    from torchrl.modules.models.multiagent import QMixer
    from torchrl.objectives.multiagent import QMixerLoss

    torch.manual_seed(1)
    rows, parts, units = 32, 4, 8
    seen = torch.randn(rows, 2, parts, 5)
    chosen = torch.randint(3, (rows, 1, parts))
    rewards, terminated = torch.randn(rows, 1), torch.rand(rows, 1) < 0.3
    ours, aside = (
        torch.nn.ModuleDict({"q": Dueling(5, [16], 3), "mixer": Mixer(parts, parts * 5, units)})
        for _ in range(2)
    )
    mixer = QMixer((parts * 5,), units, parts, "cpu")
    equal(mixer.parameters(), aside["mixer"].parameters())
    keys = [("agents", name) for name in ("action", "action_value", "chosen_action_value")]
    q = TensorDictModule(copy.deepcopy(aside["q"]), [("agents", "observation")], keys[1:2])
    choice = QValueModule(action_value_key=keys[1], out_keys=keys, action_space="categorical")
    loss = QMixerLoss(
        SafeSequential(q, choice),
        TensorDictModule(mixer, [keys[2], "state"], ["chosen_action_value"]),
        action_space="categorical",
        delay_value=True,
    )
    loss.make_value_estimator(gamma=0.9)
    # Its target was copied from the first weights; now those that learn get the others.
    equal(loss.parameters(), ours.parameters())
    after = aside["q"](seen[:, 1:]).detach()
    one = Asked(
        ours["q"](seen[:, :1]), after, after, seen, torch.ones(rows, 2, parts, dtype=torch.bool),
        chosen, rewards, terminated,
    )  # fmt: skip
    agent = SimpleNamespace(
        net=SimpleNamespace(mixer=ours["mixer"]), target=SimpleNamespace(mixer=aside["mixer"])
    )
    mine = QmixLearner.squares(told(agent=agent), one)[0].mean()
    mine.backward()

    def row(k, **more):
        shown = TensorDict({"observation": seen[:, k], **more}, [rows, parts])
        return TensorDict({"agents": shown, "state": seen[:, k].flatten(1)}, [rows])

    ends = {"reward": rewards, "done": terminated, "terminated": terminated}
    given = row(0, action=chosen[:, 0]).update({"next": row(1).update(ends)})
    found = loss(given)["loss"]
    found.backward()
    assert mine.item() == pytest.approx(found.item(), abs=1e-6)
    assert mine.item() > 0.1
    for one, other in zip(loss.parameters(), ours.parameters(), strict=True):
        assert other.grad.abs().max() > 0
        assert torch.allclose(one.grad, other.grad, atol=1e-6)


def equal(ones, others):
    """Give parameters the values of others."""
    with torch.no_grad():
        for one, other in zip(ones, others, strict=True):
            one.copy_(other)


def test_a_mix_grows_with_every_part():
    torch.manual_seed(0)
    mixer, parts = Mixer(3, 6, 8), torch.randn(50, 3, requires_grad=True)
    mixer(parts, torch.randn(50, 6)).sum().backward()
    assert (parts.grad >= 0).all()
    assert (parts.grad > 0).any()


def test_each_part_alone_learns_what_a_team_of_one_would():
    own = torch.randn(16, 1, 3, generator=torch.Generator().manual_seed(9))
    one = asked(own=own)
    square, size = IndependentLearner.squares(told(), one)
    alone = []
    for part in range(3):
        only = slice(part, part + 1)
        q = [x[:, :, only] for x in (one.now, one.best, one.target)]
        error = td_errors(
            *q, one.actions[:, :, only], one.mask[:, :, only], own[:, :, part], one.terminated, 0.9
        )
        alone.append(error * one.mask[:, :-1, part])
    assert torch.allclose(square, sum(error.square() for error in alone))
    assert torch.allclose(size, sum(error.abs() for error in alone))
    assert size[0] != QLearner.squares(told(), one)[1][0], "a team's error is another"
    # Without rewards of its own each learns from the team's.
    team = IndependentLearner.squares(told(), replace(one, own=None))[0]
    shared = IndependentLearner.squares(
        told(), replace(one, own=one.rewards[..., None].expand(-1, -1, 3))
    )[0]
    assert torch.equal(team, shared)
    assert not torch.allclose(team, square)


def test_a_joint_action_is_the_best_of_all_of_parts_that_are_there():
    module = made(JointModule)
    observations = torch.rand(6, 1, 2, 4)
    mask = torch.ones(6, 1, 2, dtype=torch.bool)
    mask[3:, :, 1] = False
    over = torch.zeros(6, 1, dtype=torch.bool)
    scores = acted(module, observations, mask, over)[0][:, 0]
    seen = module.standardise(observations, mask)
    q = module.net(seen, mask, torch.zeros(6, 1, dtype=torch.int64))[:, 0, 0].view(6, 3, 3)
    for lane in range(6):
        among = q[lane] if lane < 3 else q[lane, :, :1]
        first, second = divmod(int(among.argmax()), among.shape[1])
        assert int(scores[lane, 0].argmax()) == first
        assert lane >= 3 or int(scores[lane, 1].argmax()) == second
        # A part's score is the best that its action is part of.
        assert torch.allclose(scores[lane, 0], among.amax(1), atol=1e-6)


def test_a_joint_head_learns_as_one_part_with_all_joint_actions():
    module = made(JointModule)
    g = torch.Generator().manual_seed(2)
    now, best, target = (torch.randn(8, 2, 1, 9, generator=g) for _ in range(3))
    actions = torch.randint(3, (8, 2, 2), generator=g)
    mask = torch.ones(8, 3, 2, dtype=torch.bool)
    mask[5:, :, 1] = False
    rewards, ends = torch.randn(8, 2, generator=g), torch.rand(8, 2, generator=g) < 0.3
    one = Asked(now, best, target, torch.zeros(8, 3, 2, 4), mask, actions, rewards, ends)
    square, _ = JointLearner.squares(told(agent=module), one)
    for lane in range(8):
        for t in range(2):
            a, b = actions[lane, t].tolist()
            chosen = now[lane, t, 0, 3 * a + (b if lane < 5 else 0)]
            among = range(9) if lane < 5 else (0, 3, 6)
            later = target[lane, t, 0, max(among, key=lambda j: best[lane, t, 0, j])]
            wanted = rewards[lane, t] + (0.0 if ends[lane, t] else 0.9) * later
            assert float(square[lane, t]) == pytest.approx(float((chosen - wanted) ** 2), abs=1e-5)


def test_too_many_joint_actions_are_refused():
    eight = Layout(kinds=(0,) * 8, action_counts=(5,), feature_counts=(6,), context=20)
    with pytest.raises(UserError, match=r"8 subflows have 5\^8 joint actions.*train tcco"):
        made(JointModule, eight)


@pytest.mark.parametrize("ends", [None, 1, 3])
@pytest.mark.parametrize("context", [1, 4])
def test_stacked_observations_are_the_same_in_a_window_as_while_acting(ends, context):
    module = made(StackedModule, LAYOUT, context=context)
    module.make_target()
    observations, mask = torch.rand(2, 6, 3, 4), torch.ones(2, 6, 3, dtype=torch.bool)
    mask[1, :, 2] = False
    over = torch.zeros(2, 6, dtype=torch.bool)
    if ends is not None:
        over[0, ends] = True
    scores, _ = acted(module, observations, mask, over)
    legal = torch.from_numpy(LAYOUT.legal())
    seen = module.standardise(observations, mask)
    for t in range(context - 1, 5):
        rows = slice(t - context + 1, t + 2)
        found = module.values(seen[:, rows], mask[:, rows], over[:, rows], context)
        for one, row in zip(found, (t, t + 1, t + 1), strict=True):
            assert one.shape[1] == 1
            assert torch.allclose(one[:, 0][:, legal], scores[:, row][:, legal], atol=1e-5)
    if context > 1:
        assert not torch.allclose(
            acted(module, observations[:, 4:], mask[:, 4:], over[:, 4:])[0][:, 1, 0],
            scores[:, 5, 0],
        )


@pytest.mark.parametrize("ends", [None, 2])
@pytest.mark.parametrize("context", [1, 4])
def test_an_actor_without_memory_says_the_same_in_a_window_as_while_acting(ends, context):
    module = made(ActorModule, LAYOUT, context=context)
    observations, mask = torch.rand(2, 8, 3, 4), torch.ones(2, 8, 3, dtype=torch.bool)
    over = torch.zeros(2, 8, dtype=torch.bool)
    if ends is not None:
        over[0, ends] = True
    scores, values = acted(module, observations, mask, over)
    seen = module.standardise(observations, mask)
    legal = torch.from_numpy(LAYOUT.legal())
    blank = module.get_initial_state()["before"].expand(2, -1, -1, -1)
    logits, critic = module.windows(seen, over, (blank,))
    assert torch.allclose(logits[..., legal], scores[..., legal], atol=1e-5)
    assert torch.allclose(critic, values, atol=1e-5)
    # A window that begins in the middle goes on with what was seen before it.
    later = module.windows(seen[:, 6:], over[:, 6:], (seen[:, 7 - context : 6],))[0]
    assert torch.allclose(later[..., legal], scores[:, 6:][..., legal], atol=1e-5)


def test_one_epoch_without_clipping_is_a2c():
    """The gradient is that of log odds times advantage: a ratio of 1 with its derivative."""
    preset = agents.settings("nuwa-a2c", {"entropy_weight": 0, "value_weight": 0}).model_dump()
    assert (preset["epochs"], preset["minibatches"]) == (1, 1)
    module = made(ActorModule, LAYOUT)
    observations, mask = torch.rand(4, 5, 3, 4), torch.ones(4, 5, 3, dtype=torch.bool)
    over = torch.zeros(4, 5, dtype=torch.bool)
    over[2, 3] = True
    seen = module.standardise(observations, mask)
    blank = module.get_initial_state()["before"].expand(4, -1, -1, -1)
    actions, advantages = torch.randint(2, (4, 5, 3)), torch.randn(4, 5)

    def logp():
        odds = module.windows(seen, over, (blank,))[0].log_softmax(-1)
        return odds.gather(-1, actions[..., None])[..., 0].sum(-1)

    batch = {
        "observations": observations, "mask": mask, "over": over, "before": blank,
        "actions": actions, "logp": logp().detach(), "advantages": advantages,
        "wanted": torch.zeros(4, 5),
    }  # fmt: skip
    PpoLearner.loss(SimpleNamespace(settings=preset, agent=module, done=0), batch)[0].backward()
    found = [p.grad.clone() for p in module.net.actor.parameters()]
    module.net.zero_grad()
    there = advantages[~over]
    normal = (advantages - there.mean()) / (there.std(correction=0) + 1e-8)
    (-(logp() * normal)[~over].mean()).backward()
    for one, other in zip(found, module.net.actor.parameters(), strict=True):
        assert other.grad.abs().max() > 0
        assert torch.allclose(one, other.grad, atol=1e-6)


@pytest.mark.parametrize("name", COMPARISONS)
def test_presets_are_settings_and_a_users_come_before(name):
    line = COMPARISONS[name]
    params = agents.settings(name, {})
    assert isinstance(params, line.settings())
    assert issubclass(line.settings(), line.load().Params)
    changed = agents.settings(name, {"gamma": 0.5, "env": {"params": {"steps": 7}}})
    assert changed.gamma == 0.5
    assert changed.env["params"]["steps"] == 7
    kept = {k: v for k, v in changed.env["params"].items() if k != "steps"}
    assert kept == {k: v for k, v in params.env.get("params", {}).items() if k != "steps"}
    # What was kept of a training reads as itself.
    assert agents.settings(name, params.model_dump(by_alias=True)) == params


@pytest.mark.parametrize("name", sorted(set(COMPARISONS) - {"nuwa-dqn"}))
def test_what_a_preset_does_not_say_is_as_its_agent_has_it(name):
    ours = agents.settings(name, {}).model_dump(by_alias=True)
    theirs = agents.settings(name.partition("-")[0], {}).model_dump(by_alias=True)
    # By the letter of the paper its routers explore evenly.
    said = set(COMPARISONS[name].preset) | ({"random"} if name == "macc-printed" else set())
    differ = {key for key in ours.keys() & theirs.keys() if ours[key] != theirs[key]}
    assert differ <= said
