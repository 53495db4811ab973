"""The comparisons by name: a new one is one line."""

from __future__ import annotations

from typing import Any

from models.rl.line import DQN, PPO, TWIN, VDN, Agent

_TCCO, _NUWA, _MACC = (
    "models.envs.tcco:batch",
    "models.envs.nuwa_twin:batch",
    "models.envs.macc:batch",
)
_TRANSFORMER = "models.rl.algorithms.replay:TransformerDqnAlgorithm"
_TRANSFORMER_PARAMS = "models.rl.params:TransformerDqn"
_STACKED = "models.rl.comparisons.stacked:StackedDqnAlgorithm"
_STACKED_PARAMS = "models.rl.comparisons.params:StackedDqn"
_ACTOR = "models.rl.comparisons.actor:StackedPpoAlgorithm"
_ACTOR_PARAMS = "models.rl.comparisons.params:StackedPpo"
_INDEPENDENT = "models.rl.comparisons.independent:IndependentAlgorithm"
_INDEPENDENT_PARAMS = "models.rl.comparisons.params:Independent"

TABLE_1: dict[str, Any] = {
    "logs": False,
    "rate": 1e-4,
    "last_rate": 1e-6,
    "schedule": "stairs",
    "decay": 0.96,
    "decay_every": 10,
    "gamma": 0.969,
    "batch": 32,
    "capacity": 1_000_000,
    "target_every": 10_000,
    "context": 20,
}
"""tcco.txt Table I; the network's sizes are the defaults, and it sees observations as they are."""

SECONDS: dict[str, Any] = {
    "steps": 12_000,
    "epsilon_steps": 5_000,
    "learning_starts": 500,
    "warmup": 4_000,
    "update_every": 2,
    "target_every": 800,
    "report_every": 200,
    "validate_every": 2_000,
    "env": {
        "params": {
            "observation": {"interval_us": 1_000_000, "peak_intervals": 1},
            "steps": 20,
            "start_intervals": 2,
            "probe_intervals": 10,
        },
        "reward": {"history": 1},
    },
}
"""An episode and its phases last as long as by default, and there are 50 times fewer decisions; a
decision costs 50 times as much to simulate, so there are fewer of them, each learned from more."""

MACC_PRINTED: dict[str, Any] = {
    # Table 1; no word on how the rate falls.
    "rate": 0.01,
    "last_rate": 0.01,
    "gamma": 0.9,
    "tau": 0.05,
    # Table 1's first one, and eq. 7's fall.
    "epsilon": 0.9,
    "epsilon_decay": 0.995,
    "last_epsilon": 0.0,
    # Algorithm 1: an update a step, whose target chooses, too.
    "update_every": 1,
    "double": False,
    "centre": False,
    # Exploring is over soon: learning must not wait for it.
    "learning_starts": 128,
    # Eq. 1.
    "env": {"params": {"step_segments": 1}},
}


def _tcco(summary: str, **preset: Any) -> Agent:
    return Agent(_TCCO, _TRANSFORMER, _TRANSFORMER_PARAMS, summary, DQN, preset)


COMPARISONS: dict[str, Agent] = {
    "tcco-printed": _tcco("TCCO as its Table I prints it", **TABLE_1),
    "tcco-joint": Agent(
        _TCCO,
        "models.rl.comparisons.joint:JointAlgorithm",
        _TRANSFORMER_PARAMS,
        "TCCO with one head over all joint actions",
        DQN,
    ),
    "tcco-one-step": Agent(
        _TCCO,
        _STACKED,
        _STACKED_PARAMS,
        "TCCO without its Transformer, by the present observation",
        DQN,
        {"context": 1},
    ),
    "tcco-stacked": Agent(
        _TCCO,
        _STACKED,
        _STACKED_PARAMS,
        "TCCO without its Transformer, by stacked observations",
        DQN,
    ),
    "tcco-1000ms": _tcco("TCCO that decides once a second", **SECONDS),
    "tcco-no-expflag": _tcco(
        "TCCO without the expflag, observed or rewarded",
        env={"params": {"observation": {"explore_after": 1_000_000_000}}},
    ),
    "tcco-context-5": _tcco("TCCO with a context of 5", context=5),
    "tcco-context-10": _tcco("TCCO with a context of 10", context=10),
    "tcco-context-40": _tcco("TCCO with a context of 40", context=40),
    "nuwa-dqn": Agent(
        _NUWA,
        _STACKED,
        _STACKED_PARAMS,
        "Nuwa's receiver by DQN, without memory",
        DQN,
        {"context": 8, "gamma": 0.95, "subflow_width": 64, "width": 64},
        TWIN,
    ),
    "nuwa-ppo": Agent(
        _NUWA,
        _ACTOR,
        _ACTOR_PARAMS,
        "Nuwa's receiver by PPO, without memory",
        PPO,
        training_only=TWIN,
    ),
    "nuwa-a2c": Agent(
        _NUWA,
        _ACTOR,
        _ACTOR_PARAMS,
        "Nuwa's receiver by A2C, without memory",
        {name: tried for name, tried in PPO.items() if name != "epochs"},
        # PPO's objective with one epoch over one batch, whose ratios are 1: nothing is clipped.
        {"epochs": 1, "minibatches": 1, "ratio": 1e9, "rows": 5, "window": 5},
        TWIN,
    ),
    "macc-printed": Agent(
        _MACC,
        "models.rl.algorithms.replay:VdnAlgorithm",
        "models.rl.params:Vdn",
        "MA-CC as its Table 1, eqs. 1 and 7 and algorithm 1 print it",
        VDN,
        MACC_PRINTED,
    ),
    "macc-independent": Agent(
        _MACC,
        _INDEPENDENT,
        _INDEPENDENT_PARAMS,
        "MA-CC's parts, each by its own rewards (independent Q-learning)",
        VDN,
    ),
    "macc-qmix": Agent(
        _MACC,
        "models.rl.comparisons.qmix:QmixAlgorithm",
        "models.rl.comparisons.params:Qmix",
        "MA-CC's team by QMIX",
        VDN,
    ),
    "macc-rl-tcp": Agent(
        _MACC,
        _INDEPENDENT,
        _INDEPENDENT_PARAMS,
        "RL-TCP: MA-CC's senders alone, before FIFO queues",
        VDN,
        {"env": {"sampler": "dumbbell_fifo"}},
    ),
    "macc-rl-tcp-red": Agent(
        _MACC,
        _INDEPENDENT,
        _INDEPENDENT_PARAMS,
        "RL-TCP: MA-CC's senders alone, before RED",
        VDN,
        {"env": {"sampler": "dumbbell_red"}},
    ),
    "macc-rl-aqm": Agent(
        _MACC,
        _INDEPENDENT,
        _INDEPENDENT_PARAMS,
        "RL-AQM: MA-CC's routers alone, behind NewReno",
        VDN,
        {"env": {"sampler": "dumbbell_newreno"}},
    ),
}
"""Name, as in ``cczoo train NAME``, -> what an agent is compared with."""
