"""Posteriors of qos-bn beside pgmpy's and pyAgrum's, and what an answer costs.

Every value of every evidence of up to two variables is asked of the network in the zoo: by sums
over its joint distribution (models/qos/network.py), by pgmpy's variable elimination, and by pyAgrum
in an environment of its own. Prints JSON; status 1 if an answer differs by more than 1e-9, advice
takes more than 50 ms, or a look-up in the exported C table more than 100 ns.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.peers.uv import uv
from export.proof import prove
from export.source import source_of
from models import store
from models.qos import advice
from models.qos.network import Network
from models.qos.variables import VARIABLES

PYAGRUM = "pyagrum==3.3.1"
CLOSE = 1e-9
COLD_MS = 50.0
LOOKUP_NS = 100.0
PEER = """
import json, sys, time
import pyagrum as gum
tables, questions = json.load(open(sys.argv[1]))
bn = gum.BayesNet()
for name, one in tables.items():
    bn.add(gum.LabelizedVariable(name, name, len(one["table"])))
for name, one in tables.items():
    for parent in one["parents"]:
        bn.addArc(parent, name)
import numpy as np
for name, one in tables.items():
    table = np.array(one["table"])
    cpt = bn.cpt(name)
    order = list(reversed(cpt.names))  # axes of its array
    mine = [name, *one["parents"]]
    cpt[:] = np.ascontiguousarray(table.transpose([mine.index(v) for v in order]))
engine = gum.LazyPropagation(bn)
begun = time.perf_counter()
found = []
for given in questions:
    engine.setEvidence(given)
    engine.makeInference()
    found.append({n: engine.posterior(n).tolist() for n in tables if n not in given})
print(json.dumps({"answers": found, "ms": 1e3 * (time.perf_counter() - begun) / len(questions)}))
"""


def questions(cardinality: dict[str, int]) -> list[dict[str, int]]:
    """Every value of every one and every two variables."""
    found: list[dict[str, int]] = [{}]
    for count in (1, 2):
        for names in itertools.combinations(VARIABLES, count):
            ranges = [range(cardinality[name]) for name in names]
            found += [
                dict(zip(names, values, strict=True)) for values in itertools.product(*ranges)
            ]
    return found


def pgmpy_answers(network: Network, asked: list[dict[str, int]]) -> list[dict[str, list[float]]]:
    with warnings.catch_warnings():
        # pgmpy 1.1.2 imports its own deprecated modules for inference; nothing else here does.
        warnings.simplefilter("ignore", FutureWarning)
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.inference import VariableElimination
        from pgmpy.models import DiscreteBayesianNetwork

    edges = [(p, name) for name, (parents, _) in network.tables.items() for p in parents]
    model = DiscreteBayesianNetwork(edges)
    for name, (parents, table) in network.tables.items():
        sizes = list(table.shape[1:])
        flat = table.reshape(table.shape[0], -1)
        model.add_cpds(TabularCPD(name, table.shape[0], flat, list(parents), sizes))
    engine = VariableElimination(model)
    return [
        {
            name: engine.query([name], evidence=given, show_progress=False).values.tolist()
            for name in VARIABLES
            if name not in given
        }
        for given in asked
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pgmpy", type=int, default=40, help="questions that pgmpy is asked")
    parser.add_argument("--json", action="store_true", help="as always")
    args = parser.parse_args()
    content = store.load("qos-bn").read_json("network.json")
    tables = {n: (tuple(one["parents"]), np.array(one["table"])) for n, one in content.items()}
    # Twelve decimals don't add up to 1 exactly, and pgmpy insists.
    network = Network({n: (p, t / t.sum(axis=0)) for n, (p, t) in tables.items()})
    exact = {
        name: {"parents": list(p), "table": t.tolist()} for name, (p, t) in network.tables.items()
    }
    asked = questions(network.cardinality)
    begun = time.perf_counter()
    own = [
        {name: network.posterior([name], given).tolist() for name in VARIABLES if name not in given}
        for given in asked
    ]
    result = {
        "questions": len(asked),
        "own_ms": 1e3 * (time.perf_counter() - begun) / len(asked),
        "left_out": [],
    }
    few = asked[:: max(1, len(asked) // args.pgmpy)]
    begun = time.perf_counter()
    theirs = pgmpy_answers(network, few)
    result["pgmpy_ms"] = 1e3 * (time.perf_counter() - begun) / len(few)
    result["pgmpy_largest_difference"] = worst(own[:: max(1, len(asked) // args.pgmpy)], theirs)
    tool = uv()
    if tool is None:
        result["left_out"].append("pyagrum: no uv here")
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "network.json"
            path.write_text(json.dumps([exact, asked]))
            command = [tool, "run", "--no-project", "--quiet", "--with", PYAGRUM, "python", "-c"]
            done = subprocess.run(
                [*command, PEER, str(path)], capture_output=True, text=True, check=False
            )
        if done.returncode:
            result["left_out"].append(f"pyagrum: {done.stderr.strip()[-200:]}")
        else:
            peer = json.loads(done.stdout)
            result["pyagrum_ms"] = peer["ms"]
            result["pyagrum_largest_difference"] = worst(own, peer["answers"])
    result["advice_cold_ms"] = cold_ms()
    result["lookup_ns"] = lookup_ns()
    print(json.dumps(result, indent=1))
    differences = [v for k, v in result.items() if k.endswith("difference")]
    slow = result["advice_cold_ms"] > COLD_MS or result["lookup_ns"] > LOOKUP_NS
    return int(max(differences) > CLOSE or slow)


def worst(own: list[dict[str, list[float]]], theirs: list[dict[str, list[float]]]) -> float:
    return max(
        abs(a - b)
        for one, other in zip(own, theirs, strict=True)
        for name, values in one.items()
        for a, b in zip(values, other[name], strict=True)
    )


def lookup_ns() -> float:
    """A decision of the exported C table, which must answer as the model on every vector."""
    report = prove(source_of(store.load("qos-bn")), ["c"], "cczoo export qos-bn -t c").report
    if not report["ok"]:
        raise SystemExit(f"qos-bn in C: {report['problems']}")
    return float(report["targets"][0]["ns_per_decision"])


def cold_ms() -> float:
    """Import, read and answer in a fresh process; the best of five, in CPU time."""
    program = (
        "import time; t = time.process_time()\n"
        "from models.qos import advice\n"
        "advice.load().ranked({'psnr': 'good', 'buffer': 'high'}, {'bw1': 'low'})\n"
        "print(1e3 * (time.process_time() - t))"
    )
    root = Path(advice.__file__).resolve().parents[2]
    runs = [
        float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                             check=True, cwd=root).stdout)
        for _ in range(5)
    ]  # fmt: skip
    return min(runs)


if __name__ == "__main__":
    sys.exit(main())
