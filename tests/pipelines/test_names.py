"""A mistyped name is refused with the nearest one before anything heavy is imported."""

import importlib.metadata
import json
import subprocess
import sys

import pytest

from pipelines import cli, names

HEAVY = {"numpy", "numba", "polars", "pyarrow", "scipy", "sklearn", "torch", "mlflow", "pydantic"}
RUN = """
import json, sys
from pipelines import cli
code = cli.main(json.loads(sys.argv[1]))
print(json.dumps([code, sorted(set(sys.modules))]))
"""


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        ("ingst", "'ingest'"),
        ("zoo lst", "'list'"),
        ("zoo verify smartsbd-dtt", "'smartsbd-dt'"),
        ("train sbdd", "'sbd'"),
        ("train sbd --model autoo --out x", "'auto'"),
        ("train sbd --groups cc --model svm-lin --out x", "'svm-linear'"),
        ("train sbd --model auto --backend flamll --out x", "'flaml'"),
        ("train sbd --budget nss=4", "'ns'"),
        ("train sbd --family smartsb", "'smartsbd'"),
        ("train sbd --family foo", "known: smartsbd,"),
        ("verify build/x --budget c.insn=4", "'insns'"),
        ("evaluate sbdd", "'sbd'"),
        ("evaluate sbd --model smartsbd-pluss --features f.parquet", "'smartsbd-plus'"),
        ("evaluate sbd --model rule:dcw --features f.parquet", "'dwc'"),
        ("evaluate cc --scenario macc-fg4 --cc cubic", "'macc-fig4'"),
        ("evaluate cc --scenario=macc-fig4 --cc cubic,bbbr", "'bbr'"),
        ("predict sbd --model smartsbd-pluss --events e", "'smartsbd-plus'"),
        ("export nuwa-tan -t c --out o", "'nuwa-tanh'"),
        ("export smartsbd-dt -t pyton --out o", "'python'"),
        ("ingest logs --format klogg --out o", "'klog'"),
        ("lab run smartsbd-sbb --out o", "'smartsbd-sb'"),
        ("lab collect smartsbd-papr --out o", "'smartsbd-paper'"),
    ],
)
def test_nothing_heavy_is_imported_to_refuse(words, nearest):
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(words.split())], capture_output=True, text=True
    )
    code, modules = json.loads(done.stdout)
    assert code == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert nearest in done.stderr
    assert not HEAVY & set(modules)


def test_the_names_are_those_of_the_registries():
    from export.budget import FIGURES
    from export.functions import FUNCTIONS
    from export.targets import TARGETS
    from features.sbd import TABLES
    from models.sbd.automl import BACKENDS
    from models.sbd.rules import RULES
    from models.sbd.train.classifiers import CLASSIFIERS
    from models.sbd.train.pareto import SPACES
    from models.sbd.train.recipes import SHORT
    from models.store import ZOO

    assert set(names.TARGETS) == set(TARGETS)
    assert set(names.FUNCTIONS) == set(FUNCTIONS)
    assert set(names.RULES) == set(RULES)
    assert set(names.FAMILIES) == {family for table in TABLES.values() for family in table}
    assert set(names.SEARCHED) == set(SPACES) == set(SHORT) - {"svm", "mlp"}
    assert set(names.CLASSIFIERS) == set(CLASSIFIERS)
    assert set(names.BACKENDS) == set(BACKENDS)
    assert set(names.FIGURES) == set(FIGURES)
    assert names._ZOO == ZOO


def test_the_version_is_the_packages(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"cczoo {importlib.metadata.version('cczoo')}\n"
