"""A mistyped name is refused with the nearest one before anything heavy is imported."""

import importlib
import importlib.metadata
import json
import subprocess
import sys

import pytest

from data.errors import UserError
from models.store import ZOO
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
        ("league --cc cubic,bbbr", "'bbr'"),
        ("league --only constnt", "'constant'"),
        ("league --scenario macc-fg4", "'macc-fig4'"),
        ("zoo lst", "'list'"),
        ("zoo verify smartsbd-dtt", "'smartsbd-dt'"),
        ("train sbdd", "'sbd'"),
        ("train sbd autoo --out x", "'auto'"),
        ("train sbd neural serch", "'search'"),
        ("train sbd groups --by cc --model svm-lin --out x", "'svm-linear'"),
        ("train sbd auto --backend flamll --out x", "'flaml'"),
        ("train sbd budget nss=4 --model dt --out x", "'ns'"),
        ("train sbd budget ns=4 --model dtt --out x", "'dt'"),
        ("train sbd auto --family smartsb --out x", "'smartsbd'"),
        ("train sbd auto --family foo --out x", "known: smartsbd,"),
        ("train sbd budget ns=4 --model dt", "--out"),
        ("train sbd search --zoo z", "--zoo"),
        ("drift --model smartsbd-pluss --features f.parquet", "'smartsbd-plus'"),
        ("verify build/x --budget c.insn=4", "'insns'"),
        ("evaluate sbdd", "'sbd'"),
        ("evaluate sbd --model smartsbd-pluss --features f.parquet", "'smartsbd-plus'"),
        ("evaluate sbd --model rule:dcw --features f.parquet", "'dwc'"),
        ("evaluate cc --scenario macc-fg4 --cc cubic", "'macc-fig4'"),
        ("evaluate cc --scenario=macc-fig4 --cc cubic,bbbr", "'bbr'"),
        ("evaluate cc --scenario macc-fig4 --cc cubic,tcc0", "'tcco'"),
        ("evaluate cc --scenario macc-fig4 --cc nuwa-r", "'nuwa-rl'"),
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


@pytest.mark.parametrize(
    ("registry", "words"),
    [
        ("export.targets.TARGETS", "export smartsbd-dt -t new --out o"),
        ("export.functions.FUNCTIONS", "export new -t c --out o"),
        ("export.budget.FIGURES", "verify build/x --budget c.new=4"),
        ("pipelines.league.families.FAMILIES", "league --only new"),
        ("features.sbd.TABLES", "train sbd auto --out o --family new"),
        ("models.sbd.automl.BACKENDS", "train sbd auto --out o --backend new"),
        (
            "models.sbd.train.classifiers.CLASSIFIERS",
            "train sbd groups --by cc --out o --model new",
        ),
        ("models.sbd.train.classifiers.SHORT", "train sbd groups --by cc --out o --model new"),
        ("models.sbd.rules.RULES", "evaluate sbd --model rule:new --features f"),
        ("models.sbd.train.spaces.SPACES", "train sbd budget ns=4 --out o --model new"),
    ],
)
def test_one_line_in_a_registry_makes_a_name_known(registry, words, monkeypatch):
    module, _, attribute = registry.rpartition(".")
    entries = getattr(importlib.import_module(module), attribute)
    command, *rest = words.split()

    def look_up():
        parser = names.Parser()
        importlib.import_module(cli.SUBCOMMANDS[command][0]).add_arguments(parser)
        names.check(command, parser.parse_args(rest))

    with pytest.raises(UserError, match="'new'"):
        look_up()
    monkeypatch.setitem(entries, "new", ("new",))
    look_up()


def test_a_name_is_looked_up_in_the_zoo_of_the_repository():
    assert names._ZOO == ZOO


def test_the_version_is_the_packages(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"cczoo {importlib.metadata.version('cczoo')}\n"
