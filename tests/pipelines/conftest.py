"""A registry of one's own per test."""

import shutil

import pytest
from registry_entries import Entries, training_of

from pipelines import tracking


@pytest.fixture(scope="session")
def entries(tmp_path_factory):
    return Entries(tmp_path_factory.mktemp("entries"))


@pytest.fixture
def local(tmp_path, monkeypatch, empty_store):
    """The checkout's own store, empty; returns its root."""
    (tmp_path / "mlruns").mkdir()
    shutil.copy(empty_store, tmp_path / "mlruns" / "mlflow.db")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(tracking, "ROOT", tmp_path)
    return tmp_path


@pytest.fixture
def send(entries):
    """Register entries under names; returns the result of the registration."""

    def send(**directories):
        from pipelines.registry.register import register

        return register(training_of(directories, entries.features), offline=False)

    return send
