"""A trained network as a policy: takes a batch of environments, says what every part does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from data.errors import UserError
from models.rl import agents, checkpoint, choose, states
from models.rl.best import acting
from models.rl.networks.module import OBS, STATE_IN, STATE_OUT
from models.rl.params import Run


class Greedy:
    """Takes the best action everywhere; remembers what a recurrent network does.

    Parameters
    ----------
    module : AgentModule
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._kind = next(module.parameters()).dtype
        first = module.get_initial_state()
        self._first = {
            name: value.to(self._kind) if value.is_floating_point() else value
            for name, value in first.items()
        }
        self._blank = states.of(self._first, 1)
        self._state: states.State = {}
        self.scores: NDArray[Any] = np.zeros((0, 0, 0), np.float32)
        """Scores [N, A, C] of the last call; -inf for actions that a part doesn't have."""

    def __call__(self, batch: Any) -> NDArray[np.int64]:
        """Actions, int64 array [N, A]."""
        if not self._state:
            self._state = states.of(self._first, batch.num_envs)
        self._state = states.begun_anew(self._state, self._blank, batch.started)
        seen: dict[str, Any] = {
            OBS: torch.from_numpy(batch.observations.copy()).to(self._kind),
            "mask": torch.from_numpy(batch.mask.copy()),
        }
        if self._state:
            seen[STATE_IN] = self._state
        with torch.no_grad():
            out = self._module.forward_exploration(seen)
        self._state = out.get(STATE_OUT, {})
        self.scores = out["scores"].numpy()
        return choose.best(self.scores)


def kept(folder: Path) -> tuple[str, Run, Any]:
    """The best network of a training.

    Parameters
    ----------
    folder : Path
        What ``cczoo train`` wrote: ``reports/rl/tcco/seed-7``.

    Returns
    -------
    name : str
        Agent.
    params : Run
        Its training's settings.
    module : AgentModule
        The network that was best in validation; the last one if none was judged.

    Raises
    ------
    UserError
        When there is no checkpoint in the folder, or it is damaged.
    """
    found = checkpoint.latest(folder)
    if found is None:
        raise UserError(f"{folder}: no checkpoint: name a folder that `cczoo train` wrote into")
    tree = checkpoint.read(found)
    name = str(tree["agent"])
    params = agents.settings(name, tree["settings"])
    weights = tree["best"] or acting(tree["network"])
    module = _built(name, params)
    module.load_state_dict({key: torch.from_numpy(value) for key, value in weights.items()})
    return name, params, module


def untrained(name: str, params: Run) -> Any:
    """The network that a training begins with, an AgentModule."""
    from models.rl import training

    algorithm = training.start(name, params)
    try:
        module = _built(name, params)
        module.load_state_dict(acting(algorithm.learner.agent.state_dict()))
    finally:
        algorithm.stop()
    return module


def _built(name: str, params: Run) -> Any:
    from models.rl.layout import Layout
    from models.rl.runner import make

    line = agents.agent(name)
    env = make(line.maker, 1, 1, params.env)
    model = {"layout": Layout.of(env).plain(), "network": params.model_dump(by_alias=False)}
    env.close()
    return line.load().Module(model_config=model)
