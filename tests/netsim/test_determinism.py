"""One seed, one result: with threads, without the JIT, from kept code."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from data.netsim import jit
from data.netsim.network import Network
from data.netsim.scenario import Scenario

pytestmark = pytest.mark.xdist_group("netsim")


def busy(controller: str = "cubic") -> Scenario:
    """A little of everything, cheap enough to interpret."""
    tree = {
        "links": {
            "a": {"rate_mbps": 6.0, "delay_ms": 10.0, "queue_packets": 20, "loss": 0.01,
                  "queue": "red", "jitter_ms": 2.0},
            "b": {"generate": {"kind": "cellular", "mean_mbps": 4.0, "seed": 1},
                  "delay_ms": 20.0, "queue_packets": 30, "queue": "codel"},
            "back": {"delay_ms": 10.0, "jitter_ms": 1.0},
        },
        "flows": [
            {"name": "m", "cc": controller, "paths": [
                {"forward": ["a"], "back": ["back"]},
                {"forward": ["b"], "back": ["back"]},
            ]},
            {"name": "s", "cc": "reno", "start_spread_s": 0.5, "pacing": True,
             "paths": [{"forward": ["b"], "back": ["back"]}]},
        ],
        "sources": [{"path": ["a"], "rate_mbps": 2.0, "poisson": True, "on_s": 0.2,
                     "off_s": 0.2, "random_on_off": True}],
    }  # fmt: skip
    return Scenario.parse(tree, "test")


def digest(network: Network) -> str:
    value = hashlib.sha256()
    for array in (network.state.sub, network.state.conn, network.state.link, network.state.tx):
        value.update(array.tobytes())
    value.update(network.log_rows().tobytes())
    return value.hexdigest()


def run(seed: int, until_s: float, controller: str = "cubic") -> str:
    network = Network(busy(controller), seed=seed, log=True)
    network.advance(until_s)
    return digest(network)


def test_a_seed_fixes_the_result_and_seeds_differ() -> None:
    assert run(1, 5.0) == run(1, 5.0)
    assert run(1, 5.0) != run(2, 5.0)


def test_stopping_on_the_way_changes_nothing() -> None:
    network = Network(busy(), seed=1, log=True)
    for step in range(1, 501):
        network.advance(step / 100)
    assert digest(network) == run(1, 5.0)


def test_threads_change_nothing() -> None:
    seeds = range(4)
    alone = [run(seed, 3.0) for seed in seeds]
    found: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda seed=seed: found.update({seed: run(seed, 3.0)}))
        for seed in seeds
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[seed] for seed in seeds] == alone


def test_interpreted_runs_give_the_same_bits() -> None:
    code = "from tests.netsim.test_determinism import run; print(run(1, 1.0))"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == run(1, 1.0)


def test_kept_code_of_other_sources_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "_HERE", tmp_path)
    monkeypatch.setattr(jit, "_ROOT", tmp_path)
    inner, besides, mine = (tmp_path / f"{name}.py" for name in ("inner", "besides", "mine"))
    (tmp_path / "data").mkdir()
    schema = tmp_path / "data" / "schema.py"
    for path in (inner, besides, schema):
        path.write_text("a = 1")
    mine.write_text("def go():\n    return 1\n")
    names: dict[str, object] = {"SOURCES": ("besides.py",)}
    exec(compile(mine.read_text(), mine, "exec"), names)
    jit._forget_stale_code(names["go"])  # type: ignore[arg-type]
    kept = tmp_path / "__pycache__" / "mine.go-1.py311.1.nbc"
    other = tmp_path / "__pycache__" / "mine.went-1.py311.1.nbc"
    for path in (inner, besides, schema):
        for code in (kept, other):
            code.write_text("machine code")
        jit._forget_stale_code(names["go"])  # type: ignore[arg-type]
        assert kept.exists()
        path.write_text("a = 2")
        jit._forget_stale_code(names["go"])  # type: ignore[arg-type]
        assert not kept.exists()
        assert other.exists()
