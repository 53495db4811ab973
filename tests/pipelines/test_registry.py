"""Entries in the registry: whole or not there, fetched as they were sent, or refused."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import mlflow
import pytest
from registry_entries import opened, training_of

from data.errors import UserError
from models import store
from models.sbd.params import Params
from models.sbd.train.job import Job
from pipelines import tracking
from pipelines.cli import main
from pipelines.registry import entries as registry
from pipelines.registry import outbox, register
from pipelines.sbd import register as registration

pytestmark = pytest.mark.xdist_group("registry")


def test_an_entry_comes_back_as_it_was_sent(entries, local, send):
    directory = entries.make("good")
    result = send(small=directory)
    assert result["versions"] == {"small": "1"}
    version = tracking.client().get_model_version_by_alias("small", "candidate")
    meta = store.load(directory).meta
    assert version.tags["schema_hash"] == meta.schema_hash
    assert version.tags["data_hash"] == meta.data_hash
    assert {"git_commit", "model_hash", "entry_hash", "budget"} <= version.tags.keys()
    back = opened("small@candidate")
    for name in (*meta.files, "meta.json"):
        assert back.read(name) == (directory / name).read_bytes(), name
    kept = [path for path in (local / "mlruns" / "artifacts").rglob("*") if path.is_file()]
    assert not [path for path in kept if path.suffix in {".pkl", ".joblib", ".skops"}]
    assert mlflow.onnx.load_model("models:/small@candidate").graph.input
    assert outbox.waiting() == []


def test_export_takes_a_registered_model(entries, local, send):
    send(small=entries.make("good"))
    command = ["export", "registry:small/1", "-t", "python", "--out", str(local / "bundle")]
    assert main(command) == 0
    assert main(["verify", str(local / "bundle"), "--random", "10"]) == 0


def test_an_altered_artifact_is_refused(entries, local, send):
    send(small=entries.make("good"))
    (stored,) = (local / "mlruns" / "artifacts").rglob("entry/model.json")
    stored.write_text(stored.read_text().replace("0", "1", 1))
    with pytest.raises(UserError, match="altered since it was registered"):
        registry.fetch_entry("small@candidate")
    stored.unlink()
    with pytest.raises(UserError, match=r"altered since|files missing"):
        registry.fetch_entry("small@candidate")


def test_an_altered_local_copy_is_fetched_again(entries, local, send):
    send(small=entries.make("good"))
    copy = Path(registry.fetch_entry("small@candidate")) / "model.json"
    before = copy.read_bytes()
    copy.write_bytes(b"{}")
    assert Path(registry.fetch_entry("small@candidate"), "model.json").read_bytes() == before


def test_addresses_that_lead_nowhere_say_what_there_is(entries, local, send):
    send(small=entries.make("good"))
    for text, words in {
        "smal": "did you mean 'small'",
        "small": "no @champion .it has @candidate.: cczoo promote small",
        "small/7": "no version 7",
        "small?group=": "NAME\\[@ALIAS",
        "small?grp=a": "NAME\\[@ALIAS",
        "../small": "NAME\\[@ALIAS",
        "small?group=a": "unknown registered model 'small.a'",
    }.items():
        with pytest.raises(UserError, match=words):
            registry.fetch_entry(text)


def test_a_group_has_its_own_model_or_the_pooled_one(entries, local, send):
    own = registry.group_model("small", "city=Paris/20e")
    assert own != registry.group_model("small", "city=Paris-20e")
    send(small=entries.make("good"), **{own: entries.make("bad")})
    mine = opened("small@candidate?group=city=Paris/20e")
    assert mine.directory != opened("small@candidate").directory
    registry.point_group("small", "rural")
    assert opened("small@candidate?group=rural").directory == opened("small@candidate").directory
    # Moving the pooled model in a group's name would change what others get.
    for text in ("small?group=rural", "small@candidate?group=rural"):
        with pytest.raises(UserError, match="no model of its own, it uses small"):
            registry.own(registry.Address.parse(text))
    # A model of its own ends the pointing.
    send(**{registry.group_model("small", "rural"): entries.make("bad")})
    assert opened("small@candidate?group=rural").meta.files == mine.meta.files


@pytest.mark.parametrize("group", ["isp=AT&T", "isp=A+B", "isp=50%25", "mail=a@b", "site=a,cc=b"])
def test_a_group_is_meant_as_it_is_written(group):
    address = registry.Address.parse(f"registry:small/3?group={group}")
    assert (address.name, address.version, address.group) == ("small", "3", group)
    assert address.registered == registry.group_model("small", group)


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = [{tests!r}]
from registry_entries import training_of
from pipelines import tracking
from pipelines.registry import entries as registry, register
tracking.ROOT = Path({root!r})
make = registry.create_version
def killed_after_the_first(name, *rest):
    make(name, *rest)
    os.kill(os.getpid(), signal.SIGKILL)
registry.create_version = killed_after_the_first
entry = Path({entry!r})
register.register(training_of(dict(small=entry, other=entry), Path({features!r})), offline=False)
"""


