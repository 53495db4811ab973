"""Settings of the shared-bottleneck classifiers: the ``sbd`` part of ``params.yaml``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from data.strict import Strict
from models.sbd.neural.params import Neural

MOST_SEED = 2**31 - 1
"""Of what draws random numbers here; some add a split's number to it."""
Clusters = Annotated[int, Field(ge=2, le=1000)]
THRESHOLD = 0.5
"""P(SB) above which a model answers SB, unless its ``meta.json`` says otherwise."""


class Selection(Strict):
    """Mutual information ranking (section 3.3)."""

    seeds: int = Field(10, ge=1, le=1000)
    neighbours: int = Field(3, ge=1, le=100)


class Search(Strict):
    """Grid search (section 3.4, Table 4, Fig. 6)."""

    folds: int = Field(3, ge=2, le=100)
    subsets: int = Field(9, ge=1, le=100)
    """Top-1 ... top-9 feature subsets, as in Fig. 6."""
    windows_per_connection: int = Field(2, ge=1, le=10_000)
    forest_trees: int = Field(40, ge=1, le=10_000)
    max_iterations: int = Field(200_000, ge=100, le=1_000_000_000)
    """Cap of the support vector machines' solver: large C on overlapping classes crawls."""


class Protocol(Strict):
    """Evaluation (sections 5.1 and 5.2)."""

    splits: int = Field(10, ge=1, le=1000)
    test_share: float = Field(0.1, gt=0, lt=1)
    unseen: str = Field("table6", min_length=1)
    varied: str = Field("random", min_length=1)
    family_column: str = Field("family", min_length=1)
    top_k: int = Field(8, ge=1, le=100)
    """The paper found nothing to gain from a ninth feature."""
    holdout: float = Field(0.1, ge=0, lt=1)
    """Share of connections that no kept model learns from: promotion compares models on them."""


class Plus(Strict):
    """The second family of models."""

    forest_trees: int = Field(60, ge=1, le=10_000)
    boosting_trees: int = Field(150, ge=1, le=10_000)
    confidence: float = Field(0.9, ge=0.5, lt=1)
    """A verdict needs at least this calibrated probability; below it the answer is undecided."""


class Conditions(Strict):
    """Groups of path conditions (``cczoo train sbd groups --conditions``)."""

    span_s: float = Field(20.0, gt=0, le=86_400)
    """Of a connection, from the moment that both subflows have an RTT."""
    points: int = Field(32, ge=4, le=512)
    oversampling: int = Field(8, ge=1, le=1000)
    sample: int = Field(1000, ge=40, le=1_000_000)
    """Connections that are clustered; all are assigned."""
    clusters: tuple[Clusters, Clusters] = (2, 12)
    """Fewest and most groups that are tried."""
    halves: int = Field(5, ge=2, le=1000)
    """Random splits into two, over which silhouette and stability are measured."""
    starts: int = Field(5, ge=1, le=1000)
    iterations: int = Field(10, ge=1, le=10_000)
    radius: float = Field(0.99, gt=0, le=1)
    """Quantile of the members' distances beyond which a connection is unlike any."""
    least: int = Field(10, ge=2, le=100_000)
    """Members that every group has at least."""


class Groups(Strict):
    """A model of its own for each group of connections (section 2)."""

    folds: int = Field(5, ge=2, le=100)
    repeats: int = Field(2, ge=1, le=1000)
    """The comparison with the pooled model: every connection is left out once per repeat."""
    inner_folds: int = Field(3, ge=2, le=100)
    grid: int = Field(4, ge=1, le=100)
    """Values of each hyperparameter of Table 4 that the choice is made from."""
    min_connections: int = Field(15, ge=2, le=1_000_000)
    min_windows: int = Field(50, ge=2, le=10_000_000)
    """Per class; a group with fewer uses the pooled model."""
    pooled_windows: int = Field(100_000, ge=100, le=100_000_000)
    """The pooled model learns from whole connections of about so many windows at most."""


class Drift(Strict):
    """New logs against a model's training set (``cczoo drift``)."""

    level: float = Field(0.05, gt=0, lt=1)
    """Chance that logs of the training set's own conditions are called drifted."""
    effect: float = Field(0.1, ge=0, le=1)
    """Kolmogorov-Smirnov distance below which a difference doesn't matter, however sure."""
    margin: float = Field(0.05, ge=0, le=1)
    """Loss of accuracy that is borne: drift that is shown to cost less needs no retraining."""
    permutations: int = Field(2000, ge=100, le=1_000_000)
    least: int = Field(20, ge=10, le=1_000_000)
    """Connections on either side without which nothing is said."""
    sample: int = Field(400, ge=20, le=1_000_000)
    """Connections of the training set kept with a model."""
    windows: int = Field(2, ge=1, le=10_000)
    """Of each connection, kept and looked at."""
    newest: int = Field(1000, ge=20, le=10_000_000)
    """New connections of a group that are looked at, drawn at random."""
    trees: int = Field(100, ge=10, le=10_000)


class Params(Strict):
    """Everything that ``cczoo train sbd`` reads."""

    seed: int = Field(7, ge=0, le=MOST_SEED)
    workers: int = Field(2, ge=0, le=1024)
    """Processes; 0 works in this one."""
    confidence: float = Field(0.95, gt=0, lt=1)
    bootstrap: int = Field(1000, ge=10, le=1_000_000)
    zoo_depth: int = Field(10, ge=1, le=100)
    zoo_trees: int = Field(50, ge=1, le=10_000)
    zoo_leaf: int = Field(5, ge=1, le=1_000_000)
    selection: Selection = Selection()
    search: Search = Search()
    protocol: Protocol = Protocol()
    plus: Plus = Plus()
    groups: Groups = Groups()
    conditions: Conditions = Conditions()
    drift: Drift = Drift()
    neural: Neural = Neural()
