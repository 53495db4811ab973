"""Promotion: by evidence, one at a time, logged, and undone."""

import json
import shutil
import threading

import polars as pl
import pytest

from data.errors import UserError
from models import store
from pipelines import tracking
from pipelines.cli import main
from pipelines.params import load
from pipelines.registry import aliases
from pipelines.registry.aliases import Lost, Move
from pipelines.zoo import verify

pytestmark = pytest.mark.xdist_group("registry")

GATES = "promotion: {gates: {test-set: {}, groups: {}, certificate: {targets: [python]}}}"


@pytest.fixture
def promote(entries, tmp_path, capsys):
    settings = tmp_path / "params.yaml"
    settings.write_text(GATES)

    def promote(*more, name="small", features=entries.features):
        command = ["promote", name, "--params", str(settings), "--json"]
        code = main([*command, *(["--features", str(features)] if features else []), *more])
        return code, json.loads(capsys.readouterr().out)

    promote.settings = settings
    return promote


def aliases_now():
    return aliases.aliases("small")


def move(champion, to, previous="", action="promote"):
    return aliases.make(Move("small", action, champion, to, previous, {}))


def test_a_better_model_becomes_champion_and_goes_back(entries, local, send, promote, capsys):
    send(small=entries.make("bad"))
    code, first = promote("--reason", "to begin with")
    assert code == 0
    assert first["gates"]["test-set"]["passed"] is None
    assert first["gates"]["certificate"]["passed"] is True
    send(small=entries.make("good"))
    code, second = promote()
    assert (code, second["problems"]) == (0, [])
    assert aliases_now() == {"champion": "2", "candidate": "2", "previous": "1"}
    gained = second["gates"]["test-set"]["evidence"]["windows"]["difference"]
    assert gained["low"] > 0.2
    shown = second["difference"]["metrics"]["within.window"]
    assert shown[1] > shown[0]
    assert second["test_set"]["windows"] > 30
    version = tracking.client().get_model_version("small", "2")
    assert version.tags["certificate"] == "valid"
    assert len(version.tags["certificate_hash"]) == 64

    code, again = promote()
    assert (code, again["problems"]) == (1, ["small: version 2 is @champion already"])
    assert main(["rollback", "small"]) == 0
    assert aliases_now() == {"champion": "1", "candidate": "2"}
    assert main(["rollback", "small"]) == 1
    assert "no @previous version" in capsys.readouterr().err

    assert main(["promote", "small", "--log", "--json"]) == 0
    events = json.loads(capsys.readouterr().out)
    assert [(e["action"], e["from"], e["to"]) for e in events] == [
        ("promote", "", "1"), ("promote", "1", "2"), ("rollback", "2", "1"),
    ]  # fmt: skip
    assert events[0]["reason"] == "to begin with"
    assert "@" in events[0]["who"]
    lines = (local / "mlruns" / "promotions.jsonl").read_text().splitlines()
    assert [{**json.loads(line), "intact": True} for line in lines] == events


def test_a_long_history_is_read_to_its_end(entries, local, send, monkeypatch):
    send(small=entries.make("good"))
    monkeypatch.setattr(tracking, "PAGE", 2)
    champion = ""
    for _ in range(5):
        move(champion, "1")
        champion = "1"
    events = aliases.history("small")
    assert [event["intact"] for event in events] == [True] * 5
    assert [event["from"] for event in events] == ["", "1", "1", "1", "1"]


