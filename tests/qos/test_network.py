"""The network of contexts: exact posteriors, an entry, and advice from its table."""

from __future__ import annotations

import itertools
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from data.errors import UserError
from export.source import source_of
from models import store
from models.qos import advice, lookup, structure
from models.qos.judged import stored
from models.qos.network import Network, fitted
from models.qos.variables import QUALITY, SETTING, VARIABLES, of_group
from pipelines.cli import main


def made_up(count: int = 3000) -> pl.DataFrame:
    """Sessions by rule: more bandwidth than rate is good, less is bad."""
    rng = np.random.default_rng(5)
    bw1, bw2 = (np.exp(rng.choice([0.0, 1.8], count) + 0.2 * rng.normal(size=count)) for _ in "12")
    rate = rng.choice([0.6, 2.0, 6.0], count) * np.exp(0.05 * rng.normal(size=count))
    load = rate / (bw1 + bw2)
    noise = np.exp(0.2 * rng.normal(size=(4, count)))
    return pl.DataFrame(
        {
            "bw1_mbps": bw1,
            "bw2_mbps": bw2,
            "rate_mbps": rate,
            "delay1_ms": 10 * (1 + load) * noise[0],
            "delay2_ms": 40 * (1 + load) * noise[1],
            "loss1": 0.005 * (1 + load) * noise[2],
            "loss2": 0.002 * (1 + load) * noise[3],
            "psnr_db": np.where(load < 0.5, 24 + 4 * np.log(1 + rate), 21) + rng.normal(size=count),
            "buffer_s": np.where(load < 0.5, 2.2, 0.5) + 0.35 * rng.normal(size=count),
        }
    )


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.integers(0, 2, (4000, len(VARIABLES)))


@pytest.fixture(scope="module")
def network(rows: np.ndarray) -> Network:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        warnings.simplefilter("error", FutureWarning)
        return fitted(structure.paper(), rows, dict.fromkeys(VARIABLES, 2), 10.0)


@pytest.fixture(scope="module")
def entry(tmp_path_factory: pytest.TempPathFactory) -> store.ZooModel:
    folder = tmp_path_factory.mktemp("qos")
    made_up().write_parquet(folder / "qos.parquet")
    words = ["--data", f"{folder}/qos.parquet", "--out", f"{folder}/out", "--zoo", f"{folder}/zoo"]
    assert main(["train", "qos", *words, "--no-register", "--json"]) == 0
    assert (folder / "out" / "qos.json").is_file()
    return store.load(folder / "zoo" / "qos-bn")


def test_tables_are_bdeu_estimates(network: Network, rows: np.ndarray) -> None:
    parents, table = network.tables["psnr"]
    values = {name: rows[:, place] for place, name in enumerate(VARIABLES)}
    chosen = np.logical_and.reduce([values[name] == 1 for name in parents])
    part = 10.0 / 2 / 2 ** len(parents)
    expected = (np.sum(values["psnr"][chosen]) + part) / (chosen.sum() + 2 * part)
    assert table[(1, *(1 for _ in parents))] == pytest.approx(expected, rel=1e-12)


def test_posteriors_are_sums_over_all_combinations(network: Network) -> None:
    """By plain loops; benchmarks/qos.py compares with pgmpy's and pyAgrum's inference."""
    names = list(VARIABLES)
    for given in ({}, {"rate": 1, "loss1": 0}, {"psnr": 1, "delay2": 0, "bw1": 1}):
        total = dict.fromkeys(names, 0.0)
        whole = 0.0
        for combination in itertools.product((0, 1), repeat=len(names)):
            values = dict(zip(names, combination, strict=True))
            if any(values[name] != value for name, value in given.items()):
                continue
            likely = 1.0
            for name, (parents, table) in network.tables.items():
                likely *= table[(values[name], *(values[one] for one in parents))]
            whole += likely
            for name in names:
                total[name] += likely * values[name]
        for name in set(names) - set(given):
            found = network.posterior([name], given)
            assert found == pytest.approx([1 - total[name] / whole, total[name] / whole], abs=1e-9)


