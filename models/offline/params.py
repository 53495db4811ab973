"""Settings of trainings from logged decisions; updates stand where online trainings count steps."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from data.strict import Strict


class Offline(Strict):
    """What all methods have."""

    updates: int = Field(3_000, ge=1)
    """Batches that are learned from."""
    batch: int = Field(32, ge=1)
    """Windows of a batch."""
    rate: float = Field(1e-3, ge=0)
    """Adam's learning rate at the beginning; it falls in a line."""
    last_rate: float = Field(1e-5, ge=0)
    """And at the end."""
    gamma: float = Field(0.969, ge=0, lt=1)
    """Discount of a step (tcco.txt Table I)."""
    tau: float = Field(0.03, gt=0, le=1)
    """Share of the network that a target takes over after each update."""
    clip: float = Field(10.0, gt=0)
    """Longest gradient."""
    seed: int = Field(7, ge=0)
    shuffle: int = Field(4_096, ge=1)
    """Windows among which the next batch is drawn; all that is in memory of a data set."""
    of_run: int = Field(32, ge=1)
    """Windows that are taken of a run at a time, so that those in memory are of many runs."""
    held_out: float = Field(0.1, ge=0, lt=1)
    """Share of scenarios, or of runs, that nothing is learned from; a data set with splits of its
    own has them already."""
    split: Literal["scenario", "run"] = "scenario"
    """What lies whole on one side."""
    subflows: int = Field(2, ge=1)
    """Most subflows of a connection; runs with more are left out, and counted."""
    worst: float | None = Field(None, ge=-1e9, le=0)
    """Lower bound of a part's reward as it is learned from; none by default."""
    threads: int = Field(1, ge=1)
    """Threads of torch; with more than one the last digits may differ from run to run."""
    subflow_width: int = Field(32, ge=1)
    width: int = Field(64, ge=1)
    heads: int = Field(4, ge=1)
    layers: int = Field(1, ge=1)
    context: int = Field(8, ge=1)
    """Sizes of the agent's own network, smaller than in tcco.txt Table I, which has 64, 128, 4, 1
    and 20: that is too dear for five seeds of four methods on two cores (ours)."""
    logs: bool = True
    """Whether the network sees the logarithms of observations beside them."""
    env: dict[str, Any] = Field(default_factory=dict)
    """Settings of the environment that the policy is made for; see `models.envs.tcco`."""

    @model_validator(mode="after")
    def _whole_heads(self) -> Offline:
        if self.width % self.heads:
            raise ValueError("width must be a multiple of heads")
        return self


class Cloning(Offline):
    """Behaviour cloning."""


class Conservative(Offline):
    """Discrete CQL (Kumar et al., NeurIPS 2020, arXiv 2006.04779, eq. 4)."""

    worst: float | None = Field(-5.0, ge=-1e9, le=0)
    """A few rewards lie hundreds below the others, whose scale they would set (ours)."""
    alpha: float = Field(0.02, ge=0)
    """Weight of what keeps the values of actions that weren't logged low (ours): with 1 the policy
    is nearly that of cloning, since neighbouring actions differ by little in what they earn."""
    double: bool = True
    """Whether the network chooses the action after, which the target values; otherwise the target
    does both."""


class Implicit(Offline):
    """IQL (Kostrikov, Nair and Levine, ICLR 2022, arXiv 2110.06169) with discrete actions."""

    worst: float | None = Field(-5.0, ge=-1e9, le=0)
    """A few rewards lie hundreds below the others, whose scale they would set (ours)."""
    expectile: float = Field(0.8, gt=0, lt=1)
    """Of the values of logged actions; 0.5 is their mean, towards 1 it is their maximum."""
    sharpness: float = Field(3.0, ge=0)
    """How much more a better action weighs when the policy is cloned (beta, eq. 7)."""
    heaviest: float = Field(100.0, gt=0)
    """Upper bound of such a weight."""


class Pessimistic(Offline):
    """An ensemble of Q networks with targets of their own, whose lower confidence bound acts.

    MSG (Ghasemipour, Gu and Nachum, NeurIPS 2022, arXiv 2205.13703).
    """

    worst: float | None = Field(-5.0, ge=-1e9, le=0)
    """A few rewards lie hundreds below the others, whose scale they would set (ours)."""
    members: int = Field(4, ge=2)
    pessimism: float = Field(4.0, ge=0)
    """Deviations of the members by which the bound lies below their mean."""
    alpha: float = Field(0.02, ge=0)
    """Weight of CQL's term in every member, which MSG has, too."""


class Evaluation(Offline):
    """Fitted Q evaluation of a policy, and the cloning of who decided, from the same logs."""

    updates: int = Field(1_500, ge=1)
    tau: float = Field(0.2, gt=0, le=1)
    """Faster than learning has it: no action is maximised over, so that nothing runs away, and
    what pays late takes as many moves of the target to show (ours)."""
    fits: int = Field(3, ge=1)
    """Networks, each of scenarios drawn with replacement (ours)."""
    horizon: int = Field(8, ge=1)
    """Decisions over which importance weights are multiplied."""
    spacing: int = Field(16, ge=1)
    """Decisions of a run between two from which worth is asked for."""
    most_runs: int = Field(400, ge=2)
    """Runs set aside that are judged by, at most."""
    tail: float = Field(0.05, gt=0, lt=1)
    """Share of the discounted sum that lies beyond what a logged return is summed over."""
    resamples: int = Field(1_000, ge=100)
    """Of the bootstrap over scenarios."""
    least_effective: float = Field(50.0, ge=1)
    """Effective sample of importance weights below which there is no estimate."""
    most_outside: float = Field(0.1, ge=0, le=1)
    """Share of a policy's decisions without support above which there is none either."""
