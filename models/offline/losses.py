"""Losses of offline learning, for teams whose Q is the sum of their parts'.

Actions are joint: one for each part that is there. As the team's Q is a sum, the logarithm of the
sum over all joint actions is the sum of the parts' own, so that nothing grows with their number.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def chosen(values: Tensor, actions: Tensor, mask: Tensor) -> Tensor:
    """What a team's parts have for the actions taken, summed.

    Parameters
    ----------
    values : float32 tensor [B, L, A, C]
    actions : int64 tensor [B, L, A]
    mask : bool tensor [B, L, A]
        Parts that are there.

    Returns
    -------
    tensor [B, L]
    """
    return (values.gather(-1, actions[..., None])[..., 0] * mask).sum(-1)


def mean_over(values: Tensor, rows: Tensor) -> Tensor:
    """Mean over the rows that count; both [B, L]."""
    return (values * rows).sum() / rows.sum().clamp(min=1)


def conservatism(values: Tensor, actions: Tensor, mask: Tensor) -> Tensor:
    """How far all joint actions together lie above the one that was logged.

    The log-sum-exp of the team's Q less the Q of the logged action (CQL, arXiv 2006.04779, eq. 4
    with the policy taken out). Takes and returns what `chosen` does.
    """
    every = (values.logsumexp(-1) * mask).sum(-1)
    return every - chosen(values, actions, mask)


def expectile(difference: Tensor, share: float) -> Tensor:
    """Squares that weigh ``share`` above 0 and its rest below (IQL, arXiv 2110.06169, eq. 5)."""
    return torch.where(difference > 0, share, 1.0 - share) * difference.square()


def unlikelihood(scores: Tensor, actions: Tensor, mask: Tensor) -> Tensor:
    """Minus the logarithm of a policy's odds of the joint action that was logged; as `chosen`."""
    return -chosen(functional.log_softmax(scores, -1), actions, mask)


def advantage_weights(advantage: Tensor, sharpness: float, heaviest: float) -> Tensor:
    """How much a logged action counts when it is cloned (IQL, eq. 7)."""
    return (sharpness * advantage).exp().clamp(max=heaviest)


def lower_bound(members: Tensor, pessimism: float) -> Tensor:
    """Mean of an ensemble's Qs less some of its deviations.

    Parameters
    ----------
    members : tensor [K, ...]
    pessimism : float
    """
    return members.mean(0) - pessimism * members.std(0, correction=0)
