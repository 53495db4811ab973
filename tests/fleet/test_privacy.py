"""What is forgotten is gone, and pseudonyms say nothing without their key."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from data.errors import UserError
from data.fleet import index
from data.fleet.check import check
from data.fleet.pseudonyms import Pseudonyms, read_key
from pipelines.cli import main
from tests.fleet.small import command, rows, take, write_log


def everything(store: Path) -> bytes:
    return b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())


@pytest.fixture
def labelled(tmp_path: Path) -> tuple[Path, Path]:
    for number in range(3):
        write_log(
            tmp_path / "logs" / f"2026-11-0{number + 1}-secret{number}.csv", 0xABC000 + number
        )
    labels = tmp_path / "labels.csv"
    labels.write_text(
        "source,isp,client\n2026-11-01-secret0.csv,x,10.9.8.7\n2026-11-02-secret1.csv,y,fe80::1\n"
    )
    return tmp_path / "logs", labels


def test_forgotten_connections_are_gone_for_good(labelled, tmp_path, capsys, monkeypatch) -> None:
    logs, labels = labelled
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/none.db")
    store = tmp_path / "store"
    monkeypatch.setattr(index, "EVERY", 1)
    take([logs], store, labels=labels, root=str(logs))
    before = rows(store)
    dry = command(capsys, "store", "forget", store, "--where", "isp = 'x'", "--dry-run")
    assert dry["connections"] == 3
    assert rows(store).equals(before)
    told = command(capsys, "store", "forget", store, "--where", "isp = 'x'")
    assert told["connections"] == 3
    assert told["models"] == []
    left = rows(store)
    assert left.equals(before.filter(pl.col("isp").ne_missing("x")).select(left.columns))
    # No file has them: neither by name nor by an older version of the table.
    stored = everything(store)
    assert b"secret0" not in stored
    assert b"secret1" in stored
    # The log is still known by its content: no night takes it again.
    report = take([logs], store, labels=labels, root=str(logs))
    assert report["logs"]["forgotten"] == 1
    assert report["sources"] == 0
    found = check(str(store))
    assert not found["problems"]
    assert found["counts"]["forgotten_connections"] == 3
    assert main(["store", "forget", str(store), "--where", "isp = 'x'"]) == 2
    assert "no connection fits" in capsys.readouterr().err


def test_a_part_of_a_log_can_be_forgotten(labelled, tmp_path, capsys, monkeypatch) -> None:
    logs, _ = labelled
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/none.db")
    store = tmp_path / "store"
    take([logs], store)
    one = rows(store)["connection"][0]
    told = command(capsys, "store", "forget", store, "--where", f"connection = '{one}'")
    assert told["connections"] == 1
    assert one not in rows(store)["connection"].to_list()
    assert len(rows(store)) == 8
    assert take([logs], store)["logs"]["unchanged"] == 2
    write_log(logs / "2026-11-01-secret0.csv", 99)
    assert take([logs], store)["logs"]["forgotten"] == 1
    assert not check(str(store))["problems"]


def test_pseudonyms_hide_addresses_ports_and_names(labelled, tmp_path, capsys) -> None:
    logs, labels = labelled
    key = tmp_path / "key"
    key.write_text("0123456789abcdef" * 2)
    key.chmod(0o600)
    args = ["--labels", labels, "--jobs", 1]
    store = tmp_path / "store"
    plain = command(capsys, "ingest", logs, "--into", tmp_path / "plain", *args)
    told = command(capsys, "ingest", logs, "--into", store, "--pseudonymise", key, *args)
    assert told["connections"] == plain["connections"]
    stored = rows(store)
    text = str(rows(store).to_dicts()) + str(rows(store, "source").to_dicts())
    text += str(rows(store, "quarantine").to_dicts())
    for secret in ("secret", "10.9.8.7", "fe80", "40001", "5000,", "abc000"):
        assert secret not in text, secret
        assert secret in str(rows(tmp_path / "plain").to_dicts()), secret
    assert b"secret" not in everything(store)
    # Equal things stay equal, and the days, which are no secret, stay.
    assert set(stored["day"]) == {"2026-11-01", "2026-11-02", "2026-11-03"}
    assert stored["connection"].n_unique() == len(stored)
    ports = {subflow["dport"] for row in stored["subflows"] for subflow in row}
    known = {s["dport"] for row in rows(tmp_path / "plain")["subflows"] for s in row}
    assert len(ports) == len(known)
    assert min(ports - {-1}) > 65535
    again = command(capsys, "ingest", logs, "--into", store, "--pseudonymise", key, *args)
    assert again["logs"]["unchanged"] == 3
    assert not check(str(store))["problems"]


def test_keys(tmp_path: Path) -> None:
    key = tmp_path / "key"
    with pytest.raises(UserError, match="make a key with"):
        read_key(key)
    key.write_text("short")
    key.chmod(0o644)
    with pytest.raises(UserError, match="others can read it"):
        read_key(key)
    key.chmod(0o600)
    with pytest.raises(UserError, match="at least 16 bytes"):
        read_key(key)
    one, other = Pseudonyms(b"a" * 16), Pseudonyms(b"b" * 16)
    assert one.source("x") == Pseudonyms(b"a" * 16).source("x") != other.source("x")
    assert one.text("from 10.0.0.1 to 2001:db8::1 at 12:30") != "from 10.0.0.1"
    assert "12:30" in str(one.text("from 10.0.0.1 to 2001:db8::1 at 12:30"))
    assert Pseudonyms(None).text("10.0.0.1") == "10.0.0.1"
