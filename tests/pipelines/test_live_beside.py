"""Models compared on the windows of live runs: the logs of runs stand for runs here."""

import json
import shutil
from pathlib import Path

import pytest

from pipelines.live import beside

RAW = Path(__file__).parents[2] / "data" / "raw" / "smartsbd-paper" / "shanghai"
pytestmark = pytest.mark.skipif(not RAW.is_dir(), reason="data/raw isn't in this checkout")


def _record(label, repeat, **other):
    return {
        "kind": "run", "scenario": "live-sb", "site": "shanghai", "cc": "smartsbd", "valid": True,
        "repeat": repeat, "phases": [{"from_s": 0.0, "to_s": 20.0, "label": label}], **other,
    }  # fmt: skip


@pytest.fixture
def out(tmp_path):
    (tmp_path / "logs").mkdir()
    records = [
        _record("SB", 0),
        _record("NSB", 1),
        _record("SB", 2, valid=False),
        _record("SB", 3, cc="lia"),
        _record("SB", 4, phases=[{"label": "SB"}, {"label": "NSB"}]),
    ]
    kept = [next(RAW.glob(f"*-{kind}-0001.klog.zst")) for kind in ("sb", "nsb")]
    for record in records:
        log = kept[record["phases"][0]["label"] == "NSB"]
        name = f"live-sb-shanghai-{record['cc']}-{record['repeat']}.klog.zst"
        shutil.copy(log, tmp_path / "logs" / name)
    text = "".join(json.dumps(record) + "\n" for record in records)
    (tmp_path / "live.jsonl").write_text(text)
    return tmp_path


def test_only_valid_runs_of_a_model_with_one_phase_count(out):
    assert sorted(record["repeat"] for record in beside.valid_runs(out).values()) == [0, 1]


def test_all_models_see_the_same_windows(out, capsys):
    assert beside.main([str(out), "smartsbd-plus-kernel", "smartsbd-dt", "--json"]) == 0
    tree, general = sorted(json.loads(capsys.readouterr().out)["rows"], key=lambda r: r["model"])
    assert (tree["model"], general["model"]) == ("smartsbd-dt", "smartsbd-plus-kernel")
    assert tree["windows"] == general["windows"] >= 4
    assert tree["runs"] == general["runs"] == 2
    assert tree["right"] == tree["held"]
    # Both were trained on logs like these: were a label or a class mistaken, half would be wrong.
    assert general["right"] >= 0.75 * general["windows"]
    assert beside.main([str(out), "smartsbd-dt"]) == 0
    assert "| live-sb | shanghai | smartsbd-dt | 2 |" in capsys.readouterr().out


def test_wifi_is_the_first_subflow_whichever_has_more_events(out, capsys, monkeypatch):
    command = [str(out), "smartsbd-dt", "--json"]
    assert beside.main(command) == 0
    found = json.loads(capsys.readouterr().out)
    real = beside.choose_pair
    monkeypatch.setattr(beside, "choose_pair", lambda events: real(events)[::-1])
    assert beside.main(command) == 0
    assert json.loads(capsys.readouterr().out) == found


def test_a_model_without_features_in_code_is_refused(out, capsys):
    assert beside.main([str(out), "smartsbd-plus-dt"]) == 2
    assert "no code computes its features" in capsys.readouterr().err


def test_a_folder_without_runs_is_refused(tmp_path, capsys):
    assert beside.main([str(tmp_path), "smartsbd-dt"]) == 2
    assert "no valid run" in capsys.readouterr().err
