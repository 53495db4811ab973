"""The registry behind a live MLflow server, with names and passwords where it can ask for them."""

import importlib.util
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

from data.errors import UserError
from pipelines import promotions, registry, tracking
from pipelines.cli import main
from pipelines.promotions import Lost, Move

pytestmark = pytest.mark.xdist_group("registry")

AUTH = importlib.util.find_spec("flask_wtf") is not None
PASSWORD = "a-password-of-tests"
needs_auth = pytest.mark.skipif(
    not AUTH, reason="no flask_wtf here: mlflow's basic-auth app needs it (mlflow[auth])"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory, empty_store):
    """`mlflow server` over SQLite, as docs/registry.md starts it; yields its address."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "mlflow.db").write_bytes(empty_store.read_bytes())
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port),
        "--workers", "1", "--backend-store-uri", f"sqlite:///{folder}/mlflow.db",
        "--artifacts-destination", str(folder / "artifacts"),
        *(["--app-name", "basic-auth"] if AUTH else []),
    ]  # fmt: skip
    environment = {
        **os.environ,
        "MLFLOW_AUTH_ADMIN_PASSWORD": PASSWORD,
        "MLFLOW_FLASK_SERVER_SECRET_KEY": "of tests",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    environment.pop("MLFLOW_TRACKING_URI", None)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    uri = f"http://127.0.0.1:{port}"
    try:
        _await(uri, process, folder / "log")
        yield uri
    finally:
        os.killpg(process.pid, 15)
        process.wait(30)


def _await(uri, process, log):
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{uri}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    pytest.fail(f"mlflow server doesn't answer: {log.read_text()}")


@pytest.fixture
def remote(server, tmp_path, monkeypatch):
    monkeypatch.setattr(tracking, "ROOT", tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server)
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "admin")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
    return tmp_path


def test_from_training_to_bundle_over_a_server(entries, remote, send, capsys):
    settings = remote / "params.yaml"
    settings.write_text("promotion: {gates: {test-set: {}}}")
    promote = ["promote", "far", "--features", str(entries.features), "--params", str(settings)]
    send(far=entries.make("bad"))
    assert main(promote) == 0
    send(far=entries.make("good"))
    assert main(promote) == 0
    aliases = {"champion": "2", "candidate": "2", "previous": "1"}
    assert promotions.aliases("far") == aliases
    out = remote / "bundle"
    assert main(["export", "registry:far@champion", "-t", "python", "--out", str(out)]) == 0
    assert main(["rollback", "far"]) == 0
    assert promotions.champion_of("far") == "1"
    who = "admin@" if AUTH else "@"
    assert all(who in event["who"] for event in promotions.history("far"))
    assert not (remote / "mlruns" / "mlflow.db").exists()


def test_of_two_promotions_at_once_one_wins_on_a_server(entries, remote, send):
    for _ in range(3):
        send(race=entries.make("good"))
    promotions.make(Move("race", "promote", "", "1", "", {}))
    start, told, won = threading.Barrier(2), [], []

    def one(to):
        start.wait()
        try:
            won.append(promotions.make(Move("race", "promote", "1", to, "1", {}))["to"])
        except Lost as lost:
            told.append(str(lost))

    both = [threading.Thread(target=one, args=(to,)) for to in ("2", "3")]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert (len(won), len(told)) == (1, 1)
    assert promotions.champion_of("race") == won[0]


@needs_auth
def test_a_wrong_password_is_told(remote, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "a-wrong-password")
    with pytest.raises(UserError, match="MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"):
        registry.fetch_entry("far@champion")


@needs_auth
def test_who_may_only_read_cannot_promote(entries, remote, send, monkeypatch, capsys):
    send(guarded=entries.make("good"))
    from mlflow.server import get_app_client

    users = get_app_client("basic-auth", tracking_uri=tracking.tracking_uri())
    users.create_user("reader", "a-password-of-a-reader")
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "reader")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "a-password-of-a-reader")
    assert registry.fetch_entry("guarded@candidate")
    settings = remote / "params.yaml"
    settings.write_text("promotion: {gates: {test-set: {}}}")
    command = ["promote", "guarded", "--features", str(entries.features), "--params", str(settings)]
    assert main(command) == 2
    assert "permission" in capsys.readouterr().err
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "admin")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
    assert promotions.aliases("guarded") == {"candidate": "1"}
