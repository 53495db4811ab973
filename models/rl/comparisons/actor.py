"""PPO and A2C without memory: nuwa.txt Fig. 12's comparisons for the LSTM."""

from __future__ import annotations

from models.rl.algorithms.ppo import PpoAlgorithm
from models.rl.comparisons.params import StackedPpo
from models.rl.learners.ppo import PpoLearner
from models.rl.networks.actor import ActorModule


class StackedPpoAlgorithm(PpoAlgorithm):
    """PPO without memory; with one epoch over one batch and no clipping it is A2C."""

    Params, Module, Learner = StackedPpo, ActorModule, PpoLearner
