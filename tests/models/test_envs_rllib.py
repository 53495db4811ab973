"""RLlib's new stack builds the environments and samples from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.envs.macc import MaccParams, parallel_env
from models.envs.samplers import dumbbell
from models.envs.tcco import TccoParams

# One process for all that imports Ray; none of this starts a cluster.
pytestmark = pytest.mark.xdist_group("ray")

STEPS = 6


def test_a_gymnasium_environment_is_sampled_by_its_name() -> None:
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.connectors.env_to_module import FlattenObservations
    from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

    params = TccoParams(steps=STEPS, context=2, start_intervals=2)
    config = (
        PPOConfig()
        .environment("models.envs:cczoo/TCCO-v0", env_config={"params": params})
        .env_runners(
            num_env_runners=0,
            # RLlib's own networks take observations of three dimensions for images.
            env_to_module_connector=lambda env, spaces, device: FlattenObservations(),
        )
    )
    runner = SingleAgentEnvRunner(config=config)
    episodes = runner.sample(num_episodes=1)
    runner.stop()
    assert [len(episode) for episode in episodes] == [STEPS]
    assert episodes[0].is_truncated
    observations = np.array(episodes[0].get_observations())
    assert observations.shape == (STEPS + 1, 2 * 2 * 6)
    assert np.isfinite(observations).all()
    assert len(set(np.asarray(episodes[0].get_rewards()).tolist())) > 1


def test_the_team_of_macc_is_sampled_with_a_policy_per_kind_of_agent() -> None:
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
    from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
    from ray.tune.registry import register_env

    def team(context: dict[str, Any]) -> Any:
        return ParallelPettingZooEnv(parallel_env(**context))

    register_env("cczoo-macc-test", team)
    params = MaccParams(steps=STEPS, start_intervals=2)
    config = (
        PPOConfig()
        .environment("cczoo-macc-test", env_config={"params": params, "sampler": dumbbell()})
        .env_runners(num_env_runners=0)
        .multi_agent(
            policies={"sender", "router"},
            policy_mapping_fn=lambda agent, episode, **rest: agent.split("_")[0],
        )
    )
    runner = MultiAgentEnvRunner(config=config)
    (episode,) = runner.sample(num_episodes=1)
    runner.stop()
    assert len(episode) == STEPS
    assert set(episode.agent_ids) == {"sender_0", "sender_1", "sender_2", "router_0", "router_1"}
    assert set(runner.module.keys()) == {"sender", "router"}
    for agent in episode.agent_episodes.values():
        assert len(agent) == STEPS
        assert np.isfinite(np.asarray(agent.get_rewards())).all()
