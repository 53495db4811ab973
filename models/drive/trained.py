"""Trained policies that drive live connections: a zoo entry's network, or an exported bundle's."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from features.intervals import scaled
from features.tcco import FEATURES, HALF, TccoObservation
from models.drive.deciding import Moment
from models.drive.driving import Driving
from models.onnx_safe import parsed

Key = tuple[int, int]


class Acting:
    """Decides for connections by a policy's network, and remembers each one's context.

    Parameters
    ----------
    policy : Policy
        Of `models.policies`.
    """

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self._layout = _known_parts(policy)
        self._parts = int(self._layout.parts)
        self._reach = int(policy.params["reach"])
        self._actors: dict[Key, Any] = {}
        # What is made anew takes longer than an interval: those of connections that ended wait.
        self._idle = [policy.actor(self._layout)]

    def __call__(self, moment: Moment) -> NDArray[np.int64]:
        """Steps of the subflows."""
        count, key = len(moment.targets), moment.key
        if count > self._parts:
            raise UserError(
                f"{self._policy.name}: {count} subflows, it knows {self._parts} at most"
            )
        started = moment.started or key not in self._actors
        if key not in self._actors:
            actor = self._idle.pop() if self._idle else self._policy.actor(self._layout)
            self._actors[key] = actor
        values = np.zeros((1, self._parts, len(FEATURES)))
        values[0, :count] = moment.values
        seen = np.zeros(values.shape, np.float32)
        seen[0, :count] = scaled(moment.values, FEATURES, HALF)
        mask = np.arange(self._parts)[None] < count
        batch = SimpleNamespace(
            num_envs=1, values=values, observations=seen, mask=mask, started=np.array([started])
        )
        actions: NDArray[np.int64] = self._actors[key](batch)[0, :count]
        return actions - self._reach

    def forget(self, key: Key) -> None:
        """Forget a connection that has ended."""
        if key in self._actors:
            self._idle.append(self._actors.pop(key))


def _known_parts(policy: Any) -> Any:
    """A policy's layout, with no more subflows than its exported file has room for."""
    content = getattr(policy, "content", b"")
    if not content:
        return policy.layout
    said = {item.key: item.value for item in parsed(content, policy.name).metadata_props}
    parts = int(said.get("parts", policy.layout.parts))
    return replace(policy.layout, kinds=policy.layout.kinds[:parts])


def trained(name: str) -> Driving:
    """What a name of a trained policy stands for; see `models.drive.policies.driving`.

    Raises
    ------
    UserError
        There is none, or it sets no windows of TCCO's kind.
    """
    from models.closedloop import player
    from models.policies.observed import observation_hash

    policy = player(name).policy
    if policy.environment != "tcco":
        raise UserError(
            f"{name}: an agent of {policy.environment}: a proxy reports what TCCO's observe"
        )
    if not getattr(policy, "content", b""):
        import torch

        torch.set_num_threads(1)
    observation = TccoObservation.parse(policy.params["observation"], f"{name}: observation")
    return Driving(
        name=policy.name,
        make=lambda: Acting(policy),
        schema=observation_hash(policy.environment, 0, policy.params),
        observation=observation,
        params=dict(policy.params),
    )
