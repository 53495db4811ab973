"""Settings of the shared-bottleneck classifiers: the ``sbd`` part of ``params.yaml``."""

from __future__ import annotations

from pydantic import Field

from data.strict import Strict
from models.sbd.neural.params import Neural

THRESHOLD = 0.5
"""P(SB) above which a model answers SB, unless its ``meta.json`` says otherwise."""
DEPTHS = tuple(range(1, 16))
"""Table 4: depths 1 to 15 of trees and forests."""
C_GRID = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""Fig. 6(d) prints no tick values: a decade grid around the 100 that the paper selected."""
GAMMA_GRID = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Table 4."""


class Selection(Strict):
    """Mutual information ranking (section 3.3)."""

    seeds: int = 10
    neighbours: int = 3


class Search(Strict):
    """Grid search (section 3.4, Table 4, Fig. 6)."""

    folds: int = 3
    subsets: int = 9
    """Top-1 ... top-9 feature subsets, as in Fig. 6."""
    windows_per_connection: int = 2
    forest_trees: int = 40
    max_iterations: int = 200_000
    """Cap of the support vector machines' solver: large C on overlapping classes crawls."""


class Protocol(Strict):
    """Evaluation (sections 5.1 and 5.2)."""

    splits: int = 10
    test_share: float = 0.1
    unseen: str = "table6"
    varied: str = "random"
    family_column: str = "family"
    top_k: int = 8
    """The paper found nothing to gain from a ninth feature."""
    holdout: float = 0.1
    """Share of connections that no kept model learns from: promotion compares models on them."""


class Plus(Strict):
    """The second family of models."""

    forest_trees: int = 60
    boosting_trees: int = 150
    confidence: float = 0.9
    """A verdict needs at least this calibrated probability; below it the answer is undecided."""


class Conditions(Strict):
    """Groups of path conditions (``--groups auto``)."""

    span_s: float = Field(20.0, gt=0)
    """Of a connection, from the moment that both subflows have an RTT."""
    points: int = Field(32, ge=4, le=512)
    oversampling: int = Field(8, ge=1)
    sample: int = Field(1000, ge=40)
    """Connections that are clustered; all are assigned."""
    clusters: tuple[int, int] = (2, 12)
    """Fewest and most groups that are tried."""
    halves: int = Field(5, ge=2)
    """Random splits into two, over which silhouette and stability are measured."""
    starts: int = Field(5, ge=1)
    iterations: int = Field(10, ge=1)
    radius: float = Field(0.99, gt=0, le=1)
    """Quantile of the members' distances beyond which a connection is unlike any."""
    least: int = Field(10, ge=2)
    """Members that every group has at least."""


class Groups(Strict):
    """A model of its own for each group of connections (section 2)."""

    folds: int = Field(5, ge=2)
    repeats: int = Field(2, ge=1)
    """The comparison with the pooled model: every connection is left out once per repeat."""
    inner_folds: int = Field(3, ge=2)
    grid: int = Field(4, ge=1)
    """Values of each hyperparameter of Table 4 that the choice is made from."""
    min_connections: int = Field(15, ge=2)
    min_windows: int = Field(50, ge=2)
    """Per class; a group with fewer uses the pooled model."""
    pooled_windows: int = Field(100_000, ge=100)
    """The pooled model learns from whole connections of about so many windows at most."""


class Drift(Strict):
    """New logs against a model's training set (``cczoo evaluate sbd --drift``)."""

    level: float = Field(0.05, gt=0, lt=1)
    """Chance that logs of the training set's own conditions are called drifted."""
    effect: float = Field(0.1, ge=0, le=1)
    """Kolmogorov-Smirnov distance below which a difference doesn't matter, however sure."""
    margin: float = Field(0.05, ge=0, le=1)
    """Loss of accuracy that is borne: drift that is shown to cost less needs no retraining."""
    permutations: int = Field(2000, ge=100)
    least: int = Field(20, ge=10)
    """Connections on either side without which nothing is said."""
    sample: int = Field(400, ge=20)
    """Connections of the training set kept with a model."""
    windows: int = Field(2, ge=1)
    """Of each connection, kept and looked at."""
    newest: int = Field(1000, ge=20)
    """New connections of a group that are looked at, drawn at random."""
    trees: int = Field(100, ge=10)


class Params(Strict):
    """Everything that ``cczoo train sbd`` reads."""

    seed: int = 7
    workers: int = 2
    confidence: float = 0.95
    bootstrap: int = 1000
    zoo_depth: int = 10
    zoo_trees: int = 50
    zoo_leaf: int = 5
    selection: Selection = Selection()
    search: Search = Search()
    protocol: Protocol = Protocol()
    plus: Plus = Plus()
    groups: Groups = Groups()
    conditions: Conditions = Conditions()
    drift: Drift = Drift()
    neural: Neural = Neural()
