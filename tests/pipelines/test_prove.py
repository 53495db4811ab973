"""Every model of the zoo, exported to every target that can carry it, is proved here."""

import json

import pytest

from export.bpf import build
from export.functions import FUNCTIONS
from models.store import ZOO, load, names
from pipelines.cli import main
from pipelines.zoo import prove

CANNOT_RUN = {"bpf"} if build.why_not() else set()
"""Targets that may stay unproved on this machine: a test of its own is skipped for each."""


TREES = ("macc-aqm-tree", "macc-tcp-tree", "nuwa-rl-tree", "tcco-tree")
"""Distilled trees; their teachers' networks take minutes: `cczoo zoo prove` has them all."""


@pytest.mark.parametrize("name", dict.fromkeys([*names(ZOO), *sorted(FUNCTIONS), *TREES]))
def test_all_targets_of_a_model_verify(name):
    rows = prove.prove(name)
    has_form = name in FUNCTIONS or "model.json" in load(name).meta.files
    expected = {"c", "json", "python"} if has_form else {"onnx"}
    assert expected <= {row["target"] for row in rows}
    failed = [row for row in rows if row["ok"] is False]
    assert not failed
    assert all(row["vectors"] > 0 and row["mismatches"] == 0 for row in rows if row["ok"])
    absent = {row["target"]: row["why"] for row in rows if row["ok"] is None}
    assert absent.keys() <= CANNOT_RUN, absent


def test_ebpf_is_proved_where_the_machine_can():
    if reason := build.why_not():
        pytest.skip(reason)
    (row,) = prove.prove("smartsbd-lr", ["bpf"])
    assert row["ok"] is True


def test_command_says_what_failed_and_exits_1(monkeypatch, capsys):
    def broken(name, only=()):
        return [{"model": name, "target": "c", "ok": False, "vectors": 9, "mismatches": 2}]

    monkeypatch.setattr(prove, "prove", broken)
    assert main(["zoo", "prove", "smartsbd-dt", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is False
    assert report["rows"][0]["mismatches"] == 2