def test_the_entry_is_the_networks_own_table(entry: store.ZooModel) -> None:
    tables = {
        name: (tuple(one["parents"]), np.array(one["table"]))
        for name, one in entry.read_json("network.json").items()
    }
    network = Network(tables)
    edges = advice.load(str(entry.directory)).variables
    axes = []
    for name in of_group(SETTING):
        borders = edges[name]["borders"]
        near = [edge + step / 1024 for edge in borders for step in (-1, 0, 1)]
        axes.append(np.array([0.0, *near, 63.0]))
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    at = [
        np.searchsorted(edges[name]["borders"], x[:, place], side="left")
        for place, name in enumerate(of_group(SETTING))
    ]
    expected = lookup.of_outcomes(network)[tuple(at)]
    assert entry.answers(x) == pytest.approx(expected, abs=1e-6)
    form = source_of(entry).form
    assert form is not None
    assert np.ptp(entry.answers(x), axis=0).max() > 0.5
    sessions, scores = stored(entry)
    assert scores["model.json"]["mean"] == pytest.approx(scores["model.onnx"]["mean"], abs=1e-4)
    assert scores["model.json"]["mean"] > -1.2
    assert len(sessions.outcome) == 400
    assert len(entry.meta.labels) == np.prod([len(edges[n]["values"]) for n in of_group(QUALITY)])


def test_advice_is_the_posterior(entry: store.ZooModel) -> None:
    table = advice.load(str(entry.directory))
    tables = {
        name: (tuple(one["parents"]), np.array(one["table"]))
        for name, one in entry.read_json("network.json").items()
    }
    network = Network(tables)
    target, given = {"psnr": "good", "buffer": "high"}, {"bw1": "low", "delay2": "high"}
    wanted = table.checked(target, "--target")
    found = table.ranked(target, given)
    free = [len(table.variables[name]["values"]) for name in ("bw2", "rate")]
    assert len(found) == free[0] * free[1]
    for choice in found:
        known = table.checked({**choice.settings, **given}, "--given")
        both = network.posterior(list(wanted), known)
        assert choice.probability == pytest.approx(both[tuple(wanted.values())], abs=1e-6)
    assert [one.probability for one in found] == sorted(
        (one.probability for one in found), reverse=True
    )


def test_the_command_answers_and_refuses(entry: store.ZooModel, capsys: Any) -> None:
    words = ["qos", "advise", "--model", str(entry.directory)]
    assert main([*words, "--target", "psnr=good,buffer=high", "--given", "bw1=low", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["settings"]["bw1"] == "low"
    assert answer["probability"] >= answer["runner_up"]["probability"]
    for more, text in (
        (["--target", "psnrr=good"], "did you mean 'psnr'"),
        (["--target", "psnr=great"], "good"),
        (["--target", "bw1=high"], "bw1 is a setting"),
        (["--target", "psnr=good", "--given", "bw1=low,bw1=high"], "can't be both"),
        (["--target", "psnr"], "NAME=VALUE"),
    ):
        assert main([*words, *more]) == 2
        assert text in capsys.readouterr().err
    assert main(["qos", "advise", "--model", "nothing", "--target", "psnr=good"]) == 2


def test_impossible_evidence_is_told(entry: store.ZooModel) -> None:
    table = advice.load(str(entry.directory))
    content = dict(table.content)
    content["table"] = [[0] * len(row) for row in content["table"]]
    with pytest.raises(UserError, match="impossible by the model"):
        advice.Table(content).ranked({"psnr": "good"}, {"delay1": "low"})


def test_an_altered_table_is_refused(entry: store.ZooModel, tmp_path: Path) -> None:
    for name in ("meta.json", "advice.json"):
        (tmp_path / name).write_bytes(entry.read(name))
    text = (tmp_path / "advice.json").read_text()
    (tmp_path / "advice.json").write_text(text.replace('"one":1', '"one":2'))
    with pytest.raises(UserError, match="altered"):
        advice.load(str(tmp_path))
