"""Figures of the study of offline agents, from which its page and the report are written."""

from __future__ import annotations

from pathlib import Path

from data.results import Result, ResultFile

COMMAND = "python -m pipelines.studies.offline.command"
PAGE = Path("docs/offline-agents.md")
FOLDER = PAGE.with_suffix("")
ONLINE = "tcco"
"""The agent, and the zoo's entry of it, which learned online."""
SAMPLER = "mixed_paths"
"""Scenarios of the environment's test episodes, and of online trainings."""
SCRATCH = "scratch"
"""Online trainings that begin with nothing."""
LAST = 3
"""Validations at a training's end whose mean is its return: one alone goes up and down."""
EPISODE = 500
"""Steps of an episode of online trainings."""


class Cost(Result):
    """What one training took.

    Attributes
    ----------
    cpu_s : float
        Processor time.
    peak_mb : float
        The most memory that its process had had by then.
    """

    cpu_s: float
    peak_mb: float


class Learned(Result):
    """What was learned from.

    Attributes
    ----------
    decisions, runs : int
        Those of the data set, those set aside and those for tests included.
    share : float
        How much that is of the whole open data set.
    updates, batch, context : int
        Batches of a training, windows of a batch, decisions of a window.
    seeds : list of int
    costs : dict
        Method -> what each seed's training took.
    rewards : dict
        Standing of the league -> control -> its mean reward of a decision in the scenarios for
        training and validation, families counting alike; controls that play all of its families.
    """

    decisions: int
    runs: int
    share: float
    updates: int
    batch: int
    context: int
    seeds: list[int]
    costs: dict[str, list[Cost]]
    rewards: dict[str, dict[str, float]]

    def best(self, standing: str) -> str:
        """The control that the logs say is best in a standing."""
        found = self.rewards[standing]
        return max(found, key=lambda name: found[name])


class Played(Result):
    """What was played besides the league's scenarios, of which `RUNS` has the runs.

    Attributes
    ----------
    every : int
        Every how-many-th scenario of each of the league's families was played.
    sampler : str
        Scenarios of the environment's test episodes.
    returns : dict
        Player -> for each seed the mean reward of a step in each test episode.
    """

    every: int
    sampler: str
    returns: dict[str, list[list[float]]]


class Tuned(Result):
    """An online training.

    Attributes
    ----------
    steps : list of int
        Where it was validated.
    validation : list of float
        Mean reward of a step there.
    """

    steps: list[int]
    validation: list[float]

    @property
    def end(self) -> float:
        """The return at its end."""
        last = self.validation[-LAST:]
        return sum(last) / len(last)

    def reached(self, target: float) -> int | None:
        """Steps after which it was validated at a return or above; None if it never was."""
        pairs = zip(self.steps, self.validation, strict=True)
        return next((step for step, value in pairs if value >= target), None)


class Tuning(Result):
    """Online trainings from nothing and from what logs taught.

    Attributes
    ----------
    steps, every : int
        Steps of a training from nothing, and from one validation to the next.
    curves : dict
        ``scratch`` or a method -> seed -> training.
    """

    steps: int
    every: int
    curves: dict[str, dict[str, Tuned]]


LEARNED = ResultFile("learned.json", Learned, f"{COMMAND} learn")
PLAYED = ResultFile("played.json", Played, f"{COMMAND} play")
TUNING = ResultFile("tuning.json", Tuning, f"{COMMAND} tune")
RUNS = "runs.parquet"
"""player, seed, family, scenario, power, goodput, rtt_ratio: a row for each run of the league."""
