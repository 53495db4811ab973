"""Runs in the environment of auto-sklearn: one pipeline of each kind of classifier, exported.

python automl_members.py ISOLATED FOLDER
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, sys.argv[1])
folder = Path(sys.argv[2])
warnings.filterwarnings("ignore")

from autosklearn.pipeline.classification import SimpleClassificationPipeline  # noqa: E402
from members import NoForm, exported  # noqa: E402

CASES = {
    "tree": ("decision_tree", "no_preprocessing", "none", {}),
    "forest": ("random_forest", "select_percentile_classification", "robust_scaler", {}),
    "extra-trees": ("extra_trees", "no_preprocessing", "standardize", {}),
    "boosted": ("gradient_boosting", "no_preprocessing", "minmax", {}),
    "adaboost": ("adaboost", "no_preprocessing", "none", {"algorithm": "SAMME.R"}),
    "votes": ("adaboost", "no_preprocessing", "none", {"algorithm": "SAMME"}),
    "sgd": ("sgd", "no_preprocessing", "standardize", {"loss": "log"}),
    "hinge": ("passive_aggressive", "no_preprocessing", "standardize", {}),
    "network": ("mlp", "no_preprocessing", "standardize", {}),
    "pca": ("decision_tree", "pca", "none", {}),
    "quantiles": ("decision_tree", "no_preprocessing", "quantile_transformer", {}),
    "kernel": ("libsvm_svc", "no_preprocessing", "standardize", {}),
}
SCALING = "data_preprocessor:feature_type:numerical_transformer:rescaling:__choice__"


def pipeline(classifier, preprocessor, scaling, settings):
    included = {"classifier": [classifier], "feature_preprocessor": [preprocessor]}
    empty = SimpleClassificationPipeline(
        include=included, dataset_properties={"target_type": "classification"}
    )
    space = empty.get_hyperparameter_search_space()
    space.seed(3)
    wanted = {f"classifier:{classifier}:{k}": v for k, v in settings.items()}
    wanted[SCALING] = scaling
    for _ in range(5000):
        found = space.sample_configuration()
        values = found.get_dictionary()
        if all(values.get(k) == v for k, v in wanted.items()):
            return SimpleClassificationPipeline(
                config=found, include=included, random_state=np.random.RandomState(1),
                dataset_properties={"target_type": "classification"},
            )  # fmt: skip
    raise SystemExit(f"no configuration with {wanted}")


x = np.load(folder / "x.npy", allow_pickle=False)
y = np.load(folder / "y.npy", allow_pickle=False)
told = {}
for name, case in CASES.items():
    fitted = pipeline(*case).fit(x, y)
    np.save(folder / f"{name}-probability.npy", fitted.predict_proba(x)[:, 1])
    try:
        told[name] = {"form": exported(fitted, x, folder / f"{name}.npz"), "reason": ""}
    except NoForm as why:
        told[name] = {"form": None, "reason": str(why)}
(folder / "told.json").write_text(json.dumps(told))
