"""``cczoo conditions`` on an ingested directory: groups, plot, new connections, mistakes."""

import json

import numpy as np
import polars as pl
import pytest

from data.schema import CONNECTIONS
from data.store import VARIABLE_NAMES, PartWriter
from models.sbd.params import Conditions
from pipelines.cli import main
from pipelines.sbd.conditions import grouping

pytestmark = pytest.mark.xdist_group("tslearn")

SETTINGS = {"points": 8, "sample": 60, "clusters": [2, 3], "halves": 2, "starts": 2}
RTT = VARIABLE_NAMES.index("rtt_us")


def ingested(folder, levels_us, count):
    """``count`` connections per level, whose second subflow is half as long again."""
    (folder / "events").mkdir(parents=True)
    writer = PartWriter(folder / "events", "part-00")
    rng = np.random.default_rng(0)
    rows = []
    for number in range(count * len(levels_us)):
        name = f"c{number:03d}"
        writer.begin(name)
        for subflow in (1, 2):
            times = np.sort(rng.integers(0, 10_000_000, 200))
            level = levels_us[number // count] * (1 + subflow) // 2
            writer.add(subflow, RTT, times, (level * rng.uniform(1, 1.3, 200)).astype(np.int64))
        rows.append({**dict.fromkeys(CONNECTIONS.names), "connection": name})
    writer.close()
    rows.append({**rows[0], "connection": "silent"})
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(folder / "connections.parquet")
    (folder / "ingest.json").write_text(json.dumps({"connections": len(rows)}))
    return folder


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("conditions")
    events = ingested(folder / "events", (20_000, 200_000), 25)
    (folder / "params.yaml").write_text(json.dumps({"models": {"sbd": {"conditions": SETTINGS}}}))
    table = pl.DataFrame({"connection": ["c001", "c030", "other"], "window": [0, 0, 0]})
    table.write_parquet(folder / "features.parquet", metadata={"cczoo.smartsbd": "0"})
    code = main(
        ["conditions", "--events", str(events), "--out", f"{folder}/out",
         "--params", f"{folder}/params.yaml", "--features", f"{folder}/features.parquet"]
    )  # fmt: skip
    assert code == 0
    return folder


def test_groups_plot_and_annotated_table(fitted):
    frame = pl.read_parquet(fitted / "out" / "assigned.parquet")
    found = dict(zip(frame["connection"], frame["nearest"], strict=True))
    assert len(found) == 50
    assert {found[f"c{n:03d}"] for n in range(25)} == {"path-1"}
    assert {found[f"c{n:03d}"] for n in range(25, 50)} == {"path-2"}
    assert "path-2: " in (fitted / "out" / "groups.svg").read_text()
    assert (fitted / "out" / "groups.png").read_bytes().startswith(b"\x89PNG")
    table = pl.read_parquet(fitted / "out" / "features.parquet")
    assert table["condition"].to_list()[2] is None
    assert table["condition"].to_list()[:2] == ["path-1", "path-2"]
    kept = pl.read_parquet_metadata(fitted / "out" / "features.parquet")
    assert kept["cczoo.smartsbd"] == "0"


def test_new_connections_are_assigned_to_groups_of_before(fitted, tmp_path, capsys):
    events = ingested(tmp_path / "events", (200_000, 4_000_000), 3)
    code = main(
        ["conditions", "--events", str(events), "--groups", f"{fitted}/out",
         "--out", f"{tmp_path}/out", "--json"]
    )  # fmt: skip
    assert code == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fitted"] == 0
    assert found["groups"]["path-1"] == 0
    assert found["unlike_any"] >= 3
    frame = pl.read_parquet(tmp_path / "out" / "assigned.parquet")
    assert frame["group"].to_list()[3:] == ["unlike-any"] * 3


def test_grouping_is_the_same_mapping(fitted, tmp_path):
    settings = Conditions.parse(SETTINGS, "test")
    found = grouping(fitted / "events", tmp_path, settings, seed=7)
    frame = pl.read_parquet(fitted / "out" / "assigned.parquet")
    assert found == dict(zip(frame["connection"], frame["group"], strict=True))


def test_mistakes_are_told(fitted, tmp_path, capsys):
    events = ["conditions", "--events", f"{fitted}/events", "--out", f"{tmp_path}/out"]
    annotated = f"{fitted}/out/features.parquet"
    for more, says in (
        (["--groups", f"{tmp_path}/none.json"], "no such groups"),
        (["--features", annotated], "has a column 'condition' already"),
    ):
        assert main([*events, *more]) == 2
        assert says in capsys.readouterr().err
    few = ingested(tmp_path / "few", (20_000,), 3)
    assert main(["conditions", "--events", str(few), "--out", f"{tmp_path}/out"]) == 2
    assert "groups need 40" in capsys.readouterr().err
