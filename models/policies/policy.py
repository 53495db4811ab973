"""A trained policy: a network's weights, what it observes, and where it acts."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from models.policies import RELEASED
from models.policies.scenes import ENVIRONMENTS
from models.rl.networks import NETWORKS

if TYPE_CHECKING:
    from models.rl.layout import Layout
    from models.rl.networks.module import AgentModule

Weights = dict[str, NDArray[Any]]
SCALES = ("standardise.shift", "standardise.scale")
"""Of the inputs: a row for each kind of part."""


@dataclass(frozen=True)
class Policy:
    """What it takes to act.

    Attributes
    ----------
    name : str
        Of the entry, or of the training's folder.
    agent : str
        Name of the training, as in ``cczoo train``.
    environment : str
        Key of `models.policies.scenes.ENVIRONMENTS`.
    network : str
        Key of `models.rl.networks.NETWORKS`; ``module:class`` of one that has no line there, which
        can be played but not released.
    settings : mapping
        Of its training, among them the network's.
    params : mapping
        The environment's, as its training had them.
    layout : Layout
        Of the training's environments.
    kinds : tuple of int
        Kinds of parts that it decides for.
    weights : dict
        Name -> array; `SCALES` have a row for each kind of the layout.
    """

    name: str
    agent: str
    environment: str
    network: str
    settings: Mapping[str, Any]
    params: Mapping[str, Any]
    layout: Layout
    kinds: tuple[int, ...]
    weights: Weights

    @property
    def runs_routers(self) -> bool:
        """Whether it decides for queues, be it alone or beside senders."""
        return self.environment == "macc" and 1 in self.kinds

    def module(self, layout: Layout) -> AgentModule:
        """The network for as many parts as a scenario has, in double precision.

        So neither the machine's order of summing nor the number of episodes side by side decides
        between two actions.

        Parameters
        ----------
        layout : Layout
            With the same kinds of parts as the training's.
        """
        import torch

        module, _, name = NETWORKS.get(self.network, self.network).partition(":")
        kind = getattr(importlib.import_module(module), name)
        model = {"layout": layout.plain(), "network": dict(self.settings)}
        found: AgentModule = kind(model_config=model)
        state = found.state_dict()
        for key, value in self.weights.items():
            rows = value[list(layout.kinds)] if key in SCALES else value
            state[key] = torch.from_numpy(np.ascontiguousarray(rows))
        found.load_state_dict(state)
        return found.double().eval()

    def actor(self, layout: Layout) -> Any:
        """What takes the best action everywhere in a batch of this layout."""
        from models.rl.policy import Greedy

        return Greedy(self.module(layout))

    def only(self, name: str, kinds: tuple[int, ...] | None = None) -> Policy:
        """The part of it that decides for some kinds, by default for those of `RELEASED`."""
        kinds = RELEASED[name].kinds if kinds is None else kinds
        others = [k for k in range(len(self.layout.action_counts)) if k not in kinds]
        prefixes = tuple(f"net.kinds.{k}." for k in others)
        weights = {k: v for k, v in self.weights.items() if not k.startswith(prefixes)}
        return replace(self, name=name, kinds=kinds, weights=weights)

    def joined(self, other: Policy, name: str) -> Policy:
        """Both as one, each for its own kinds of parts.

        Raises
        ------
        UserError
            When they weren't trained alike.
        """
        same = ("agent", "environment", "network", "settings", "layout", "params")
        for what in same:
            if getattr(self, what) != getattr(other, what):
                raise UserError(f"{name}: {self.name} and {other.name} differ in {what}")
        weights = {**self.weights, **other.weights}
        for key in SCALES:
            weights[key] = self.weights[key].copy()
            weights[key][list(other.kinds)] = other.weights[key][list(other.kinds)]
        kinds = tuple(sorted({*self.kinds, *other.kinds}))
        return replace(self, name=name, kinds=kinds, weights=weights)


def as_weights(name: str, content: bytes) -> Weights:
    """A file in the place of weights, so that what tells policies apart tells these apart too."""
    return {name: np.frombuffer(content, np.uint8)}


def of_training(folder: Path) -> Policy:
    """The best network of a training.

    Parameters
    ----------
    folder : Path
        What ``cczoo train`` wrote: ``reports/rl/tcco/seed-7``.

    Raises
    ------
    UserError
        When there is no checkpoint, or its agent plays in no network.
    """
    from models.rl import agents
    from models.rl.layout import Layout
    from models.rl.policy import kept

    name, params, module = kept(folder)
    line = agents.agent(name)
    environment = next((k for k, v in ENVIRONMENTS.items() if line.maker in v.makers), None)
    if environment is None:
        raise UserError(f"{folder}: {name!r} is no congestion control: it plays no network")
    settings: Any = ENVIRONMENTS[environment].settings().parse(params.env, f"{folder}: env")
    acting = type(module).acts_as
    if acting is not None:
        whole, module = module, acting(model_config=module.model_config)
        module.load_state_dict(whole.state_dict(), strict=False)
    path = f"{type(module).__module__}:{type(module).__qualname__}"
    network = next((key for key, value in NETWORKS.items() if value == path), path)
    state = {key: value.numpy() for key, value in module.state_dict().items()}
    weights = {key: value for key, value in state.items() if key.startswith("net.")}
    layout = Layout.read(module.model_config["layout"])
    every = range(len(layout.action_counts))
    first = [layout.kinds.index(kind) if kind in layout.kinds else 0 for kind in every]
    weights |= {key: state[key][first] for key in SCALES}
    # Senders alone, or routers alone, may have been there to learn.
    seen = state["standardise.count"][:, 0] > 0
    kinds = [kind for kind in every if kind in layout.kinds and (seen[kind] or not seen.any())]
    return Policy(
        name=str(folder),
        agent=name,
        environment=environment,
        network=network,
        settings=params.model_dump(mode="json", by_alias=False),
        params=settings.params.model_dump(mode="json"),
        layout=layout,
        kinds=tuple(kinds),
        weights=weights,
    )