def test_a_log_says_that_there_are_no_moves_yet(entries, local, send, capsys):
    send(small=entries.make("good"))
    assert main(["promote", "small", "--log"]) == 0
    assert "small: no moves yet" in capsys.readouterr().out
    assert main(["promote", "small", "--log", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert main(["promote", "smal", "--log"]) == 2
    assert "did you mean 'small'" in capsys.readouterr().err


def test_a_worse_model_is_refused_with_reasons(entries, local, send, promote):
    send(small=entries.make("good"))
    assert promote()[0] == 0
    before = aliases_now()
    send(small=entries.make("bad"))
    code, result = promote()
    assert code == 1
    assert {problem.partition(":")[0] for problem in result["problems"]} == {"test-set", "groups"}
    assert aliases_now() == {**before, "candidate": "2"}
    assert len(aliases.history("small")) == 1


def test_a_dry_run_changes_nothing(entries, local, send, promote):
    send(small=entries.make("good"))
    code, result = promote("--dry-run")
    assert (code, result["ok"]) == (0, True)
    assert aliases_now() == {"candidate": "1"}
    assert aliases.history("small") == []


def test_a_loss_of_one_group_alone_is_refused(entries, local, send, promote, tmp_path):
    send(small=entries.make("good"))
    assert promote()[0] == 0
    send(small=entries.make("bad"))
    frame = pl.read_parquet(entries.features)
    turned = {"SB": "NSB", "NSB": "SB"}
    label = pl.when(pl.col("dataset") == "table6").then(pl.col("label"))
    turned_label = label.otherwise(pl.col("label").replace(turned))
    flipped = frame.with_columns(label=turned_label)
    rest = flipped.filter(pl.col("dataset") != "table6")
    more = [rest.with_columns(connection=pl.col("connection") + f"-{i}") for i in range(8)]
    pl.concat([flipped, *more]).write_parquet(tmp_path / "turned.parquet")
    code, result = promote(features=tmp_path / "turned.parquet")
    assert code == 1
    assert result["gates"]["test-set"]["passed"] is True
    (problem,) = result["problems"]
    assert problem.startswith("groups: worse for dataset = table6")


def test_without_a_table_the_stored_samples_are_used(entries, local, send, promote, monkeypatch):
    monkeypatch.chdir(local)
    send(small=entries.make("good"))
    assert promote(features=None)[0] == 0
    send(small=entries.make("bad"))
    code, result = promote(features=None)
    assert code == 1
    assert result["test_set"]["what"] == "samples stored with the models"
    stored = store.load(entries.make("good")).read_json("test.json")
    assert result["test_set"]["windows"] == len(stored["values"])


def test_a_budget_that_is_exceeded_refuses(entries, local, send, promote):
    if not shutil.which("gcc"):
        pytest.skip("no gcc on this machine")
    limits = "{small: 'c.bytes=10'}"
    promote.settings.write_text(
        f"promotion: {{gates: {{budget: {{targets: [c], limits: {limits}}}}}}}"
    )
    send(small=entries.make("good"))
    code, result = promote()
    assert code == 1
    assert "budget: c:" in result["problems"][0]
    assert aliases_now() == {"candidate": "1"}


def test_gates_are_named_and_their_settings_strict(tmp_path):
    path = tmp_path / "params.yaml"
    for text, words in {
        "promotion: {gates: {groups: {margins: 1}}}": "did you mean 'margin'",
        "promotion: {gates: {group: {}}}": "unknown gate 'group': did you mean 'groups'",
        "promotion: {gates: {test-set: {margin: -1}}}": "margin",
    }.items():
        path.write_text(text)
        with pytest.raises(UserError, match=words):
            load(path)


def test_of_two_promotions_at_once_one_wins(entries, local, send):
    for _ in range(3):
        send(small=entries.make("good"))
    move("", "1")
    start, told, won = threading.Barrier(2), [], []

    def one(to):
        start.wait()
        try:
            won.append(move("1", to, "1")["to"])
        except Lost as lost:
            told.append(str(lost))

    both = [threading.Thread(target=one, args=(to,)) for to in ("2", "3")]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert len(won) == 1
    assert len(told) == 1
    assert "another promotion" in told[0]
    assert aliases_now() == {"champion": won[0], "previous": "1", "candidate": "3"}
    assert [event["to"] for event in aliases.history("small")] == ["1", won[0]]
    # The loser's comparison is with a champion that is none any more.
    with pytest.raises(Lost, match=f"@champion is version {won[0]} now, not 1"):
        move("1", "3", "1")


class Killed(BaseException):
    pass


@pytest.mark.parametrize("step", ["set_registered_model_alias", "set_terminated"])
def test_a_killed_move_is_undone_or_finished(entries, local, send, monkeypatch, step):
    for _ in range(3):
        send(small=entries.make("good"))
    move("", "1")
    client = tracking.client()

    def killed(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(type(client), step, killed)
        patch.setattr(aliases, "_unlock", killed)
        with pytest.raises(Killed):
            move("1", "2", "1")
    lock = client.get_registered_model("lock.small")
    with pytest.raises(Lost, match="another promotion is under way"):
        move("1", "3", "1")
    # The lock's holder is gone: as after a restart.
    client.set_registered_model_tag(lock.name, "mark", "elsewhere/1/1/1")
    there = step == "set_terminated"
    aliases.settle("small")
    assert aliases_now().get("previous") == ("1" if there else None)
    if there:
        with pytest.raises(Lost, match="is version 2 now"):
            move("1", "3", "1")
        assert aliases_now() == {"champion": "2", "previous": "1", "candidate": "3"}
    else:
        move("1", "3", "1")
        assert aliases_now() == {"champion": "3", "previous": "1", "candidate": "3"}
    assert [e["to"] for e in aliases.history("small")] == ["1", "2" if there else "3"]


def test_rollbacks_walk_back(entries, local, send):
    for _ in range(3):
        send(small=entries.make("good"))
    move("", "1")
    move("1", "2", "1")
    move("2", "3", "2")
    assert main(["rollback", "small"]) == 0
    assert aliases_now() == {"champion": "2", "previous": "1", "candidate": "3"}
    assert main(["rollback", "small"]) == 0
    assert aliases_now() == {"champion": "1", "candidate": "3"}


def test_a_changed_log_shows(entries, local, send, capsys):
    for _ in range(2):
        send(small=entries.make("good"))
    move("", "1")
    move("1", "2", "1")
    client = tracking.client()
    first = client.search_runs(
        [tracking.experiment_id(aliases.EXPERIMENT)],
        "tags.to = '1'",
    )[0]
    event = {**json.loads(first.data.tags["event"]), "who": "someone else"}
    client.set_tag(first.info.run_id, "event", json.dumps(event))
    assert main(["promote", "small", "--log"]) == 1
    assert "NOT INTACT" in capsys.readouterr().out


def test_zoo_verify_runs_the_stored_evaluation(entries, tmp_path, capsys):
    good, bad = entries.make("good"), entries.make("bad")
    report = verify.verify_entry(store.load(good))
    assert report["ok"]
    stored = report["evaluation"]
    assert stored.keys() == {"model.onnx", "model.json"}
    assert all(one["low"] <= one["now"] == one["mean"] <= one["high"] for one in stored.values())
    # Another model under the same evaluation, sealed anew: hashes can't tell, the evaluation can.
    meta = store.load(bad).meta.model_dump(mode="json", exclude={"files", "checksum"})
    files = {name: (bad / name).read_bytes() for name in store.load(bad).meta.files}
    files["test.json"] = (good / "test.json").read_bytes()
    store.save(tmp_path / "zoo" / "small", meta, files)
    assert main(["zoo", "verify", "--zoo", str(tmp_path / "zoo")]) == 1
    assert "outside the stored" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["meta.json", "test.json", "card.md", "added.pkl"])
def test_zoo_verify_sees_any_altered_file(entries, tmp_path, name, capsys):
    copy = tmp_path / "zoo" / "small"
    shutil.copytree(entries.make("good"), copy)
    assert main(["zoo", "verify", "--zoo", str(copy.parent)]) == 0
    path = copy / name
    if path.exists():
        path.write_text(path.read_text().replace("SB", "BS", 1) + "\n")
        path.write_text(path.read_text().replace("small", "large", 1))
    else:
        path.write_bytes(b"")
    assert main(["zoo", "verify", "--zoo", str(copy.parent)]) == 1
    assert name in capsys.readouterr().out
