"""Proximal policy optimisation on windows of a recurrent actor and critic (nuwa.txt eqs. 7-9)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, minimum

from models.rl import schedule
from models.rl.learners.base import AgentLearner, Batch

Float = NDArray[np.float32]


def advantages(
    rewards: Float,
    values: Float,
    terminated: NDArray[np.bool_],
    over: NDArray[np.bool_],
    gamma: float,
    lambda_: float,
) -> Float:
    """How much better than expected each action was (eqs. 7 and 8).

    Parameters
    ----------
    rewards : float32 array [T, N]
    values : float32 array [T + 1, N]
        What the critic expected of each row and of the one after the last.
    terminated, over : bool array [T, N]
        As in `models.rl.fragment.Fragment`. A row that is over has the value of an episode's last
        observation, which counts unless the episode has terminated.
    gamma, lambda_ : float

    Returns
    -------
    float32 array [T, N]
        0 in rows that are over.
    """
    found = np.zeros_like(rewards)
    later = np.zeros_like(rewards[0])
    for t in range(len(rewards) - 1, -1, -1):
        delta = rewards[t] + gamma * ~terminated[t] * values[t + 1] - values[t]
        # What comes after a row that is over is another episode's.
        later = np.where(over[t], 0.0, delta + gamma * lambda_ * later).astype(np.float32)
        found[t] = later
    return found


class PpoLearner(AgentLearner):
    """Learns a module with ``windows``, a `RecurrentModule` or one that stacks observations."""

    def loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The clipped objective, the critic's squared error, and a bonus for staying undecided."""
        settings, mask, over = self.settings, batch["mask"], batch["over"]
        acted = (~over).float()
        count = acted.sum().clamp(min=1.0)
        seen = self.agent.standardise(batch["observations"], mask)
        state = tuple(batch[name] for name in self.agent.get_initial_state())
        logits, values = self.agent.windows(seen, over, state)
        odds = logits.log_softmax(-1)
        chosen = odds.gather(-1, batch["actions"][..., None])[..., 0]
        logp = (chosen * mask).sum(-1)
        entropy = -(odds.exp() * odds.clamp(min=-1e9)).sum(-1)
        entropy = ((entropy * mask).sum(-1) * acted).sum() / count
        advantage = batch["advantages"]
        mean = (advantage * acted).sum() / count
        spread = (((advantage - mean) * acted).square().sum() / count).sqrt()
        advantage = (advantage - mean) / (spread + 1e-8)
        ratio = (logp - batch["logp"]).exp()
        held = ratio.clamp(1 - settings["ratio"], 1 + settings["ratio"])
        policy = -(minimum(ratio * advantage, held * advantage) * acted).sum() / count
        critic = ((values - batch["wanted"]).square() * acted).sum() / count
        undecided = schedule.entropy_weight(settings, self.done) * entropy
        loss = policy + settings["value_weight"] * critic - undecided
        kl = ((batch["logp"] - logp) * acted).sum() / count
        return loss, {"critic": critic.detach(), "entropy": entropy.detach(), "kl": kl.detach()}
