"""Policies in the registry: registered, promoted through their gate, named by --cc, rolled back."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
from random_policies import policy

from data.errors import UserError
from models import store
from models.policies import entry
from models.policies import policy as trained
from pipelines import controllers, tracking
from pipelines.cli import main
from pipelines.gates import played
from pipelines.league import players
from pipelines.registry import aliases, of_policies
from pipelines.registry.entries import fetch_entry
from pipelines.zoo import policies

pytestmark = pytest.mark.xdist_group("registry")


def made(place, seed):
    """Entries of MA-CC as a training's folder gives them."""
    patch = pytest.MonkeyPatch()
    random = policy("macc", seed)
    whole = replace(random, settings={**random.settings, "seed": seed, "env": {}})
    patch.setattr(trained, "of_training", lambda folder: whole)
    try:
        return {one.meta.name: one.directory for one in policies.made(place / "none", place, 0)}
    finally:
        patch.undo()


@pytest.fixture(scope="module")
def trainings(tmp_path_factory):
    return [made(tmp_path_factory.mktemp(f"seed-{seed}"), seed) for seed in (3, 4)]


@pytest.fixture
def cczoo(local, tmp_path, monkeypatch, capsys):
    """The command with two families of the league, and a gate that minds nothing but `worst`."""
    few = {name: played.FAMILIES[name] for name in ("lossy", "friendly")}
    monkeypatch.setattr(played, "FAMILIES", few)

    def cczoo(*words, code=0, worst=0):
        settings = tmp_path / "params.yaml"
        gate = f"{{worst: {worst}, margin: 10, neighbour: 0, decision_us: 1.e+9, each: 1}}"
        settings.write_text(f"promotion: {{gates: {{test-set: {{}}, control: {gate}}}}}")
        more = ["--params", str(settings)] if words[0] == "promote" and "--log" not in words else []
        assert main([*map(str, words), *more, "--json"]) == code
        return json.loads(capsys.readouterr().out)

    return cczoo


def tags(name, version):
    return tracking.client().get_model_version(name, version).tags


def test_a_policy_is_registered_promoted_played_and_rolled_back(trainings, cczoo, local, capsys):
    """Senders through the whole life of a version; what stands with it is what the gate found."""
    first, second = (one["macc-tcp"] for one in trainings)
    assert cczoo("zoo", "register", first)["registered"] == {"macc-tcp": "1"}
    kept = [path for path in (local / "mlruns" / "artifacts").rglob("*") if path.is_file()]
    assert {"policy.json", "weights.safetensors"} <= {path.name for path in kept}
    assert not {path.suffix for path in kept} - {".json", ".safetensors", ".md"}
    said = tags("macc-tcp", "1")
    assert (said["family"], said["kind"], said["certificate"]) == ("macc-sender", "dueling", "none")

    report = cczoo("promote", "macc-tcp", "--reason", "the first")
    assert report["gates"].keys() == {"control"}
    evidence = report["gates"]["control"]["evidence"]
    assert evidence["families"].keys() == {"lossy", "friendly"}
    assert report["test_set"]["hash"] == evidence["scenarios"]
    said = tags("macc-tcp", "1")
    assert said["gate.control"] == "pass"
    assert said["gate.control.scenarios"] == evidence["scenarios"]
    for name in ("power", "worst", "neighbour", "decision_us"):
        assert float(said[f"gate.control.{name}"]) == pytest.approx(evidence[name], rel=1e-4)
    assert float(said["gate.control.families.lossy"]) == pytest.approx(
        evidence["families"]["lossy"], rel=1e-4
    )

    # What is refused says so in the registry too, beside its figures; a dry run says nothing.
    cczoo("zoo", "register", second)
    assert cczoo("promote", "macc-tcp", "--dry-run", worst=9, code=1)["problems"]
    assert "gate.control" not in tags("macc-tcp", "2")
    (problem,) = cczoo("promote", "macc-tcp", worst=9, code=1)["problems"]
    assert "less than 9 of CUBIC's power" in problem
    assert tags("macc-tcp", "2")["gate.control"] == "REFUSED"
    assert aliases.champion_of("macc-tcp") == "1"
    report = cczoo("promote", "macc-tcp")
    assert "difference" in report["gates"]["control"]["evidence"]
    assert "gate.control.difference" in tags("macc-tcp", "2")

    champion = "registry:macc-tcp@champion"
    assert cczoo("zoo", "verify", champion)["ok"]
    short = ("--scenario", "macc-fig4", "--set", "duration_s=2")
    rows = cczoo("evaluate", "cc", *short, "--cc", f"reno,{champion},{second}")
    by_cc = {row["cc"]: row["metrics"]["goodput_mbps"] for row in rows[:3]}
    assert by_cc[champion] == by_cc[str(second)]
    cczoo("rollback", "macc-tcp", "--reason", "to see")
    weights = controllers.player(champion).policy.weights
    own = entry.of_entry(store.load(first)).weights
    assert all((weights[name] == own[name]).all() for name in own)
    events = cczoo("promote", "macc-tcp", "--log")
    assert [one["action"] for one in events] == ["promote", "promote", "rollback"]
    assert all(one["intact"] for one in events)


