"""The registry behind a live MLflow server, with names and passwords where it can ask for them."""

import base64
import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import pytest
from registry_entries import training_of

from data.errors import UserError
from pipelines import tracking
from pipelines.cli import main
from pipelines.registry import aliases, register
from pipelines.registry import entries as registry
from pipelines.registry.aliases import Lost, Move

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
        "MLFLOW_AUTH_CONFIG_PATH": str(_auth_settings(folder)),
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
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
        process.wait(300)


def _auth_settings(folder):
    """MLflow's own, with checked passwords kept for a minute: a hash per request is slow."""
    path = folder / "auth.ini"
    path.write_text(
        "[mlflow]\ndefault_permission = READ\nadmin_username = admin\n"
        f"database_uri = sqlite:///{folder}/auth.db\nauth_cache_ttl_seconds = 60\n"
        "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"
    )
    return path


def _await(uri, process, log):
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{uri}/health", timeout=30):
                return
        except OSError:
            time.sleep(0.5)
    pytest.fail(f"mlflow server doesn't answer: {log.read_text()}")


@pytest.fixture(scope="module")
def reach(server, entries, tmp_path_factory):
    """Sets a patch up for the server; a bad and a good model are registered there as `far`."""
    folder = tmp_path_factory.mktemp("client")

    def reach(patch, user="admin", password=PASSWORD):
        patch.setattr(tracking, "ROOT", folder)
        patch.setattr(tracking, "REACH_S", 120)
        patch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "600")
        patch.setenv("MLFLOW_TRACKING_URI", server)
        patch.setenv("MLFLOW_TRACKING_USERNAME", user)
        patch.setenv("MLFLOW_TRACKING_PASSWORD", password)
        return folder

    with pytest.MonkeyPatch.context() as patch:
        reach(patch)
        for kind in ("bad", "good"):
            training = training_of({"far": entries.make(kind)}, entries.features)
            register.register(training, offline=False)
    return reach


@pytest.fixture
def promote(entries, tmp_path):
    settings = tmp_path / "params.yaml"
    settings.write_text("promotion: {gates: {test-set: {}}}")

    def promote(name):
        more = ["--features", str(entries.features), "--params", str(settings)]
        return main(["promote", name, *more])

    return promote


def test_from_training_to_bundle_over_a_server(reach, promote, monkeypatch, tmp_path):
    folder = reach(monkeypatch)
    assert promote("far/1") == 0
    assert promote("far") == 0
    assert aliases.aliases("far") == {"champion": "2", "candidate": "2", "previous": "1"}
    out = tmp_path / "bundle"
    assert main(["export", "registry:far@champion", "-t", "python", "--out", str(out)]) == 0
    assert main(["rollback", "far"]) == 0
    assert aliases.champion_of("far") == "1"
    who = "admin@" if AUTH else "@"
    assert all(who in event["who"] for event in aliases.history("far"))
    assert not (folder / "mlruns" / "mlflow.db").exists()


def test_of_two_promotions_at_once_one_wins_on_a_server(reach, monkeypatch):
    reach(monkeypatch)
    champion = aliases.champion_of("far")
    start, told, won = threading.Barrier(2), [], []
    to = "2" if champion != "2" else "1"

    def one():
        start.wait()
        try:
            won.append(aliases.make(Move("far", "promote", champion, to, champion, {})))
        except Lost as lost:
            told.append(str(lost))

    both = [threading.Thread(target=one) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert (len(won), len(told)) == (1, 1)
    assert "another promotion" in told[0]
    assert aliases.champion_of("far") == to


@needs_auth
def test_a_wrong_password_is_told(reach, monkeypatch):
    reach(monkeypatch, password="a-wrong-password")
    with pytest.raises(UserError, match="MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"):
        registry.fetch_entry("far/1")


@needs_auth
def test_who_may_only_read_cannot_promote(reach, server, monkeypatch):
    reach(monkeypatch)
    before = aliases.aliases("far")
    other = "1" if before.get("champion") == "2" else "2"
    _create_user(server, "reader", "a-password-of-a-reader")
    with monkeypatch.context() as patch:
        reach(patch, "reader", "a-password-of-a-reader")
        assert registry.fetch_entry("far/2")
        with pytest.raises(UserError, match="ask the server's administrator"), tracking.reported():
            aliases.make(Move("far", "promote", before.get("champion", ""), other, "", {}))
    assert aliases.aliases("far") == before


def _create_user(server, name, password):
    body = json.dumps({"username": name, "password": password}).encode()
    token = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
    headers = {"Authorization": f"Basic {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(
        f"{server}/api/2.0/mlflow/users/create", data=body, headers=headers
    )
    with urllib.request.urlopen(request, timeout=600) as answer:
        assert answer.status == 200
