"""Our networks as RLlib trains them: the same classes, with RLlib's own beside."""

from __future__ import annotations

from typing import Any

from ray.rllib.core.rl_module.apis import InferenceOnlyAPI
from ray.rllib.core.rl_module.torch import TorchRLModule

from models.rl.networks.module import AgentModule


def module_class(kind: type[AgentModule]) -> type[TorchRLModule]:
    """The class that RLlib makes networks of a kind by.

    Parameters
    ----------
    kind : type
        A subclass of `AgentModule`.
    """

    class Trained(TorchRLModule, kind, InferenceOnlyAPI):  # type: ignore[misc,valid-type]
        # RLlib's own would switch all layers to another mode and back, and asks for less.
        forward_exploration = kind.forward_exploration
        get_initial_state = kind.get_initial_state
        _forward: Any = kind._forward

    Trained.__name__ = Trained.__qualname__ = kind.__name__
    return Trained
