"""Small entries, and records of them, for tests of the registry."""

import sys
from pathlib import Path

from sklearn.tree import DecisionTreeClassifier

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

import synthetic

from data.files import file_hash
from export.entry import write_entry
from features.sbd import features_of
from models import store
from models.sbd.evaluate import testset
from models.sbd.params import Protocol
from models.sbd.windows import windows
from pipelines.registry import entries, outbox

NAMES = ("RTT_SD_Ratio", "Min_RTT_Ratio", "RTT_DTWD")


class Entries:
    """Entries trained on a synthetic table, made when first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.features = folder / "features.parquet"
        table = synthetic.features(5, per_site=30, per_family=20, per_case=6)
        table.write_parquet(self.features, metadata={"cczoo.settings": "{}"})
        self.table = windows(synthetic.features(5, per_site=30, per_family=20, per_case=6))

    def make(self, kind: str, depth: int = 4, name: str = "small") -> Path:
        """`good`; `bad` learned reversed labels."""
        to = self.folder / f"{kind}-{depth}"
        if (to / name).is_dir():
            return to / name
        specs = [f for f in features_of("smartsbd") if f.name in NAMES]
        names = [f.name for f in specs]
        x, y = self.table.matrix(names), self.table.y.copy()
        if kind == "bad":
            y = 1 - y
        tree = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(x, y)
        return write_entry(
            name,
            tree,
            specs,
            {"family": "smartsbd", "data_hash": "d" * 64, "git_commit": "c" * 40},
            x,
            {"headline": {"within": {"window": float((tree.predict(x) == self.table.y).mean())}}},
            f"# {name}\n",
            labels=y,
            test=testset.sample(testset.fixed(self.table, Protocol())),
            zoo=to,
        )


def training_of(directories, features):
    return outbox.Training(
        experiment="small",
        run="test",
        params={"tree": {"leaf": 1}},
        metrics={"accuracy": 0.5, "undefined": float("nan")},
        dataset_hash=file_hash(features),
        entries=directories,
        tags={name: {"budget": "none"} for name in directories},
    )


def opened(text):
    """The entry behind an address."""
    return store.load(Path(entries.fetch_entry(text)))
