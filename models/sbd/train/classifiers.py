"""The learned classifiers and their hyperparameter spaces (Table 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from data.errors import unknown_name
from models.sbd.train.spaces import C_GRID, DEPTHS, GAMMA_GRID

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Estimator = Any
"""A fitted or unfitted scikit-learn estimator."""


@dataclass(frozen=True)
class Classifier:
    """One kind of model.

    Attributes
    ----------
    label : str
        Name for people.
    make : callable
        ``make(seed, **settings)`` gives an unfitted estimator.
    space : mapping
        Hyperparameter -> values, as in Table 4; empty for models outside the paper.
    """

    label: str
    make: Callable[..., Estimator]
    space: Mapping[str, Sequence[Any]]


def _tree(seed: int, depth: int = 10, leaf: int = 1) -> Estimator:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=depth, min_samples_leaf=leaf, random_state=seed)


def _forest(seed: int, depth: int | None = 10, trees: int = 50, leaf: int = 1) -> Estimator:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(
        n_estimators=trees, max_depth=depth, min_samples_leaf=leaf, random_state=seed, n_jobs=1
    )


def _svm_linear(seed: int, c: float = 1.0, max_iterations: int = 200_000) -> Estimator:
    # LIBLINEAR's primal solver: the kernel form takes minutes at C = 1000 on overlapping classes.
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    machine = LinearSVC(C=c, dual=False, max_iter=min(max_iterations, 5000), random_state=seed)
    return make_pipeline(StandardScaler(), machine)


def _svm_rbf(
    seed: int, c: float = 100.0, gamma: float = 0.1, max_iterations: int = 200_000
) -> Estimator:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    machine = SVC(C=c, gamma=gamma, max_iter=max_iterations, cache_size=100, random_state=seed)
    return make_pipeline(StandardScaler(), machine)


def _logistic(seed: int, c: float = 1.0, solver: str = "lbfgs") -> Estimator:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = LogisticRegression(C=c, solver=solver, max_iter=2000, random_state=seed)
    return make_pipeline(StandardScaler(), model)


def _boosting(
    seed: int, trees: int = 150, depth: int = 4, rate: float = 0.1, leaf: int = 10
) -> Estimator:
    # The histogram form is faster but has no working conversion to ONNX in skl2onnx 1.20.
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(
        n_estimators=trees,
        max_depth=depth,
        learning_rate=rate,
        min_samples_leaf=leaf,
        subsample=0.7,
        max_features="sqrt",
        random_state=seed,
    )


def _network(
    seed: int, width: int = 16, layers: int = 2, alpha: float = 1e-2, epochs: int = 30
) -> Estimator:
    # A tolerance that no epoch meets: always so many epochs, twice as many gain nothing unseen.
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    network = MLPClassifier(
        hidden_layer_sizes=(width,) * layers,
        alpha=alpha,
        max_iter=10 * epochs,
        tol=1e9,
        n_iter_no_change=epochs,
        random_state=seed,
    )
    return make_pipeline(StandardScaler(), network)


def _threshold(seed: int) -> Estimator:
    from models.sbd.rules.threshold import Threshold

    return Threshold()


CLASSIFIERS: dict[str, Classifier] = {
    "decision-tree": Classifier("decision tree", _tree, {"depth": DEPTHS}),
    "random-forest": Classifier("random forest", _forest, {"depth": DEPTHS}),
    "svm-linear": Classifier("SVM, linear kernel", _svm_linear, {"c": C_GRID}),
    "svm-rbf": Classifier("SVM, RBF kernel", _svm_rbf, {"c": C_GRID, "gamma": GAMMA_GRID}),
    "logistic-regression": Classifier(
        "logistic regression", _logistic, {"solver": ("liblinear", "lbfgs"), "c": C_GRID}
    ),
    "gradient-boosting": Classifier("gradient boosting", _boosting, {}),
    "network": Classifier("small neural network", _network, {}),
    "threshold": Classifier("one threshold on the RTT correlation", _threshold, {}),
}
"""Name -> classifier. scikit-learn is imported only when one is made."""
SHORT: dict[str, str] = {
    "dt": "decision-tree",
    "rf": "random-forest",
    "svm": "svm-rbf",
    "lr": "logistic-regression",
    "gb": "gradient-boosting",
    "mlp": "network",
}
"""Short name, as in the names of models -> name."""


def make(name: str, seed: int, settings: Mapping[str, Any]) -> Estimator:
    """An unfitted estimator.

    Raises
    ------
    UserError
        When no classifier has this name.
    """
    if name not in CLASSIFIERS:
        raise unknown_name("classifier", name, CLASSIFIERS)
    return CLASSIFIERS[name].make(seed, **settings)


def probability(estimator: Estimator, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(SB) per row; for machines without probabilities the sigmoid of the decision value."""
    import numpy as np
    from scipy.special import expit

    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(x)[:, 1], dtype=np.float64)
    return np.asarray(expit(estimator.decision_function(x)), dtype=np.float64)
