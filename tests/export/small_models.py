"""Features and estimators small enough to be fitted in every test session."""

from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from features.spec import Feature

FEATURES = (
    Feature("RTT_ED", "ms", 0.0, 1000.0, 1000, "test", "a distance"),
    Feature("Min_RTT_Ratio", "", 0.0, 20.0, 10000, "test", "a ratio"),
    Feature("Correlation", "", -1.0, 1.0, 1 << 20, "test", "may be negative; ends */ comments"),
    Feature("Losses", "segments", 0.0, 500.0, 1, "test", "a count"),
)


ESTIMATORS = {
    "tree": lambda: DecisionTreeClassifier(max_depth=8, random_state=0),
    "forest": lambda: RandomForestClassifier(6, max_depth=6, random_state=0),
    "boosted": lambda: GradientBoostingClassifier(n_estimators=8, random_state=0),
    "linear": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "svm": lambda: make_pipeline(StandardScaler(), SVC(kernel="poly", degree=2)),
}
