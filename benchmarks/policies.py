"""Exported policies beside PyTorch: the same answers on thousands of decisions, and what one costs.

Each trained policy of the zoo decides again what it decided in recorded episodes, as ONNX on one
thread, as ONNX with 8-bit weights, in PyTorch without tracing, and as a program of integer steps,
which C and eBPF then prove and time; states are carried from one decision to the next. The trees
that were distilled of them are proved and timed as C beside. Prints JSON; status 1 if an error is
above 1e-5 of the largest score, a file reaches 1 MB (but TCCO's of all eight subflows, which is
larger), a tree isn't 1,000 times cheaper than its teacher's file, or the median is above its limit:
150 us for two subflows' Transformer, 60 us for an LSTM. ``empty_us`` is what a graph of no
operation takes on this machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

import numpy as np
import torch
from onnx import TensorProto, helper

from export.fixed import to_integers
from export.onnx.options import in_int8
from export.onnx.run import predict
from export.policy.flat import flat, narrowed
from export.policy.source import layout_of, onnx_file, scores, source
from export.program.made import with_program
from export.proof import prove
from export.source import source_of
from features.grid import on_grid
from features.whole import whole
from models import store
from models.one_thread import one_thread
from models.onnx_safe import open_session
from models.policies import entry
from models.policies.decisions import Recorded, recorded, side_by_side
from models.policies.observed import observed

POLICIES = {
    "tcco": ("tcco", None, None),
    "tcco, two subflows": ("tcco", 2, 150.0),
    "nuwa-rl": ("nuwa-rl", None, 60.0),
    "macc-tcp": ("macc-tcp", None, None),
    "macc-aqm": ("macc-aqm", None, None),
}
"""Row -> entry of the zoo, subflows (None: as trained), most microseconds of a decision."""
ERROR, MB, RATIO = 1e-5, 1e6, 1000.0
SEED = 21


def one(name: str, parts: int | None, limit_us: float | None, rows: int, timed: int) -> dict:
    policy = entry.of_entry(store.load(name))
    found = recorded(policy, rows, SEED)
    policy = narrowed(policy, parts)
    kept = found.there.shape[1] if parts is None else parts
    features = whole(observed(policy.environment, policy.kinds[0])[0])
    values = on_grid(found.values[:, :kept].reshape(-1, len(features)), features)
    decisions = Recorded(values.reshape(len(found.values), kept, -1), found.there[:, :kept])
    flat_rows = side_by_side(decisions.values, decisions.there, layout_of(policy).parts)
    meant = scores(policy, decisions)
    there = np.repeat(decisions.there, meant.shape[1] // layout_of(policy).parts, axis=1)
    content = onnx_file(policy)
    short = in_int8(content, name, policy.network)
    row: dict = {
        "decisions": len(flat_rows),
        "error": worst(predict(content, flat_rows, name), meant, there),
        "bytes": len(content),
        "onnx_us": spread(session_times(content, name, flat_rows[:timed])),
        "torch_us": spread(torch_times(policy, flat_rows[:timed])),
        "int8": {
            "bytes": len(short),
            "error": worst(predict(short, flat_rows, name), meant, there),
            "same_choice": same(predict(short, flat_rows, name), meant, there, layout_of(policy)),
            "onnx_us": spread(session_times(short, name, flat_rows[:timed])),
        },
        "integers": integers(policy, decisions, meant, there),
        "tree_ns": tree_ns(name),
    }
    if row["tree_ns"]:
        row["tree_is_cheaper"] = 1e3 * row["onnx_us"]["p50"] / row["tree_ns"]
    missed = []
    if not row["error"] <= ERROR:
        missed.append(f"error above {ERROR:g}")
    if limit_us is not None and row["onnx_us"]["p50"] > limit_us:
        missed.append(f"median above {limit_us:g} us")
    if (row["bytes"] >= MB and name != "tcco") or (row["bytes"] >= MB and parts == 2):
        missed.append("1 MB or more")
    if row.get("tree_is_cheaper", RATIO) < RATIO:
        missed.append(f"its tree is less than {RATIO:g} times cheaper")
    return row | {"missed": missed}


def integers(policy, decisions, meant, there) -> dict:
    """What the program of steps answers, and what it costs in C and, for root, in the kernel."""
    made = with_program(source(policy, "1", decisions))
    form = made.form
    found = form.evaluate(to_integers(made.values, made.features)).scores / 2.0**form.places
    row = {
        "steps": len(form.steps),
        "memory_bytes": 8 * form.size,
        "remembered_bytes": 4 * form.remembered,
        "error": worst(found, meant, there),
        "same_choice": same(found, meant, there, layout_of(policy)),
    }
    report = prove(made, ["c", "bpf"], "benchmarks/policies.py").report
    for target in report["targets"]:
        row[target["target"]] = {
            key: target[key]
            for key in ("vectors", "mismatches", "ns_per_decision", "verified_insns", "missing")
            if key in target
        }
    return row


def worst(found: np.ndarray, meant: np.ndarray, there: np.ndarray) -> float:
    return float((np.abs(found - meant) * there).max() / np.abs(meant * there).max())


def same(found: np.ndarray, meant: np.ndarray, there: np.ndarray, layout) -> float:
    """Share of parts that are there whose best action is the same."""
    shape = (len(found), layout.parts, -1)
    alike = found.reshape(shape).argmax(2) == meant.reshape(shape).argmax(2)
    return float(alike[there.reshape(shape)[..., 0]].mean())


def session_times(content: bytes, name: str, rows: np.ndarray) -> list[float]:
    session = open_session(content, name)
    names = [one.name for one in session.get_inputs()]
    widths = [one.shape[-1] for one in session.get_inputs()][1:]
    states = [np.zeros((1, width), np.float32) for width in widths]
    spent = []
    for row in rows.astype(np.float32)[:, None]:
        begun = time.perf_counter_ns()
        _, *states = session.run(None, dict(zip(names, (row, *states), strict=True)))
        spent.append((time.perf_counter_ns() - begun) / 1e3)
    return spent


def torch_times(policy, rows: np.ndarray) -> list[float]:
    network = flat(policy).float()
    states = [torch.zeros(1, width) for width in network.widths()]
    spent = []
    with one_thread(), torch.no_grad():
        for row in torch.from_numpy(rows.astype(np.float32))[:, None]:
            begun = time.perf_counter_ns()
            _, *states = network(row, *states)
            spent.append((time.perf_counter_ns() - begun) / 1e3)
    return spent


def spread(spent: list[float]) -> dict[str, float]:
    return {"p50": float(np.median(spent)), "p99": float(np.percentile(spent, 99))}


def empty_us() -> float:
    """Median time of a graph that copies one number."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1]) for name in ("x", "y")]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])], "empty", *[[e] for e in ends]
    )
    content = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 18)])
    session = open_session(content.SerializeToString(), "empty")
    spent, given = [], {"x": np.zeros((1, 1), np.float32)}
    for _ in range(2000):
        begun = time.perf_counter_ns()
        session.run(None, given)
        spent.append((time.perf_counter_ns() - begun) / 1e3)
    return float(np.median(spent))


def tree_ns(name: str) -> float | None:
    """Time of the distilled tree's decision in C."""
    if f"{name}-tree" not in store.folders():
        return None
    tree = prove(source_of(store.load(f"{name}-tree")), ["c"], "benchmarks/policies.py").report
    return tree["targets"][0]["ns_per_decision"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--decisions", type=int, default=10_000, help="recorded ones of each")
    parser.add_argument("--timed", type=int, default=2_000, help="of which so many are timed")
    parser.add_argument("--json", action="store_true", help="as always")
    args = parser.parse_args()
    found = {
        row: one(*wanted, args.decisions, min(args.timed, args.decisions))
        for row, wanted in POLICIES.items()
    }
    print(json.dumps({"empty_us": empty_us(), "policies": found, "left_out": []}))
    return int(any(row["missed"] for row in found.values()))


if __name__ == "__main__":
    sys.exit(main())
