"""`cczoo train sbd budget`: measured, chosen within the budget, exportable, honest otherwise."""

import contextlib
import io
import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

import synthetic

from pipelines.cli import main

SETTINGS = """
models:
  sbd:
    workers: 0
    selection: {seeds: 1}
    protocol: {splits: 2, test_share: 0.25}
"""
needs_compiler = pytest.mark.skipif(
    not (shutil.which("gcc") or shutil.which("clang")), reason="no C compiler on this machine"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("budget")
    synthetic.features(3, per_site=20, per_family=8, per_case=0).write_parquet(folder / "f.parquet")
    (folder / "params.yaml").write_text(SETTINGS)
    return folder


@pytest.fixture(scope="module")
def small_spaces():
    from models.sbd.train import spaces

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(spaces.SPACES, "dt", {"depth": (1, 4), "leaf": (1,)})
        patch.setitem(spaces.SUBSETS, "dt", (1, 4))
        patch.setitem(spaces.SPACES, "rf", {"depth": (3,), "trees": (5,), "leaf": (1,)})
        patch.setitem(spaces.SUBSETS, "rf", (4,))
        yield


def train(folder, out, model, budget, *more):
    return main(
        ["train", "sbd", "budget", budget, "--model", model, "--features", f"{folder}/f.parquet",
         "--params", f"{folder}/params.yaml", "--out", str(out), "--no-register", *more]
    )  # fmt: skip


@pytest.fixture(scope="module")
def wide(folder, small_spaces):
    """A search that nothing bounds: its folder and what it printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = train(folder, folder / "wide", "dt", "ns=100000,bytes=100000", "--json")
    assert code == 0
    return folder / "wide", json.loads(printed.getvalue())


@needs_compiler
def test_the_best_that_fits_is_kept_and_exports(wide, tmp_path):
    out, result = wide
    assert result == json.loads((out / "pareto.json").read_text())
    assert "<svg" in (out / "pareto.svg").read_text()
    assert result["tried"] == 4
    gains = [row["accuracy"]["mean"] for row in result["front"]]
    assert gains == sorted(gains, reverse=True)
    assert result["chosen"]["accuracy"]["mean"] == gains[0]
    for row in result["front"]:
        assert row["costs"]["ns"] == row["costs"]["c.ns"] > 0
        assert row["costs"]["bytes"] == row["costs"]["c.bytes"] > 0
        assert row["costs"]["insns"] > 0
        assert ("insns" in row["estimated"]) == ("bpf.insns" not in row["costs"])
    bundle = tmp_path / "bundle"
    assert main(["export", str(out / "model"), "-t", "c", "--out", str(bundle)]) == 0
    assert main(["verify", str(bundle), "--random", "20", "--budget", "bytes=100000"]) == 0
    certificate = json.loads((bundle / "certificate.json").read_text())
    (c,) = certificate["targets"]
    assert c["object_bytes"] == pytest.approx(result["chosen"]["costs"]["bytes"], rel=0.1)


@needs_compiler
def test_a_tight_budget_gets_a_smaller_model(wide, folder, tmp_path, capsys):
    sizes = sorted(row["costs"]["bytes"] for row in wide[1]["front"])
    assert len(sizes) > 1, "the front needs two sizes for a choice"
    assert train(folder, tmp_path / "few", "dt", f"bytes={sizes[0]}") == 0
    few = json.loads((tmp_path / "few" / "pareto.json").read_text())
    assert few["chosen"]["costs"]["bytes"] == sizes[0]
    assert "chosen" in capsys.readouterr().out
    assert any(row["exceeds"] for row in few["front"])


@needs_compiler
def test_nothing_fits(folder, tmp_path, small_spaces, capsys):
    assert train(folder, tmp_path, "rf", "bytes=10") == 1
    err = capsys.readouterr().err
    assert "nothing fits bytes=10; nearest: rf, 4 features" in err
    assert "above the budget of bytes=10" in err
    assert not (tmp_path / "model").exists()
    assert json.loads((tmp_path / "pareto.json").read_text())["chosen"] is None


@needs_compiler
def test_where_no_program_can_be_loaded_instructions_are_estimated_and_said_to_be(
    folder, tmp_path, small_spaces, capsys, monkeypatch
):
    from export.targets import bpf
    from export.toolchain.harness import CannotRun

    def refuse(*_):
        raise CannotRun("not root")

    monkeypatch.setattr(bpf, "prove", refuse)
    assert train(folder, tmp_path, "dt", "insns=100000") == 0
    out = capsys.readouterr().out
    assert "BPF: not root" in out
    assert "~" in out
    chosen = json.loads((tmp_path / "pareto.json").read_text())["chosen"]
    assert chosen["estimated"] == ["insns"]
    assert chosen["costs"]["insns"] >= chosen["nodes"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "dt", "--out", "x"], "required: KEY=LIMIT"),
        (["ns=1", "--out", "x"], "required: --model"),
        (["ns=1", "--model", "dt"], "required: --out"),
        (["nss=1", "--model", "dt", "--out", "x"], "did you mean 'ns'?"),
        (["ns=few", "--model", "dt", "--out", "x"], "a number expected"),
        (["ns=1", "--model", "dtt", "--out", "x"], "did you mean 'dt'?"),
        (["ns=1", "--model", "dt", "--out", "x", "--family", "smart"], "smartsbd"),
        (["ns=1", "--model", "dt", "--out", "x", "--events", "e"], "arguments: --events e"),
    ],
)
def test_mistakes_get_one_line_and_status_2(arguments, said, capsys):
    assert main(["train", "sbd", "budget", *arguments]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.strip().splitlines()) == 1
