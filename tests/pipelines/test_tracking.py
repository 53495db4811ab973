"""A run in a real MLflow store: what it must have recorded; stores that can't be used."""

import os
import socket
import sqlite3
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer

import mlflow
import numpy as np
import pytest

from data.errors import UserError
from pipelines import tracking
from pipelines.cli import main
from pipelines.registry import owner

pytestmark = pytest.mark.xdist_group("registry")


def test_run_records_commit_data_and_metrics(local):
    with tracking.run("sbd", "tree", {"tree": {"depth": 3}}, dataset_hash="abc") as active:
        active.log_metrics({"accuracy": 0.5, "undefined": float("nan")})
    kept = mlflow.get_run(active.run_id)
    assert kept.data.params == {"tree.depth": "3"}
    assert kept.data.metrics == {"accuracy": 0.5}
    assert kept.data.tags["dataset_hash"] == "abc"
    assert kept.data.tags["git_commit"] == "unknown"
    assert kept.info.artifact_uri.startswith((local / "mlruns" / "artifacts").as_uri())


def test_model_is_saved_with_its_signature(entries, local):
    path = entries.make("good") / "model.onnx"
    tracking.save_onnx(path, np.zeros((2, 3), dtype=np.float32), local / "model")
    signature = mlflow.models.get_model_info(str(local / "model")).signature
    assert signature.inputs.is_tensor_spec()
    assert [tensor.name for tensor in signature.outputs] == ["probability"]
    assert mlflow.onnx.load_model(str(local / "model")).graph.input


@pytest.fixture
def answering():
    """A server that is none of MLflow's: answers a status, or accepts and says nothing."""

    class Handler(BaseHTTPRequestHandler):
        status = 404

        def do_GET(self):
            self.send_response(self.status)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", Handler
    server.shutdown()
    server.server_close()


def test_another_server_is_told_from_mlflow(answering, monkeypatch):
    uri, handler = answering
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    with pytest.raises(UserError, match="no MLflow server"):
        tracking.check_store()
    # A password asked for by a proxy is mlflow's to give.
    handler.status = 401
    tracking.check_store()


def test_a_silent_server_is_given_up_soon(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://user:secret@127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        monkeypatch.setattr(tracking, "REACH_S", 0.3)
        with pytest.raises(UserError, match="out of reach") as caught:
            tracking.check_store()
    assert "secret" not in str(caught.value)


COMMANDS = [
    ["train", "sbd", "all", "--features", "none.parquet"],
    ["promote", "smartsbd-dt"],
    ["rollback", "smartsbd-dt"],
    ["export", "registry:smartsbd-dt", "-t", "c", "--out", "none"],
]
"""That need the registry."""


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_say_at_once_that_the_server_is_away(command, monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port}")
    assert main(command) == 2
    assert f"127.0.0.1:{port}: MLflow server out of reach" in capsys.readouterr().err


def junk(path):
    path.write_bytes(b"no database at all, but long enough to look like one")


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def folder(path):
    path.unlink()
    path.mkdir()


def fifo(path):
    path.unlink()
    os.mkfifo(path)


def foreign(path):
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE experiments (name TEXT)")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (junk, "file is not a database: this is no registry"),
        (cut, "malformed: the registry's database is damaged: restore a copy"),
        (folder, "not a file: correct MLFLOW_TRACKING_URI"),
        (fifo, "not a file: correct MLFLOW_TRACKING_URI"),
        (foreign, "no such column: experiment_id: this is no registry"),
    ],
)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_database_that_is_none_is_told_in_one_line(command, damage, said, local, capsys):
    path = local / "mlruns" / "mlflow.db"
    damage(path)
    tracking._REACHED.clear()
    assert main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{path}: " in line
    assert said in line


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_locked_database_is_told_in_one_line(command, local, monkeypatch, capsys):
    path = local / "mlruns" / "mlflow.db"
    monkeypatch.setattr(tracking, "REACH_S", 0.2)
    tracking._REACHED.clear()
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{path}: database is locked: another program holds the registry's database" in line


def test_mlflow_s_own_database_errors_are_one_line(local):
    """A file may be damaged, or locked, after the check."""
    path = local / "mlruns" / "mlflow.db"
    tracking.client().search_registered_models()
    cut(path)
    with pytest.raises(UserError) as caught, tracking.reported():
        tracking.client().search_registered_models()
    assert str(caught.value).startswith(f"{path}: database disk image is malformed: the registry")


def test_a_mark_tells_the_living_from_the_gone():
    lease = owner.lease()
    host, pid, started, _ = lease.split("/")
    assert not owner.is_gone(lease, 0.0)
    assert owner.is_gone(f"{host}/{pid}/{int(started) + 1}/0", 1e12)
    elsewhere = f"other-host/{pid}/{started}"
    assert owner.is_gone(f"{elsewhere}/0", 10.0)
    assert not owner.is_gone(f"{elsewhere}/{lease.rpartition('/')[2]}", 600.0)


def test_the_store_is_shown_and_checked_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/store/mlflow.db")
    assert tracking.shown_uri() == f"sqlite:///{tmp_path}/store/mlflow.db"
    tracking.check_store()
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:secret@mlflow.example:5000/x")
    assert tracking.shown_uri() == "http://mlflow.example:5000/x"
