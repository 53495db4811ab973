"""A model for each group: decided, registered, exported; failures and interruptions survived."""

import json
import sys
from pathlib import Path

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

import group_tables
from registry_entries import opened

from data.errors import UserError
from models import store
from models.sbd.groups import rows as groups_rows
from models.sbd.results.groups import GROUPS, Counts, Grouped, GroupRow
from pipelines import tracking
from pipelines.cli import main
from pipelines.registry import aliases
from pipelines.reporting.inputs import Inputs
from pipelines.reporting.sbd import groups as page
from pipelines.sbd import groups, groups_task

pytestmark = pytest.mark.xdist_group("registry")

SIZES = {"lyon": 60, "oslo": 40, "rome": 40, "bonn": 6}
RULES = {"reversed_": ("rome",), "noise": ("oslo",)}
PARAMS = """
models:
  sbd:
    workers: 0
    bootstrap: 200
    groups: {folds: 3, repeats: 1, inner_folds: 2, grid: 2, min_connections: 4, min_windows: 10}
promotion:
  gates: {test-set: {min_windows: 3}}
"""


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("groups") / "table.parquet"
    group_tables.table(SIZES, **RULES).write_parquet(path)
    return path


@pytest.fixture
def train(tmp_path, table, capsys):
    """Run the command; returns its status and what it printed as JSON."""
    (tmp_path / "params.yaml").write_text(PARAMS)

    def train(*more, columns="site", features=table):
        command = ["train", "sbd", "groups", "--by", columns, "--features", str(features), "--json"]
        command += ["--out", str(tmp_path / "out"), "--params", str(tmp_path / "params.yaml")]
        capsys.readouterr()
        status = main([*command, *more])
        said = capsys.readouterr()
        return status, json.loads(said.out) if said.out else None, said.err

    return train


def decisions(result):
    return {row["values"]["site"]: row["decision"] for row in result["groups"]}


def test_a_group_takes_its_own_model_only_where_that_is_better(train, tmp_path, capsys):
    status, result, _ = train("--no-register")
    assert status == 0
    rows = {row["values"]["site"]: row for row in result["groups"]}
    assert rows["rome"]["difference"]["low"] > 0 >= rows["oslo"]["difference"]["low"]
    wanted = {"rome": "own", "oslo": "pooled", "bonn": "pooled"}
    # Labels that say the opposite elsewhere cost the pooled model something here, or they don't.
    wanted["lyon"] = "own" if rows["lyon"]["difference"]["low"] > 0 else "pooled"
    assert decisions(result) == wanted
    assert rows["bonn"]["reason"].startswith("too little data: ")
    # The rows that promotion tests on were left out of everything.
    assert rows["rome"]["connections"] + rows["rome"]["test"]["connections"] == 40
    chosen = [f"smartsbd-dt.site={site}" for site, name in sorted(wanted.items()) if name == "own"]
    assert store.names(tmp_path / "out" / "zoo") == ["smartsbd-dt", *chosen]
    own = store.load("smartsbd-dt.site=rome", tmp_path / "out" / "zoo")
    held = group_tables.table({"rome": 40}, **RULES, seed=9)
    right = own.predict(held) == (held["label"] == "SB").to_numpy()
    assert right.mean() > 0.8
    assert "For connections of site=rome alone" in own.read("card.md").decode()
    kept = json.loads((tmp_path / "out" / "groups.json").read_text())
    assert kept["groups"] == result["groups"]
    # As the report and a terminal show it.
    (tmp_path / "reports").mkdir()
    (tmp_path / "out").rename(tmp_path / "reports" / "groups")
    shown = page.groups(Inputs(tmp_path))
    for site in SIZES:
        assert f"<td>site={site}</td>" in shown
    assert "too little data" in shown
    assert shown.count("<svg") == 1
    page.show(GROUPS.parse(result, "groups.json"))
    told = capsys.readouterr().out
    assert f"{len(chosen)} groups with a model of their own" in told
    assert "site=bonn: too little data: " in told


