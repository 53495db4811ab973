"""Settings of the three trainings; the papers' values where they give any.

Times are steps of one environment's agent, summed over all environments.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from data.strict import Strict

Kind = Annotated[int, Field(ge=0)]
Weight = Annotated[float, Field(ge=0)]
Width = Annotated[int, Field(ge=1)]


class Run(Strict):
    """What every training has, whatever learns."""

    steps: int = Field(60_000, ge=1)
    """Steps of the whole training."""
    num_envs: int = Field(64, ge=1)
    """Environments of a runner, stepped side by side."""
    threads: int = Field(1, ge=1)
    """Threads that step them."""
    learner_threads: int = Field(1, ge=1)
    """Threads of torch; with more than one the last digits may differ from run to run."""
    runners: int = Field(0, ge=0)
    """Runners as actors of Ray; 0 samples in this process."""
    seed: int = Field(7, ge=0)
    rate: float = Field(1e-3, ge=0)
    """Adam's learning rate at the beginning; it falls."""
    last_rate: float = Field(1e-5, ge=0)
    """And at the end."""
    schedule: Literal["linear", "cosine", "stairs"] = "linear"
    """How it falls over the training: in a line, along half a wave, or by `decay` every
    `decay_every` steps, not below the last one."""
    decay: float = Field(0.96, gt=0, le=1)
    """What a stair leaves of the rate (tcco.txt Table I)."""
    decay_every: int = Field(10, ge=1)
    """Steps of a stair (tcco.txt Table I)."""
    gamma: float = Field(0.95, ge=0, lt=1)
    """Discount of a step."""
    clip: float = Field(10.0, gt=0)
    """Longest gradient."""
    logs: bool = False
    """Whether networks see the logarithms of observations beside them (ours)."""
    warmup: int = Field(20_000, ge=0)
    """Steps from which the inputs' and the rewards' mean and deviation are taken."""
    report_every: int = Field(1_000, ge=1)
    """Steps from one point of the curve to the next, at least."""
    validate_every: int = Field(10_000, ge=0)
    """Steps from one judging of the greedy policy to the next, of which the best network is kept;
    0 keeps the last one."""
    validation_episodes: int = Field(8, ge=1)
    """Episodes of each judging, always the same."""
    checkpoint_min: float = Field(3.0, gt=0)
    """Minutes from one checkpoint to the next."""
    env: dict[str, Any] = Field(default_factory=dict)
    """Settings of the environment; see its module."""


class Replay(Run):
    """Double Q learning from a ring of steps."""

    capacity: int = Field(200_000, ge=1)
    """Steps that the ring holds."""
    batch: int = Field(32, ge=1)
    """Windows of an update."""
    update_every: int = Field(8, ge=1)
    """Steps for each update."""
    learning_starts: int = Field(2_000, ge=0)
    """Steps before the first update."""
    rows: int = Field(4, ge=1)
    """Steps of each environment from one round of updates to the next."""
    epsilon: float = Field(1.0, ge=0, le=1)
    """Share of random actions at the beginning."""
    last_epsilon: float = Field(0.03, ge=0, le=1)
    epsilon_steps: int = Field(25_000, ge=1)
    """Steps in which it falls in a line."""
    epsilon_decay: float | None = Field(None, gt=0, lt=1)
    """What each step leaves of it instead, down to the last one (ma-cc.txt eq. 7)."""
    random: dict[Kind, list[Weight]] = Field(default_factory=dict)
    """Kind -> weight of each action among the random ones; evenly where left out."""
    tau: float = Field(1.0, gt=0, le=1)
    """Share of the network that the target takes over at each renewal."""
    target_every: int = Field(4_000, ge=1)
    """Steps from one renewal of the target to the next."""
    double: bool = True
    """Whether the network chooses the action after, which the target values (tcco.txt eq. 16);
    otherwise the target does both (ma-cc.txt eq. 6)."""
    alpha: float = Field(0.0, ge=0, le=1)
    """Priorities' weight in drawing; 0 draws evenly."""
    beta: float = Field(0.4, ge=0, le=1)
    """How far the loss makes up for that."""
    centre: bool = False
    """Whether the mean reward is taken off."""


class TransformerDqn(Replay):
    """TCCO (tcco.txt Table I)."""

    logs: bool = True
    rate: float = Field(5e-4, ge=0)
    """Table I has 1e-4; this learns faster in as many steps."""
    gamma: float = Field(0.969, ge=0, lt=1)
    """Table I."""
    subflow_width: int = Field(64, ge=1)
    """Table I: subflow FC1 and FC2."""
    width: int = Field(128, ge=1)
    """Table I: embedding."""
    heads: int = Field(4, ge=1)
    """Table I."""
    layers: int = Field(1, ge=1)
    """Table I."""
    context: int = Field(20, ge=1)
    """Table I: observations in a context (L)."""

    @model_validator(mode="after")
    def _whole_heads(self) -> TransformerDqn:
        if self.width % self.heads:
            raise ValueError("width must be a multiple of heads")
        return self


class Vdn(Replay):
    """MA-CC (ma-cc.txt Table 1 and section 4.2)."""

    gamma: float = Field(0.9, ge=0, lt=1)
    """Table 1."""
    rate: float = Field(1e-3, ge=0)
    """Table 1 has 0.01 and no word on the optimiser."""
    batch: int = Field(128, ge=1)
    epsilon: float = Field(0.9, ge=0, le=1)
    """Section 4.2."""
    last_epsilon: float = Field(0.05, ge=0, le=1)
    epsilon_steps: int = Field(20_000, ge=1)
    tau: float = Field(0.05, gt=0, le=1)
    """Table 1."""
    target_every: int = Field(1, ge=1)
    """After every update (algorithm 1)."""
    hidden: list[Width] = Field(default_factory=lambda: [64, 64], min_length=1)
    """Two layers (section 4.2); their width is ours."""
    centre: bool = True


class Macc(Vdn):
    """As `Vdn`, and routers seldom drop to find out: a packet less in 50 is felt already (ours)."""

    random: dict[Kind, list[Weight]] = Field(default_factory=lambda: {1: [0.98, 0.02]})


class Ppo(Run):
    """Nuwa (nuwa.txt section V.A); the paper gives no values, all are ours."""

    logs: bool = True
    num_envs: int = Field(16, ge=1)
    rows: int = Field(80, ge=1)
    """Steps of each environment from one update to the next (T of algorithm 2)."""
    window: int = Field(20, ge=1)
    """Rows through which gradients go back; divides `rows`."""
    epochs: int = Field(6, ge=1)
    """How often each row is learned from."""
    minibatches: int = Field(4, ge=1)
    """Parts into which the windows are split."""
    lambda_: float = Field(0.9, ge=0, le=1, alias="lambda")
    """Lambda of the advantages (eq. 7)."""
    ratio: float = Field(0.2, gt=0)
    """Epsilon of the clipped objective."""
    value_weight: float = Field(0.5, ge=0)
    entropy_weight: float = Field(0.01, ge=0)
    """What an undecided policy is worth, at the beginning."""
    last_entropy_weight: float | None = Field(None, ge=0)
    """And at the end, as the rate falls (in a line with stairs); as at the beginning by default."""
    clip: float = Field(0.5, gt=0)
    width: int = Field(64, ge=1)
    """Of the layer that sees the observation."""

    @model_validator(mode="after")
    def _whole_windows(self) -> Ppo:
        if self.rows % self.window:
            raise ValueError("rows must be a multiple of window")
        return self


class RecurrentPpo(Ppo):
    """With a memory."""

    cells: int = Field(64, ge=1)
    """Of the LSTM."""
