"""A training from a store's decisions says which ones it learned from."""

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from offline_tables import SMALL

from models.rl import checkpoint
from pipelines import tracking
from pipelines.cli import main
from tests.fleet.small import command, take

RAW = Path(__file__).parents[3] / "data" / "raw" / "smartsbd-random" / "random"


def test_a_training_names_what_it_learned_from(tmp_path, capsys, monkeypatch):
    seen = []

    @contextmanager
    def run(*_, **options):
        seen.append(options)
        yield SimpleNamespace(log_metrics=lambda *_, **__: None)

    monkeypatch.setattr(tracking, "run", run)
    monkeypatch.setattr(tracking, "check_store", lambda: None)
    store, out = tmp_path / "store", tmp_path / "out"
    for number, path in enumerate(sorted(RAW.glob("*"))[:2]):
        take([path], store, day=f"2026-11-0{number + 1}")
    words = ["features", "decisions", "tcco", "--jobs", 1]
    assert command(capsys, *words, "--store", store)["connections"] == 2
    given = [f"--set={key}={value}" for key, value in {**SMALL, "updates": 1}.items()]
    words = ["train", "offline", "tcco", "--method", "bc", "--out", out, "--set=held_out=0", *given]
    where = "day = 2026-11-02 and behaviour <> 'lia'"
    told = command(capsys, *words, "--decisions", store, "--where", where)
    assert told["selection"]["where"] == where
    assert seen[0]["selection"] == told["selection"]
    assert seen[0]["dataset_hash"] == told["selection"]["fingerprint"]
    kept = checkpoint.read(checkpoint.latest(out / "seed-7"))["offline"]
    assert kept["selection"] == told["selection"]
    # A training of other rows isn't taken for this one.
    other = ["--decisions", str(store), "--where", "day = 2026-11-01", "--resume"]
    assert main([*map(str, words), *other]) == 2
    assert "learned from other decisions" in capsys.readouterr().err