def test_what_was_done_before_an_interruption_is_not_done_again(train, tmp_path, monkeypatch):
    keep, trained = groups._keep, []

    def killed(job, outcome, key):
        if outcome.row.get("group") == "site=oslo":
            raise KeyboardInterrupt
        return keep(job, outcome, key)

    monkeypatch.setattr(groups, "_keep", killed)
    assert train("--no-register")[0] == 1
    assert not (tmp_path / "out" / "groups.json").exists()
    monkeypatch.setattr(groups, "_keep", keep)
    work = groups_task.train_group
    monkeypatch.setattr(
        groups_task, "train_group", lambda a, b: (trained.append(b.name), work(a, b))[1]
    )
    done = {path.name for path in (tmp_path / "out" / "results").iterdir()}
    assert done == {"smartsbd-dt.json", "smartsbd-dt.site=lyon.json"}
    # Half a file of a model that its row doesn't tell of yet.
    (tmp_path / "out" / "results" / ".smartsbd-dt.site=oslo.json.1").write_text('{"ke')
    status, result, _ = train("--no-register")
    assert (status, result["resumed"]) == (0, 1)
    assert sorted(trained) == ["site=bonn", "site=oslo", "site=rome"]
    # A model that was altered is made again; other settings make everything again.
    (tmp_path / "out" / "zoo" / "smartsbd-dt.site=rome" / "model.json").write_text("{}")
    trained.clear()
    again = train("--no-register")[1]
    assert trained == ["site=rome"]
    assert again["groups"] == result["groups"]
    assert train("--no-register", "--seed", "8")[1]["resumed"] == 0


def test_a_group_that_fails_costs_itself_alone(train, monkeypatch):
    work = groups_task.train_group

    def failing(pooled, group):
        if group.name == "site=oslo":
            raise ValueError("no such luck")
        return work(pooled, group)

    monkeypatch.setattr(groups_task, "train_group", failing)
    status, result, told = train("--no-register")
    assert status == 1
    assert decisions(result)["oslo"] == "failed"
    assert decisions(result)["rome"] == "own"
    assert "failed: site=oslo: ValueError: no such luck" in told
    monkeypatch.setattr(groups_task, "train_group", work)
    status, result, _ = train("--no-register")
    assert (status, result["resumed"]) == (0, 3)


