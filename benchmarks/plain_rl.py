"""The same learning in plain torch loops, without RLlib: what `train.py` compares with.

Each steps the same environments with the same network, keeps what it saw in numpy arrays, and
updates as often from as many rows. There is no checkpoint, no runner, no metric and no resuming.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from models.rl.layout import Layout
from models.rl.networks.dueling import Teams
from models.rl.networks.lstm import Recurrent
from models.rl.networks.transformer import Transformer


class Loop:
    """Environment, network and optimiser."""

    def __init__(self, env: Any, net: Any, p: Any) -> None:
        self.env, self.p, self.steps = env, p, 0
        self.layout = Layout.of(env)
        self.rng = np.random.default_rng(p.seed)
        self.net = net
        self.optimiser = torch.optim.Adam(net.parameters(), lr=p.rate, fused=True)
        self.legal = torch.from_numpy(self.layout.legal())
        env.reset(p.seed)

    def step(self, loss: torch.Tensor) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.p.clip)
        self.optimiser.step()

    def epsilon_greedy(self, q: torch.Tensor) -> np.ndarray:
        share = min(1.0, self.steps / self.p.epsilon_steps)
        epsilon = self.p.epsilon + share * (self.p.last_epsilon - self.p.epsilon)
        best = q.masked_fill(~self.legal, -torch.inf).argmax(-1).numpy()
        counts = [self.layout.action_counts[kind] for kind in self.layout.kinds]
        random = self.rng.integers(0, counts, best.shape)
        return np.where(self.rng.random(best.shape) < epsilon, random, best)


class Memory:
    """Rows [time, lane] of what was seen and done."""

    def __init__(self, rows: int, lanes: int, parts: int, features: int) -> None:
        self.seen = np.zeros((rows, lanes, parts, features), np.float32)
        self.mask = np.zeros((rows, lanes, parts), bool)
        self.actions = np.zeros((rows, lanes, parts), np.int64)
        self.rewards = np.zeros((rows, lanes), np.float32)
        self.terminated = np.zeros((rows, lanes), bool)
        self.over = np.zeros((rows, lanes), bool)
        self.head = 0

    def add(self, env: Any, seen: Any, mask: Any, actions: Any) -> None:
        k = self.head
        self.seen[k], self.mask[k], self.actions[k] = seen, mask, actions
        self.rewards[k], self.terminated[k] = env.rewards.sum(1), env.terminated
        self.over[k] = env.started
        self.head += 1

    def draw(self, rng: np.random.Generator, count: int, length: int) -> list[torch.Tensor]:
        start = rng.integers(0, self.head - length, count)
        rows = start[:, None] + np.arange(length + 1)
        lane = rng.integers(0, self.over.shape[1], count)[:, None]
        arrays = (self.seen, self.mask, self.actions, self.rewards, self.terminated, self.over)
        return [torch.from_numpy(one[rows, lane]) for one in arrays]


def squared(now: Any, best: Any, target: Any, drawn: list[torch.Tensor], p: Any) -> torch.Tensor:
    _, mask, actions, rewards, terminated, over = drawn
    chosen = now.gather(-1, actions[:, :-1, :, None])[..., 0]
    total = (chosen * mask[:, :-1]).sum(-1)
    after = target.gather(-1, best.argmax(-1, keepdim=True))[..., 0]
    later = (after * mask[:, 1:]).sum(-1)
    wanted = rewards[:, :-1] + p.gamma * ~terminated[:, :-1] * later
    acted = ~over[:, :-1]
    return ((total - wanted).square() * acted).sum() / acted.sum()


class Replay(Loop):
    """Double DQN; a subclass says how the network is asked."""

    def __init__(self, env: Any, net: Any, p: Any, rows: int, length: int) -> None:
        super().__init__(env, net, p)
        self.target = copy.deepcopy(net)
        self.length = length
        self.memory = Memory(rows, env.num_envs, self.layout.parts, self.layout.features)

    def run(self, steps: int) -> None:
        until = self.steps + steps
        while self.steps < until:
            seen, mask = self.env.observations.copy(), self.env.mask.copy()
            with torch.no_grad():
                q = self.ask(torch.from_numpy(seen), torch.from_numpy(mask))
            actions = self.epsilon_greedy(q)
            self.env.step(actions)
            self.forget()
            self.memory.add(self.env, seen, mask, actions)
            before = self.steps
            self.steps += self.env.num_envs - int(self.env.started.sum())
            if self.steps < self.p.learning_starts or self.memory.head <= self.length:
                continue
            every = self.p.update_every
            for _ in range(self.steps // every - before // every):
                self.step(self.loss(self.memory.draw(self.rng, self.p.batch, self.length)))
                if self.p.tau < 1.0:
                    with torch.no_grad():
                        ours, theirs = list(self.net.parameters()), list(self.target.parameters())
                        torch._foreach_lerp_(theirs, ours, self.p.tau)
            if self.p.tau == 1.0 and before // self.p.target_every < (
                self.steps // self.p.target_every
            ):
                self.target.load_state_dict(self.net.state_dict())

    def forget(self) -> None:
        pass


class Team(Replay):
    def __init__(self, env: Any, p: Any, rows: int) -> None:
        super().__init__(env, Teams(Layout.of(env), p.hidden), p, rows, 1)

    def ask(self, seen: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.net(seen)

    def loss(self, drawn: list[torch.Tensor]) -> torch.Tensor:
        now = self.net(drawn[0][:, :1])
        with torch.no_grad():
            best = self.net(drawn[0][:, 1:]).masked_fill(~self.legal, -torch.inf)
            target = self.target(drawn[0][:, 1:])
        return squared(now, best, target, drawn, self.p)


class Sequences(Replay):
    def __init__(self, env: Any, p: Any, rows: int) -> None:
        net = Transformer(Layout.of(env), p.model_dump())
        super().__init__(env, net, p, rows, p.context)
        shape = (env.num_envs, p.context, self.layout.parts)
        self.context = torch.zeros(*shape, self.layout.features)
        self.there = torch.zeros(shape, dtype=torch.bool)
        self.count = torch.zeros(env.num_envs, dtype=torch.int64)
        self.row = torch.arange(p.context)

    def ask(self, seen: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        self.context = torch.cat([self.context[:, 1:], seen[:, None]], 1)
        self.there = torch.cat([self.there[:, 1:], mask[:, None]], 1)
        self.count = (self.count + 1).clamp(max=self.p.context)
        first = torch.minimum((self.p.context - self.count)[:, None], self.row)
        return self.net(self.context, self.there, first, last=True)[:, 0]

    def forget(self) -> None:
        self.count[torch.from_numpy(self.env.started)] = 0

    def begins(self, over: torch.Tensor) -> torch.Tensor:
        starts = torch.where(over[:, :-1], self.row[1:], 0)
        return functional.pad(starts.cummax(1).values, (1, 0))

    def loss(self, drawn: list[torch.Tensor]) -> torch.Tensor:
        seen, mask, *_, over = drawn
        now = self.net(seen[:, :-1], mask[:, :-1], self.begins(over[:, :-1]))
        with torch.no_grad():
            after = self.begins(over[:, 1:])
            late = self.net(seen[:, 1:], mask[:, 1:], after, last=True)
            best = torch.cat([now[:, 1:], late], 1).masked_fill(~self.legal, -torch.inf)
            target = self.target(seen[:, 1:], mask[:, 1:], after)
        return squared(now, best, target, drawn, self.p)


class Policy(Loop):
    def __init__(self, env: Any, p: Any, rows: int) -> None:
        super().__init__(env, Recurrent(Layout.of(env), p.model_dump()), p)
        self.state = (torch.zeros(env.num_envs, p.cells), torch.zeros(env.num_envs, p.cells))

    def run(self, steps: int) -> None:
        until = self.steps + steps
        while self.steps < until:
            self.learn(self.sample())

    def sample(self) -> list[torch.Tensor]:
        p, env = self.p, self.env
        lanes, rows = env.num_envs, p.rows
        parts, actions = self.layout.parts, self.layout.actions
        memory = Memory(rows, lanes, parts, self.layout.features)
        logp, values, states = np.zeros((rows, lanes), np.float32), [], []
        for t in range(rows):
            if t % p.window == 0:
                states.append(self.state)
            seen, mask = env.observations.copy(), env.mask.copy()
            with torch.no_grad():
                logits, value, self.state = self.net(torch.from_numpy(seen)[:, None], self.state)
            odds = logits.view(lanes, parts, actions).masked_fill(~self.legal, -torch.inf)
            odds = odds.log_softmax(-1)
            noise = torch.from_numpy(self.rng.gumbel(size=odds.shape))
            action = (odds + noise).argmax(-1)
            chosen = odds.gather(-1, action[..., None])[..., 0] * torch.from_numpy(mask)
            logp[t] = chosen.sum(-1).numpy()
            values.append(value[:, 0])
            env.step(action.numpy())
            memory.add(env, seen, mask, action.numpy())
            keep = torch.from_numpy(~env.started)[:, None].float()
            self.state = (self.state[0] * keep, self.state[1] * keep)
            self.steps += lanes - int(env.started.sum())
        with torch.no_grad():
            last = self.net(torch.from_numpy(env.observations)[:, None], self.state)[1]
        value = torch.stack([*values, last[:, 0]]).numpy()
        advantage, later = np.zeros_like(logp), np.zeros(lanes, np.float32)
        for t in range(rows - 1, -1, -1):
            delta = memory.rewards[t] + p.gamma * ~memory.terminated[t] * value[t + 1] - value[t]
            later = np.where(memory.over[t], 0, delta + p.gamma * p.lambda_ * later)
            advantage[t] = later
        wanted = advantage + value[:-1]
        cut = (memory.seen, memory.mask, memory.actions, memory.over, logp, advantage, wanted)
        found = []
        for one in cut:
            windows = one.reshape(rows // p.window, p.window, lanes, *one.shape[2:])
            whole = np.moveaxis(windows, 2, 0).reshape(-1, p.window, *one.shape[2:])
            found.append(torch.from_numpy(whole.astype(np.float32) if one is wanted else whole))
        for k in range(2):
            found.append(torch.stack([one[k] for one in states], 1).flatten(0, 1))
        return found

    def learn(self, rows: list[torch.Tensor]) -> None:
        p, count = self.p, len(rows[0])
        size = count // p.minibatches
        for _ in range(p.epochs):
            order = torch.from_numpy(self.rng.permutation(count))
            for a in range(0, count - size + 1, size):
                chosen = order[a : a + size]
                self.step(self.loss([one[chosen] for one in rows]))

    def loss(self, rows: list[torch.Tensor]) -> torch.Tensor:
        p = self.p
        seen, mask, actions, over, before, advantage, wanted, h, c = rows
        acted = (~over).float()
        count = acted.sum().clamp(min=1)
        logits, values, _ = self.net(seen, (h, c), over)
        odds = logits.view(*over.shape, self.layout.parts, self.layout.actions)
        odds = odds.masked_fill(~self.legal, -torch.inf).log_softmax(-1)
        logp = (odds.gather(-1, actions[..., None])[..., 0] * mask).sum(-1)
        entropy = -((odds.exp() * odds.clamp(min=-1e9)).sum(-1) * mask).sum(-1)
        mean = (advantage * acted).sum() / count
        spread = (((advantage - mean) * acted).square().sum() / count).sqrt()
        advantage = (advantage - mean) / (spread + 1e-8)
        ratio = (logp - before).exp()
        held = ratio.clamp(1 - p.ratio, 1 + p.ratio)
        policy = -(torch.minimum(ratio * advantage, held * advantage) * acted).sum() / count
        critic = ((values - wanted).square() * acted).sum() / count
        entropy = (entropy * acted).sum() / count
        return policy + p.value_weight * critic - p.entropy_weight * entropy
