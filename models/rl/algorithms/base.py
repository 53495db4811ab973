"""What all our algorithms share: runners over batches of environments, and their state."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import COMPONENT_LEARNER, COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME

from data.errors import UserError
from models.rl.best import Best
from models.rl.fragment import Fragment
from models.rl.layout import Layout
from models.rl.learners.base import AgentLearner
from models.rl.networks.module import AgentModule
from models.rl.networks.rllib import module_class
from models.rl.params import Run
from models.rl.runner import BatchRunner, make

PATIENCE = 60
"""Times in a row that no runner may answer, a second apart."""
RECENT = 100
"""Episodes over which the return is averaged."""


class AgentConfig(AlgorithmConfig):
    """RLlib's settings for a training of ours; `of` makes them.

    Without runners of their own nothing of Ray is started: everything is in this process.
    """

    @property
    def is_online(self) -> bool:
        """Whether RLlib shall start runners."""
        return bool(self.num_env_runners)

    def get_default_rl_module_spec(self) -> Any:
        """The network; there is no other."""
        return self._rl_module_spec

    @classmethod
    def of(
        cls,
        algorithm: type[AgentAlgorithm],
        maker: str,
        params: Run,
        training_only: Sequence[str] = (),
    ) -> AgentConfig:
        """Settings of a training.

        Parameters
        ----------
        algorithm : type
        maker : str
            See `models.rl.runner.make`.
        params : Run
            Of the algorithm's ``Params``.
        training_only : sequence of str, optional
            As of `models.rl.line.Agent`.
        """
        env = make(maker, 1, 1, params.env)
        layout = Layout.of(env)
        env.close()
        observations, actions = layout.spaces()
        settings = params.model_dump(by_alias=False)
        model = {"layout": layout.plain(), "network": settings}
        spec = RLModuleSpec(
            module_class=module_class(algorithm.Module),
            observation_space=observations,
            action_space=actions,
            model_config=model,
        )
        config = cls(algo_class=algorithm)
        config.environment(
            observation_space=observations,
            action_space=actions,
            env_config={
                "maker": maker,
                "num_envs": params.num_envs,
                "threads": params.threads,
                "settings": params.env,
                "training_only": list(training_only),
                "odds": settings.get("random", {}),
            },
        )
        config.env_runners(
            env_runner_cls=BatchRunner,
            num_env_runners=params.runners,
            create_local_env_runner=False,
            validate_env_runners_after_construction=True,
        )
        config.learners(
            num_learners=0, learner_class=algorithm.Learner, learner_config_dict=settings
        )
        config.rl_module(rl_module_spec=spec)
        config.fault_tolerance(
            restart_failed_env_runners=True,
            ignore_env_runner_failures=False,
            delay_between_env_runner_restarts_s=0.0,
        )
        config.debugging(seed=params.seed, log_level="ERROR")
        config.reporting(min_time_s_per_iteration=None)
        return config


class AgentAlgorithm(Algorithm):
    """Samples fragments, learns from them and keeps count; one `train` is one round."""

    config: Any
    metrics: Any
    env_runner_group: Any
    learner_group: Any

    Params: type[Run]
    Module: type[AgentModule]
    Learner: type[AgentLearner]
    scales_first = True
    """Whether what was sampled sets the inputs' scale before it is learned from, or after."""

    def setup(self, config: Any) -> None:
        """Make runners, learner and counters."""
        super().setup(config)
        self.settings: dict[str, Any] = self.config.learner_config_dict
        torch.set_num_threads(self.settings["learner_threads"])
        self.layout = Layout.read(self.config.rl_module_spec.model_config["layout"])
        self.runner: BatchRunner | None = None
        if not self.config.num_env_runners:
            self.runner = BatchRunner(config=self.config, worker_index=0, num_workers=0)
            self.runner.module = self.learner.agent
        self.steps = self.updates = self.episodes = 0
        self.recent: list[float] = []
        self.recent_lengths: list[int] = []
        self._failed = 0
        self._missed: set[int] = set()
        self.curve: list[dict[str, float]] = []
        self.best = Best()
        self.rng = np.random.default_rng([self.settings["seed"], 1])

    def _setup_logdir(self) -> None:
        # Results are reported by who calls `train`; RLlib would make a folder in the home.
        self._logdir = None

    @property
    def learner(self) -> AgentLearner:
        """The one learner, which is in this process."""
        found: AgentLearner = self.learner_group._learner
        return found

    def gather(self, **how: Any) -> list[Fragment | None]:
        """A fragment of each runner, in their order; None of one that failed."""
        if self.runner is not None:
            found: list[Fragment | None] = [self.runner.sample(**how)]
        else:
            found = [None] * self.config.num_env_runners
            for one in self.env_runner_group.foreach_env_runner(
                lambda runner: runner.sample(**how),
                local_env_runner=False,
                timeout_seconds=self.config.sample_timeout_s,
            ):
                found[one.worker - 1] = one
        for number, fragment in enumerate(found):
            if fragment is None:
                self._missed.add(number)
                continue
            # What it sampled in between is lost: its next rows don't follow the ones we have.
            fragment.fresh |= number in self._missed
            self._missed.discard(number)
            self._count(fragment)
        self._watch(found)
        return found

    def _watch(self, found: list[Fragment | None]) -> None:
        """Give those that begin anew time, but not for ever."""
        self._failed = 0 if any(found) else self._failed + 1
        if self._failed > PATIENCE:
            raise UserError(
                f"no runner has answered {self._failed} times: look into Ray's logs for why they "
                "end, or sample in this process with runners=0"
            )
        if self._failed:
            time.sleep(1.0)

    def standardise(self, fragment: Fragment) -> None:
        """Take the scale of inputs and rewards from what was sampled."""
        self.learner.standardise(
            fragment.observations, fragment.mask, fragment.rewards, ~fragment.over
        )

    def _count(self, fragment: Fragment) -> None:
        if self.scales_first and self.steps < self.settings["warmup"]:
            self.standardise(fragment)
        self.steps += fragment.steps
        self.episodes += len(fragment.returns)
        self.recent = [*self.recent, *fragment.returns][-RECENT:]
        self.recent_lengths = [*self.recent_lengths, *fragment.lengths][-RECENT:]

    def learn(self, arrays: dict[str, Any], **how: Any) -> dict[str, Any]:
        """Update the network from rows of arrays; see `AgentLearner.update`."""
        rows = len(next(iter(arrays.values())))
        batch = MultiAgentBatch(
            {DEFAULT_MODULE_ID: SampleBatch(arrays)},  # type: ignore[no-untyped-call]
            env_steps=rows,
        )
        timesteps = {NUM_ENV_STEPS_SAMPLED_LIFETIME: self.steps}
        found = self.learner_group.update(batch=batch, timesteps=timesteps, **how)
        result: dict[str, Any] = found[0]
        return result

    def send_weights(self) -> None:
        """Give runners of their own the network as it is now."""
        if self.runner is None:
            self.env_runner_group.sync_weights(
                from_worker_or_learner_group=self.learner_group, inference_only=True
            )

    def restore_env_runners(self, env_runner_group: Any) -> list[int]:
        """Bring runners back that died: they act with the network as it is, in new episodes."""
        if self.runner is not None:
            return []
        restored: list[int] = env_runner_group.probe_unhealthy_env_runners()
        if restored:
            key = f"{COMPONENT_LEARNER}/{COMPONENT_RL_MODULE}"
            weights = self.learner_group.get_state(components=key, inference_only=True)
            state = {
                COMPONENT_RL_MODULE: weights[COMPONENT_LEARNER][COMPONENT_RL_MODULE],
                NUM_ENV_STEPS_SAMPLED_LIFETIME: self.steps,
            }
            env_runner_group.foreach_env_runner(
                lambda runner: runner.set_state(state),
                remote_worker_ids=restored,
                local_env_runner=False,
            )
        return restored

    def report(self, found: dict[str, float]) -> None:
        """Add a point to the curve, and to RLlib's results."""
        point = {"steps": float(self.steps), "updates": float(self.updates), **found}
        if self.recent:
            point["return"] = float(np.mean(self.recent))
            # The first episodes are cut to unlike lengths: a step's reward compares them.
            point["reward"] = sum(self.recent) / sum(self.recent_lengths)
        self.curve.append(point)
        for name, value in point.items():
            self.metrics.log_value(("training", name), value, window=1)

    def get_run(self) -> dict[str, Any]:
        """All that decides how the training goes on: plain values, lists and arrays."""
        learner = self.learner
        tensors = {name: value.numpy() for name, value in learner.agent.state_dict().items()}
        moments = learner.optimiser.state_dict()["state"]
        return {
            "network": tensors,
            "optimiser": {
                str(k): {n: v.numpy() for n, v in one.items()} for k, one in moments.items()
            },
            "best": self.best.network,
            "kept": self.best.numbers(),
            "counts": [self.steps, self.updates, self.episodes, self.iteration],
            "recent": self.recent,
            "recent_lengths": self.recent_lengths,
            "curve": self.curve,
            "rng": self.rng.bit_generator.state,
            "torch": torch.get_rng_state().numpy(),
            "numpy": _legacy_state(),
            "runners": self._places(),
        }

    def set_run(self, run: dict[str, Any]) -> None:
        """Go on where `get_run` was called."""
        learner = self.learner
        tensors = {name: torch.from_numpy(value) for name, value in run["network"].items()}
        learner.agent.load_state_dict(tensors)
        moments = {
            int(k): {n: torch.from_numpy(v) for n, v in one.items()}
            for k, one in run["optimiser"].items()
        }
        groups = learner.optimiser.state_dict()["param_groups"]
        learner.optimiser.load_state_dict({"state": moments, "param_groups": groups})
        self.steps, self.updates, self.episodes, self._iteration = run["counts"]
        self.recent, self.curve = list(run["recent"]), list(run["curve"])
        self.recent_lengths = list(run["recent_lengths"])
        self.best.restore(run["kept"], run["best"])
        self.rng.bit_generator.state = run["rng"]
        torch.set_rng_state(torch.from_numpy(run["torch"]))
        name, keys, *rest = run["numpy"]
        np.random.set_state((name, keys, *rest))  # noqa: NPY002
        self._set_places(run["runners"])

    def _places(self) -> list[tuple[int, dict[str, Any]]]:
        if self.runner is not None:
            return [(0, self.runner.get_place())]
        found: list[tuple[int, dict[str, Any]]] = self.env_runner_group.foreach_env_runner(
            lambda runner: (runner.worker_index, runner.get_place()), local_env_runner=False
        )
        return found

    def _set_places(self, places: list[tuple[int, dict[str, Any]]]) -> None:
        by_number = dict(places)
        if self.runner is not None:
            self.runner.set_place(by_number[0])
            return
        steps = {NUM_ENV_STEPS_SAMPLED_LIFETIME: self.steps}

        def go_on(runner: BatchRunner) -> None:
            # One that was dead when the checkpoint was written begins anew.
            if runner.worker_index in by_number:
                runner.set_place(by_number[runner.worker_index])
            else:
                runner.set_state(steps)

        self.env_runner_group.foreach_env_runner(go_on, local_env_runner=False)
        self.send_weights()

    def cleanup(self) -> None:
        """End runners and learner."""
        if self.runner is not None:
            self.runner.stop()
        super().cleanup()


def _legacy_state() -> list[Any]:
    """State of the generator that numpy's functions without one of their own use."""
    return list(np.random.get_state())  # noqa: NPY002
