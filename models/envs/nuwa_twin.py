"""Nuwa's environment with rewards less a twin's: what k gains, not what a trace is worth.

Returns differ much more between traces than between policies. A twin has the same traces and the
same seeds, and keeps one k: the difference to it is what a policy can do something about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from models.envs.batching import Array
from models.envs.curriculum import Varied
from models.envs.nuwa import NuwaBatch, NuwaParams
from models.envs.nuwa_loop import K_HIGH, K_LOW
from models.envs.nuwa_reward import NuwaReward
from models.envs.samplers import Sampler, named
from models.envs.scripted import nuwa_hold, with_k


class TwinNuwaBatch(NuwaBatch):
    """A batch whose rewards are less those that a second one gets with a fixed k.

    Everything else, observations and ends of episodes included, is of the batch itself. A twin
    whose finite flow has arrived earlier takes nothing off any more.

    Parameters
    ----------
    num_envs : int
    sampler : Sampler
    twin_k : float
        The twin's k, which it keeps.
    **options
        As for `NuwaBatch`, for both.
    """

    def __init__(self, num_envs: int, sampler: Sampler, twin_k: float, **options: Any) -> None:
        super().__init__(num_envs, sampler, **options)
        self.twin = NuwaBatch(num_envs, with_k(sampler, twin_k), **options)

    def reset(self, seed: int) -> None:
        """Begin an episode everywhere, of both."""
        super().reset(seed)
        self.twin.reset(seed)

    def step(self, actions: Array) -> None:
        """Act, and let the twin hold its k."""
        twin = self.twin
        begins = self.terminated | self.truncated
        arrived = twin.terminated & ~begins
        ended = self.terminated.copy(), self.truncated.copy()
        super().step(actions)
        # The twin's episodes end when the batch's own do, and no sooner.
        twin.terminated[:], twin.truncated[:] = ended
        twin.step(nuwa_hold(twin))
        self.rewards[~arrived] -= twin.rewards[~arrived]

    def close(self) -> None:
        """End the threads of both."""
        super().close()
        self.twin.close()

    def get_state(self) -> dict[str, Any]:
        """All that decides what comes next, the twin's too."""
        return {**super().get_state(), "twin": self.twin.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on where `get_state` was called, to the bit."""
        super().set_state(state)
        self.twin.set_state(state["twin"])


class NuwaSettings(Varied):
    """What `batch` makes environments of."""

    sampler: str = "wireless"
    """As for `models.envs.samplers.named`."""
    reward: NuwaReward = NuwaReward()
    params: NuwaParams = NuwaParams()
    twin_k: float | None = Field(None, ge=K_LOW, le=K_HIGH)
    """Rewards are less those of a twin that keeps this k (ours); judging takes none off."""


def batch(
    num_envs: int, threads: int | None = None, settings: Mapping[str, Any] | None = None
) -> NuwaBatch:
    """Make a batch by plain settings, as a trainer has them; see `NuwaSettings`."""
    made = NuwaSettings.parse(settings or {}, "environment")
    sampler = named(made.sampler)
    options: dict[str, Any] = {"reward": made.reward, "params": made.params, "threads": threads}
    options |= made.options()
    if made.twin_k is None:
        return NuwaBatch(num_envs, sampler, **options)
    return TwinNuwaBatch(num_envs, sampler, made.twin_k, **options)
