"""Budgets: what exceeds one fails and says by how much, what has no figure isn't passed."""

import json
import shutil

import pytest

from data.errors import UserError
from export.budget import FIGURES, Budget, parse_budget
from pipelines.cli import main

C = {"target": "c", "ns_per_decision": 20.0, "object_bytes": 3000, "stack_bytes": 8}
BPF = {"target": "bpf", "ns_per_decision": 80.0, "verified_insns": 900, "jited_bytes": 2500}
JSON = {"target": "json", "vectors": 9}


def test_every_key_is_read():
    text = ", ".join(f"{key} = {i}.5" for i, key in enumerate(FIGURES))
    assert parse_budget(text).limits == {key: i + 0.5 for i, key in enumerate(FIGURES)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("insn=3", "did you mean 'insns'?"),
        ("bfp.ns=3", "did you mean 'bpf'?"),
        ("bpf.insn=3", "did you mean 'insns'?"),
        ("ns", "KEY=NUMBER"),
        ("", "KEY=NUMBER"),
        ("ns=1,,bytes=2", "KEY=NUMBER"),
        ("ns=few", "a number expected"),
        ("ns=nan", "a finite number"),
        ("ns=inf", "a finite number"),
        ("ns=-1", "a finite number"),
        ("ns=1,ns=1", "twice"),
    ],
)
def test_mistakes_are_named(text, said):
    with pytest.raises(UserError, match=said.replace("?", r"\?")):
        parse_budget(text)


def test_a_cost_at_its_limit_is_within_it():
    judged = parse_budget("ns=80,bytes=3000,insns=900,stack=8").judge([C, BPF])
    assert judged["met"]
    assert judged["problems"] == []


def test_each_target_is_held_to_the_limit():
    judged = parse_budget("ns=50").judge([C, BPF])
    assert not judged["met"]
    assert judged["exceeded"] == [{"target": "bpf", "key": "ns", "cost": 80.0, "limit": 50.0}]
    assert judged["problems"] == [
        "bpf: 80 nanoseconds per decision, 30 (60 %) above the budget of ns=50"
    ]


def test_a_limit_for_one_target_leaves_the_others_alone():
    assert parse_budget("c.ns=20,bpf.ns=80").judge([C, BPF])["met"]
    judged = parse_budget("bpf.ns=70").judge([C, BPF, JSON])
    assert [e["target"] for e in judged["exceeded"]] == ["bpf"]
    assert parse_budget("json.ns=70").judge([C, BPF, JSON])["unmeasured"] == ["json.ns"]
    assert parse_budget("table.ns=70").judge([C])["unmeasured"] == ["table.ns"]


def test_a_program_and_its_map_are_counted_together():
    judged = parse_budget("bytes=3000").judge([{**BPF, "map_bytes": 600}])
    assert judged["exceeded"][0]["cost"] == 3100


def test_a_target_without_the_figure_is_told_where_another_has_it():
    judged = parse_budget("insns=1000").judge([C, BPF, JSON])
    assert judged["met"]
    assert judged["silent"] == {"insns": ["c", "json"]}


def test_a_limit_that_nothing_measures_fails():
    judged = parse_budget("ns=50,insns=1000").judge([C, JSON])
    assert not judged["met"]
    assert judged["unmeasured"] == ["insns"]
    assert "export it with -t bpf" in judged["problems"][0]


def test_a_limit_of_nothing_has_no_share():
    assert "(" not in Budget({"stack": 0.0}).judge([C])["problems"][0]


@pytest.mark.skipif(
    not (shutil.which("gcc") or shutil.which("clang")), reason="no C compiler on this machine"
)
def test_verify_takes_a_budget(zoo, tmp_path, capsys):
    directory = tmp_path / "tree"
    targets = ["-t", "c", "-t", "json", "-t", "python"]
    assert main(["export", str(zoo / "tree"), *targets, "--out", str(directory)]) == 0
    command = ["verify", str(directory), "--random", "10", "--budget"]
    assert main([*command, "bytes=1000000"]) == 0
    out, err = capsys.readouterr()
    assert "budget bytes=1e+06" in out
    assert "no figure for bytes" in err
    assert main([*command, "bytes=7"]) == 1
    assert "c: " in capsys.readouterr().err
    certificate = json.loads((directory / "certificate.json").read_text())
    assert certificate["ok"] is False
    assert certificate["budget"]["met"] is False
    assert certificate["budget"]["limits"] == {"bytes": 7.0}
    (exceeded,) = [e for e in certificate["budget"]["exceeded"] if e["target"] == "c"]
    (c,) = [t for t in certificate["targets"] if t["target"] == "c"]
    assert exceeded["cost"] == c["object_bytes"] > 7
    assert main([*command, "bits=7"]) == 2
    assert "did you mean" in capsys.readouterr().err