def test_registered_groups_are_promoted_and_exported(train, table, local, tmp_path, capsys):
    status, result, _ = train()
    assert status == 0
    assert result["registered"]["versions"] == 1 + result["counts"]["own"]
    client = tracking.client()
    version = client.get_model_version_by_alias("smartsbd-dt.site=rome", "candidate")
    assert json.loads(version.tags["group"]) == {"site": "rome"}
    assert {"data_hash", "schema_hash", "model_hash", "git_commit"} <= version.tags.keys()

    def promote(name, *more):
        settings = ["--features", str(table), "--params", str(tmp_path / "params.yaml")]
        return main(["promote", name, *settings, *more])

    def serves(group):
        return opened(f"smartsbd-dt@champion?group=site={group}").meta.checksum

    with pytest.raises(UserError, match="no @champion"):
        serves("rome")
    assert promote("smartsbd-dt") == 0
    pooled = opened("smartsbd-dt@champion").meta.checksum
    # Until its own is promoted, the pooled model serves the group as before.
    assert {serves(group) for group in SIZES} == {pooled}
    # The first of its own has the one that it takes over from to beat.
    capsys.readouterr()
    assert promote("smartsbd-dt?group=site=rome", "--json") == 0
    promoted = json.loads(capsys.readouterr().out)
    assert promoted["from"] == ""
    compared = promoted["gates"]["test-set"]
    assert compared["passed"] is True
    assert compared["evidence"]["windows"]["difference"]["mean"] > 0
    assert serves("oslo") == pooled != serves("rome")
    # What one group does leaves the others alone.
    champion = aliases.champion_of("smartsbd-dt")
    assert promote("smartsbd-dt?group=site=oslo") == 2
    assert main(["rollback", "smartsbd-dt?group=site=oslo"]) == 2
    assert main(["rollback", "smartsbd-dt?group=site=rome"]) == 1
    assert aliases.champion_of("smartsbd-dt") == champion
    capsys.readouterr()
    assert main(["promote", "smartsbd-dt?group=site=rome", "--log", "--json"]) == 0
    logged = json.loads(capsys.readouterr().out)
    assert [event["model"] for event in logged] == ["smartsbd-dt.site=rome"]
    for group in ("rome", "oslo"):
        bundle = tmp_path / group
        name = f"registry:smartsbd-dt@champion?group=site={group}"
        assert main(["export", name, "-t", "python", "--out", str(bundle)]) == 0
        assert main(["verify", str(bundle), "--random", "10"]) == 0
    # A later training that finds the pooled model good enough points the group back to it.
    rows = [{**row, "decision": "pooled"} for row in result["groups"]]
    told = GROUPS.read(tmp_path / "out").model_dump() | {"groups": rows}
    from models.sbd.params import Params
    from models.sbd.train.job import Job
    from pipelines.sbd import register as registration

    job = Job(table, tmp_path / "out", Params(), zoo=tmp_path / "out" / "zoo")
    registration.from_groups(job, GROUPS.parse(told, "groups.json"), None, offline=False)
    assert serves("rome") == pooled


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--by", "sit"], "did you mean 'site'"),
        (["--by", "site,RTT_ED"], "unknown attribute column"),
        (["--by", "site", "--model", "dtt"], "unknown --model 'dtt': did you mean 'dt'"),
        (["--by", "site", "--model", "threshold"], "give --family smartsbd-plus"),
        ([], "one of the arguments --by --conditions is required"),
        (["--by", "site", "--conditions", "e"], "not allowed with argument --by"),
        (["--by", "site", "--zoo", "z"], "unrecognized arguments: --zoo z"),
        (["--by", "site", "--features", "none.parquet"], "none.parquet: no such features"),
        (["--by", "site", "--features", "."], ".: no Parquet file in it"),
    ],
)
def test_a_users_mistake_is_one_line(arguments, words, table, tmp_path, capsys):
    command = ["train", "sbd", "groups", "--features", str(table)]
    command += ["--out", str(tmp_path / "out")]
    if "." in arguments:
        arguments = [str(tmp_path) if one == "." else one for one in arguments]
        words = "no Parquet file in it"
    assert main([*command, *arguments, "--no-register"]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said
    assert not (tmp_path / "out" / "groups.json").exists()


def test_a_table_in_parts_is_the_same_table(table, tmp_path):
    frame = pl.read_parquet(table)
    for site, rows in frame.partition_by("site", as_dict=True).items():
        part = tmp_path / "parts" / f"site={site[0]}"
        part.mkdir(parents=True)
        for i, one in enumerate(rows.sample(fraction=1, shuffle=True, seed=1).iter_slices(50)):
            one.drop("site").write_parquet(part / f"{i}.parquet")
    found = {}
    for name, path in (("file", table), ("parts", tmp_path / "parts")):
        into = tmp_path / f"{name}.arrow"
        whole = groups_rows.gather(path, ["site"], group_tables.NAMES, 200, into)
        names = sorted(whole.counts)
        frames = [f.sort("connection", "window") for f in whole.frames(names)]
        found[name] = (names, [f.select(sorted(f.columns)) for f in frames], whole.counts)
        # Whole connections, about as many rows as asked for.
        sizes = whole.sample.group_by("connection").len()["len"]
        assert set(sizes) == {3}
        assert 120 < len(whole.sample) < 300
    assert found["file"][0] == found["parts"][0]
    assert found["file"][2] == found["parts"][2] == {f"site={s}": 3 * n for s, n in SIZES.items()}
    for one, other in zip(found["file"][1], found["parts"][1], strict=True):
        assert one.equals(other)


def test_on_a_narrow_terminal_no_number_is_cut(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    value = {"mean": 0.123, "low": -0.456, "high": 0.789}
    row = {"connections": 89, "windows": 14770, "own": value, "pooled": value, "difference": value}
    row |= {"values": {}, "registered": "dt", "decision": "pooled", "reason": "not better"}
    rows = tuple(GroupRow(group=f"site={name}", **row) for name in ("a" * 70, "b"))
    counts = Counts(own=0, pooled=2, failed=0)
    shown = Grouped.model_construct(groups=rows, counts=counts, model="dt", rows_without_group=0)
    page.show(shown)
    said = capsys.readouterr().out
    assert "…" not in said
    assert max(map(len, said.splitlines())) <= 80
    assert said.count("0.123 [-0.456, 0.789] pooled") == 2
    assert said.count("14770") == 2