def test_both_parts_of_a_team_play_together(trainings, cczoo):
    for one in trainings:
        cczoo("zoo", "register", one["macc-tcp"], one["macc-aqm"])
    team = controllers.player("registry:macc@candidate")
    assert team.policy.kinds == (0, 1)
    assert [one.places for one in players.entrants(["registry:macc@candidate"])] == [
        controllers.places("registry:macc@candidate")
    ]
    with pytest.raises(UserError, match="each with versions of its own"):
        controllers.player("registry:macc/1")
    # Halves of two trainings aren't a team.
    tracking.client().set_registered_model_alias("macc-tcp", "candidate", "1")
    with pytest.raises(UserError, match="differ in settings"):
        controllers.player("registry:macc@candidate")


def test_a_champion_that_cannot_be_opened_is_a_finding_of_the_gate(trainings, cczoo, monkeypatch):
    """It is shown and logged, and refuses: a person has to decide."""
    first, second = (one["macc-tcp"] for one in trainings)
    cczoo("zoo", "register", first)
    cczoo("promote", "macc-tcp")
    cczoo("zoo", "register", second)
    old, of_entry = store.load(first).read("weights.safetensors"), entry.of_entry

    def opened(model):
        if model.read("weights.safetensors") == old:
            raise UserError("made by another version of cczoo")
        return of_entry(model)

    monkeypatch.setattr(entry, "of_entry", opened)
    report = cczoo("promote", "macc-tcp", code=1)
    assert "the champion can't be played: made by another version" in report["problems"][0]
    assert report["difference"]["cost"]["decision_us"][0] is None
    assert tags("macc-tcp", "2")["gate.control"] == "REFUSED"


def test_two_trainings_of_an_agent_are_two_versions(cczoo, tmp_path, monkeypatch):
    """Though their entries have the same names, and even where their settings are the same."""
    found = {}
    for seed in (3, 4):
        (tmp_path / f"seed-{seed}" / "checkpoint-000000000100").mkdir(parents=True)
        random = policy("macc", seed)
        found[f"seed-{seed}"] = replace(random, settings={**random.settings, "env": {}})
    monkeypatch.setattr(trained, "of_training", lambda folder: found[folder.name])
    folders = [tmp_path / name for name in found]
    assert cczoo("zoo", "register", *folders, "--seeds", "0")["registered"]["macc-tcp"] == "2"
    for version, name in enumerate(found, 1):
        (kept,) = players.entrants([f"registry:macc-aqm/{version}"])
        weights = players.opened(kept).policy.weights
        assert all((weights[key] == found[name].weights[key]).all() for key in weights)
    # Nor does a release drop the first of them.
    report = cczoo("zoo", "release", *folders, "--seeds", "0", "--dry-run", "--zoo",
                   tmp_path / "zoo", "--params", tmp_path / "params.yaml")  # fmt: skip
    assert [one["name"] for one in report["models"]] == ["macc-tcp", "macc-aqm"] * 2
    assert len({one["gates"]["control"]["reason"] for one in report["models"]}) == 4


def test_an_altered_weight_is_refused(trainings, cczoo, local, capsys):
    cczoo("zoo", "register", trainings[0]["macc-aqm"])
    (stored,) = (local / "mlruns" / "artifacts").rglob("entry/weights.safetensors")
    stored.write_bytes(stored.read_bytes()[:-1] + b"\x00\x01")
    with pytest.raises(UserError, match="altered since it was registered"):
        fetch_entry("macc-aqm@candidate")


def test_a_model_that_sets_no_windows_is_no_control(entries, local, send, capsys):
    send(small=entries.make("good"))
    with pytest.raises(UserError, match="registry:small@candidate: a model, but no policy"):
        controllers.player("registry:small@candidate")
    assert main(["zoo", "register", str(entries.make("good"))]) == 2
    assert "no policy: its training registers" in capsys.readouterr().err


def test_a_record_has_the_settings_and_the_policys_own_figures(trainings):
    metrics = {"goodput_mbps": {"mean": 3.5, "lo": 3.0, "hi": 4.0}}
    row = {"scenario": "macc-fig4", "variant": "0.5 % loss", "cc": "macc-tcp", "metrics": metrics}
    kept = {"evaluated": [row, {**row, "cc": "cubic"}]}
    assert of_policies.figures("macc-tcp", kept) == {
        "macc-tcp/macc-fig4/0.5 - loss/goodput_mbps": 3.5
    }
    models = [store.load(folder) for one in trainings for folder in one.values()]
    records = of_policies.trainings("test", models)
    assert [sorted(one.entries) for one in records] == [["macc-aqm", "macc-tcp"]] * 2
    assert [one.params["training"]["seed"] for one in records] == [3, 4]
    assert {one.experiment for one in records} == {"macc"}
