"""Every model of the zoo, exported to every target that can carry it, is proved here."""

import json

import pytest

from export.functions import FUNCTIONS
from models.sbd.store import ZOO, load, names
from pipelines import prove
from pipelines.cli import main


@pytest.mark.parametrize("name", dict.fromkeys([*names(ZOO), *sorted(FUNCTIONS)]))
def test_all_targets_of_a_model_verify(name):
    rows = prove.prove(name)
    has_form = name in FUNCTIONS or "model.json" in load(name).meta.files
    expected = {"c", "json", "python"} if has_form else {"onnx"}
    assert expected <= {row["target"] for row in rows}
    failed = [row for row in rows if row["ok"] is False]
    assert not failed
    assert all(row["vectors"] > 0 and row["mismatches"] == 0 for row in rows if row["ok"])
    absent = [f"{row['target']}: {row['why']}" for row in rows if row["ok"] is None]
    if absent:
        pytest.skip(f"proved all but {'; '.join(absent)}")


def test_command_says_what_failed_and_exits_1(monkeypatch, capsys):
    def broken(name, only=()):
        return [{"model": name, "target": "c", "ok": False, "vectors": 9, "mismatches": 2}]

    monkeypatch.setattr(prove, "prove", broken)
    assert main(["zoo", "prove", "smartsbd-dt", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is False
    assert report["rows"][0]["mismatches"] == 2
