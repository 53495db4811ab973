"""No memory: a plain network sees the last observations side by side, or the present one alone.

TCCO without its Transformer (tcco.txt sections II.C and IV.B), and Fig. 12's DQN for Nuwa.
"""

from __future__ import annotations

from models.rl.algorithms.replay import ReplayAlgorithm
from models.rl.comparisons.params import StackedDqn
from models.rl.learners.q import QLearner
from models.rl.networks.stacked import StackedModule


class StackedDqnAlgorithm(ReplayAlgorithm):
    """Double DQN without memory."""

    Params, Module, Learner = StackedDqn, StackedModule, QLearner
