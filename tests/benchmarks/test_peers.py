"""Peers of the benchmarks: found without a uv on the PATH, and never from another run."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def load(path: str):
    name = "bench_" + path.replace("/", "_").removesuffix(".py")
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_makefiles_own_uv_serves_where_none_is_on_the_path(monkeypatch, tmp_path):
    uv = load("peers/uv.py")
    own, named = executable(tmp_path / "own" / "uv"), executable(tmp_path / "named" / "uv")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setattr(uv, "OWN", own)
    assert uv.uv() == str(own)
    monkeypatch.setenv("UV", str(named))
    assert uv.uv() == str(named)
    monkeypatch.delenv("UV")
    monkeypatch.setattr(uv, "OWN", tmp_path / "nowhere")
    assert uv.uv() is None
    assert load("dtw.py").find_uv.__module__ == "uv"


@pytest.fixture
def netsim(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS.parent))
    return load("netsim.py")


def test_a_ratio_has_both_its_sides_from_this_run(netsim):
    assert netsim.times_ns3(None, 0.035) == "not measured"
    assert netsim.times_ns3({"cpu_s": 7.0}, 0.035) == pytest.approx(200)


def test_what_was_left_out_is_said(monkeypatch, tmp_path, capsys):
    run = load("run.py")
    program = tmp_path / "benchmarks" / "some.py"
    program.parent.mkdir()
    program.write_text(f"print({json.dumps({'left_out': ['ns-3: absent']})!r})")
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setitem(run.BENCHMARKS, "some", run.Benchmark(always=()))
    assert run.run("some", False, tmp_path / "results") == ""
    assert "left out: ns-3: absent" in capsys.readouterr().out
