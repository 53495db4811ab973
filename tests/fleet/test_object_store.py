"""A store in an object store: a real S3 server on loopback, its writes, its listings."""

from __future__ import annotations

import datetime
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from data.decisions import files
from data.errors import UserError
from data.fleet import ingest as ingesting
from data.fleet.address import filesystem
from data.fleet.check import check
from data.fleet.forget import forget
from data.fleet.select import fingerprint, open_logs
from data.fleet.units import _far
from data.fleet.where import Where
from pipelines.fleet.decided import chosen
from pipelines.fleet.tables import KEYS
from tests.fleet.small import command, take, write_log

RAW = Path(__file__).parents[2] / "data" / "raw" / "smartsbd-random"
DAY = "day = 2026-11-01"

SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
"""Prints its port, and ends with its standard input."""


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A bucket of its own on a server that ends with the tests."""
    # In a process of its own: deltalake waits for answers without letting other threads run.
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    settings = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.stdout.readline().strip()}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        name = f"logs-{uuid.uuid4().hex[:8]}"
        filesystem(f"s3://{name}")[0].mkdir(name)
        yield f"s3://{name}"
    server.communicate()


def test_a_store_and_its_logs_lie_in_a_bucket(bucket: str, tmp_path: Path) -> None:
    for number in range(2):
        write_log(tmp_path / "logs" / f"2026-11-0{1 + number}" / f"{number}.csv", number)
    system, root = filesystem(bucket)
    system.put(str(tmp_path / "logs"), f"{root}/logs", recursive=True)
    store = f"{bucket}/store"
    report = take([f"{bucket}/logs"], store)
    assert report["logs"]["new"] == 2
    assert take([f"{bucket}/logs"], store)["logs"]["unchanged"] == 2
    here = tmp_path / "store"
    take([tmp_path / "logs"], here)
    assert (
        fingerprint(open_logs(store), Where())[1] == fingerprint(open_logs(str(here)), Where())[1]
    )
    write_log(tmp_path / "changed.csv", 9)
    system.put_file(str(tmp_path / "changed.csv"), f"{root}/logs/2026-11-01/0.csv")
    assert take([f"{bucket}/logs"], store)["logs"]["replaced"] == 1
    found = check(store)
    assert not found["problems"]
    assert found["logs"] == 2
    with pytest.raises(UserError, match="no log files"):
        take([f"{bucket}/nowhere"], store)


def test_two_writers_in_a_bucket(bucket: str, tmp_path: Path, monkeypatch) -> None:
    log = write_log(tmp_path / "logs" / "0.csv", 5)
    store, real = f"{bucket}/two", ingesting._commit
    first: list[dict[str, int]] = []

    def late(table, written, mine):
        """Another writer commits the same log while this one is about to."""
        if not first:
            first.append({})
            first[0] = take([log], store)["logs"]
        return real(table, written, mine)

    monkeypatch.setattr(ingesting, "_commit", late)
    second = take([log], store)["logs"]
    assert first[0]["new"] == 1
    assert (second["new"], second["elsewhere"]) == (0, 1)
    assert not check(store)["problems"]
    assert check(store)["logs"] == 1


def test_features_and_decisions_lie_in_a_bucket(bucket: str, capsys) -> None:
    log = sorted((RAW / "random").glob("*"))[0]
    store, jobs = f"{bucket}/followed", ("--jobs", 1, "--store", f"{bucket}/followed")
    take([log], store, day="2026-11-01")
    for _ in range(2):
        sbd = command(capsys, "features", "sbd", *jobs)
        decided = command(capsys, "features", "decisions", "tcco", *jobs, "--where", DAY)
    assert (sbd["connections"], decided["connections"]) == (0, 0)
    with chosen(f"{store}/decisions-tcco", "tcco", DAY) as (folder, selection):
        assert selection is not None
        assert selection.store == store
        [run] = files.runs(folder)
    gone = forget(store, Where(f"connection = '{run.name}'"), KEYS)
    assert gone.features["sbd"] > 0
    assert gone.features["decisions-tcco"] == run.rows
    with pytest.raises(UserError, match="no decisions"), chosen(store, "tcco", None):
        pass


def test_an_unknown_scheme_says_what_to_install(tmp_path: Path) -> None:
    log = write_log(tmp_path / "0.csv", 1)
    with pytest.raises(UserError, match="pip install gcsfs"):
        take([log], "gs://bucket/store")
    with pytest.raises(UserError, match="give a path, or a URL"):
        take([log], "nonsense://bucket/store")


def test_what_each_object_store_says_of_a_log() -> None:
    changed = datetime.datetime(2026, 11, 3, 4, 5, tzinfo=datetime.UTC)
    s3 = _far("s3://b/a.csv", {"size": 5, "ETag": '"e1"', "LastModified": changed}, {})
    gs = _far("gs://b/a.csv", {"size": 5, "etag": "e1", "mtime": changed}, {})
    other = _far("memory://a.csv", {"size": 5}, {})
    assert (s3.stamp, gs.stamp, other.stamp) == ('5:"e1"', "5:e1", "5:")
    assert (s3.changed_day, gs.changed_day, other.changed_day) == ("2026-11-03",) * 2 + (
        "1970-01-01",
    )