def test_a_killed_registration_leaves_nothing_half_done(entries, local, send):
    code = KILLED.format(
        tests=str(Path(__file__).parent),
        root=str(local),
        entry=str(entries.make("good")),
        features=str(entries.features),
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=os.getcwd())
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    client = tracking.client()
    assert [v.name for v in client.search_model_versions()] == ["small"]
    assert client.get_registered_model("small").aliases == {}
    # The next registration removes what was left, and sends what was meant first.
    result = send(third=entries.make("bad"))
    assert result["versions"] == {"third": "1"}
    names = {v.name: client.get_run(v.run_id).info.status for v in client.search_model_versions()}
    assert names == {"small": "FINISHED", "other": "FINISHED", "third": "FINISHED"}
    for name in names:
        assert opened(f"{name}@candidate").meta.kind == "tree"
    assert outbox.waiting() == []


def test_offline_records_are_sent_once_later(entries, local, monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    training = training_of({"small": entries.make("good")}, entries.features)
    kept = register.register(training, offline=True)
    assert [str(path) for path in outbox.waiting()] == [kept["waiting"]]
    arguments = register.argparse.ArgumentParser()
    register.add_arguments(arguments)
    with pytest.raises(UserError, match="out of reach"):
        register.run(arguments.parse_args(["--sync"]))
    assert len(outbox.waiting()) == 1
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    # As if the first call had been killed between sending and removing the record.
    first = outbox.send(outbox.waiting()[0])
    assert register.run(arguments.parse_args(["--sync"])) == 0
    assert outbox.waiting() == []
    versions = tracking.client().search_model_versions("name = 'small'")
    assert [(v.run_id, str(v.version)) for v in versions] == [(first["run"], "1")]


def test_a_failed_registration_keeps_the_training(entries, local, monkeypatch):
    def refused(*_):
        raise UserError("no space left")

    monkeypatch.setattr(registry, "create_version", refused)
    training = training_of({"small": entries.make("good")}, entries.features)
    with pytest.raises(UserError, match="no space left; the training is kept in"):
        register.register(training, offline=False)
    assert len(outbox.waiting()) == 1
    assert list(tracking.client().search_model_versions()) == []


def test_what_a_budget_chose_is_registered_with_it(entries, local):
    meta = store.load(entries.make("good")).meta.model_dump(
        mode="json", exclude={"files", "checksum"}
    )
    files = {n: (entries.make("good") / n).read_bytes() for n in ("model.onnx", "vectors.json")}
    figures = {"costs": {"ns": 12.5}, "accuracy": {"mean": 0.75}}
    out = local / "out"
    store.save(out / "model", meta, {**files, "metrics.json": json.dumps(figures).encode()})
    job = Job(features=entries.features, out=out, params=Params())
    result = registration.from_budget(job, "ns=40", None, offline=False)
    version = tracking.client().get_model_version_by_alias("small", "candidate")
    assert version.tags["budget"] == "ns=40"
    logged = tracking.client().get_run(result["run"]).data
    assert logged.metrics == {"cost.ns": 12.5, "accuracy": 0.75}


def test_a_version_has_the_certificate_of_its_model(entries, local, tmp_path):
    good, bad = entries.make("good"), entries.make("bad")
    bundle = tmp_path / "bundles" / "good"
    assert main(["export", str(good), "-t", "python", "--out", str(bundle)]) == 0
    assert main(["verify", str(bundle), "--random", "10"]) == 0
    known = register.read_certificates(tmp_path / "bundles")
    certificate = json.loads((bundle / "certificate.json").read_text())
    assert register.tags_of(good, known) == {
        "budget": "none",
        "certificate": "valid",
        "certificate_hash": certificate["certificate_hash"],
    }
    assert register.tags_of(bad, known)["certificate"] == "none"
