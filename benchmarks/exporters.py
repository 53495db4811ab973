"""Our C beside m2cgen, emlearn, treelite/tl2cgen, ONNX Runtime and scikit-learn, on the same trees.

All compiled peers get the same rows in their own native type, the same compiler and the same
driver; rounds of all of them are interleaved and the shortest one counts, since the machines
that this runs on are shared. Answers are compared with scikit-learn's on the same integers:
random rows and, for every threshold, the rows just below, on and above it.

    python benchmarks/exporters.py --json
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from export.harness import find_compiler
from export.lower import lower
from export.params import Options
from export.source import Source
from export.targets import emit
from export.vectors import make_vectors
from features.spec import Feature

PEERS = ("m2cgen==0.10.0", "emlearn==0.23.2", "treelite==4.8.1", "tl2cgen==1.0.0")
COLUMNS = 18
SPECS = tuple(Feature(f"f{i}", "", -30000.0, 30000.0, 1, "benchmark", "") for i in range(COLUMNS))
ROWS = 1 << 15
MODELS = {"tree of depth 6": (1, 6), "tree of depth 10": (1, 10), "10 trees of depth 10": (10, 10)}

DRIVER = r"""
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
WRAPPER
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}
int main(int argc, char **argv)
{
	long n = atol(argv[1]), timed = atol(argv[2]), rounds = atol(argv[3]);
	int32_t *raw = malloc(n * COLUMNS * 4);
	ROW *rows = malloc(n * COLUMNS * sizeof(ROW));
	volatile long sink = 0;
	double best = 1e300;
	if (argc < 4 || fread(raw, 4 * COLUMNS, n, stdin) != (size_t)n)
		return 2;
	for (long i = 0; i < n * COLUMNS; i++)
		SET(rows[i], raw[i]);
	for (long i = 0; i < n; i++)
		putchar('0' + answer(rows + i * COLUMNS));
	for (long r = 0; r < rounds; r++) {
		double start = now(), each;
		long sum = 0;
		for (long i = 0; i < timed; i++)
			sum += answer(rows + i * COLUMNS);
		sink += sum;
		each = (now() - start) / timed;
		if (each < best)
			best = each;
	}
	fprintf(stderr, "%f", best);
	return 0;
}
"""
PLAIN = "#define SET(to, from) to = from\n"
WRAPPERS = {
    "cczoo if-else": '#define ROW int32_t\n#include "ours.h"\n' + PLAIN
    + "int answer(const ROW *x) { return ours_classify(x); }\n",
    "cczoo array": '#define ROW int32_t\n#include "ours_array.h"\n' + PLAIN
    + "int answer(const ROW *x) { return ours_classify(x); }\n",
    "m2cgen": '#define ROW double\n#include "m2cgen.h"\n' + PLAIN
    + "int answer(ROW *x) { double p[2]; score(x, p); return p[1] > p[0]; }\n",
    "emlearn": '#define ROW int16_t\n#include "emlearn.h"\n' + PLAIN
    + "int answer(const ROW *x) { return model_predict(x, COLUMNS); }\n",
    "tl2cgen": '#include "header.h"\n#define ROW union Entry\n'
    "#define SET(to, from) to.fvalue = from\n"
    "int answer(ROW *x) { double p[2] = {0}; predict(x, 0, p); return p[1] > p[0]; }\n",
}  # fmt: skip


def data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Integers within 16 bits, as emlearn needs them, and a class that many features decide."""
    rng = np.random.default_rng(seed)
    x = np.clip(np.round(rng.normal(0, 8000, (n, COLUMNS))), -30000, 30000)
    score = x[:, 0] + x[:, 1] * np.sin(x[:, 2] / 6000) + 0.5 * np.abs(x[:, 3]) - 0.3 * x[:, 4]
    return x, (score + rng.normal(0, 3000, n) > 0).astype(int)


def fitted(trees: int, depth: int) -> RandomForestClassifier:
    """A forest; of one tree it is that tree, which treelite knows only in this form."""
    x, y = data(6000, 1)
    alone = trees == 1
    forest = RandomForestClassifier(
        trees, max_depth=depth, bootstrap=not alone, max_features=None if alone else "sqrt",
        random_state=0,
    )  # fmt: skip
    return forest.fit(x, y)


def generate(out: Path, trees: int, depth: int) -> None:
    """Runs in a process that sees the peers: write their code, or why there is none."""
    forest = fitted(trees, depth)
    alone = forest.estimators_[0] if trees == 1 else forest
    failures = {}

    def m2cgen_code() -> None:
        import m2cgen

        (out / "m2cgen.h").write_text(m2cgen.export_to_c(alone))

    def emlearn_code() -> None:
        import emlearn

        model = emlearn.convert(alone, method="inline", dtype="int16_t")
        model.save(name="model", format="c", file=str(out / "emlearn.h"))

    def tl2cgen_code() -> None:
        import tl2cgen
        import treelite

        tl2cgen.generate_c_code(treelite.sklearn.import_model(forest), dirpath=str(out), params={})

    for name, make in (
        ("m2cgen", m2cgen_code),
        ("emlearn", emlearn_code),
        ("tl2cgen", tl2cgen_code),
    ):
        try:
            make()
        except Exception as error:
            failures[name] = f"{type(error).__name__}: {str(error)[:150]}"
    (out / "failures.json").write_text(json.dumps(failures))


def install(target: Path) -> None:
    """Peers into a folder of their own, which only the generating process sees."""
    uv = shutil.which("uv")
    pip = [uv, "pip", "install", "--python", sys.executable] if uv else [
        sys.executable, "-m", "pip", "install",
    ]  # fmt: skip
    subprocess.run([*pip, "-q", "--no-deps", "--target", str(target), *PEERS], check=True)


def compile_one(name: str, work: Path) -> tuple[Path | None, int, str]:
    unit = work / f"{name.replace(' ', '_')}.c"
    head = f"#include <stdint.h>\n#define COLUMNS {COLUMNS}\n"
    parts = DRIVER.replace("WRAPPER", WRAPPERS[name])
    unit.write_text(head + parts)
    program = unit.with_suffix("")
    extra = sorted(str(p) for p in work.glob("main*.c")) if name == "tl2cgen" else []
    command = [
        *find_compiler(),
        "-O2",
        "-w",
        "-I",
        str(work),
        str(unit),
        *extra,
        "-lm",
        "-o",
        str(program),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return None, 0, done.stderr.splitlines()[0][:200]
    size = subprocess.run(["size", str(program)], capture_output=True, text=True, check=True)
    return program, sum(map(int, size.stdout.splitlines()[1].split()[:2])), ""


def empty_program_bytes(work: Path) -> int:
    """Size of the driver with a model that always says 0, taken off everyone's."""
    WRAPPERS["nothing"] = (
        "#define ROW int32_t\n" + PLAIN + "int answer(const ROW *x) { return 0; }\n"
    )
    _, size, _ = compile_one("nothing", work)
    del WRAPPERS["nothing"]
    return size


def once(program: Path, rows: np.ndarray, timed: int, rounds: int) -> tuple[np.ndarray, float]:
    command = [str(program), str(len(rows)), str(timed), str(rounds)]
    done = subprocess.run(
        command, input=rows.astype(np.int32).tobytes(), capture_output=True, check=True
    )
    return np.frombuffer(done.stdout, dtype=np.uint8) - ord("0"), float(done.stderr)


def python_ns(predict, rows: np.ndarray, calls: int = 60) -> float:
    import time

    best = 1e300
    for i in range(calls):
        one = rows[i : i + 1]
        start = time.perf_counter_ns()
        predict(one)
        best = min(best, time.perf_counter_ns() - start)
    return float(best)


def measure(trees: int, depth: int, peers: Path, repeats: int) -> dict[str, dict]:
    forest = fitted(trees, depth)
    alone = forest.estimators_[0] if trees == 1 else forest
    form = lower(alone, SPECS)
    typical = data(ROWS, 2)[0].astype(np.int64)
    tried = make_vectors(form, typical[:2000], 0, 3).x
    tried = tried[(np.abs(tried) <= 30000).all(axis=1)]
    rows = np.concatenate([typical, tried])
    meant = alone.predict(rows.astype(np.float64))
    results: dict[str, dict] = {}
    with tempfile.TemporaryDirectory() as held:
        work = Path(held)
        seen = os.pathsep.join([str(Path(__file__).parents[1]), str(peers)])
        environment = {**os.environ, "PYTHONPATH": seen}
        generating = [
            sys.executable,
            "-W",
            "ignore",
            __file__,
            "--generate",
            held,
            str(trees),
            str(depth),
        ]
        subprocess.run(generating, env=environment, check=True, stdout=subprocess.DEVNULL)
        failures = json.loads((work / "failures.json").read_text())
        source = Source(
            "ours", "1", "benchmark", form.kind, SPECS, form.labels, 0.5, form, "", b"",
            np.zeros((0, COLUMNS)), np.zeros(0),
        )  # fmt: skip
        for layout, file in (("if-else", "ours.h"), ("array", "ours_array.h")):
            (work / file).write_bytes(emit("c", source, Options(layout=layout))["ours.h"])
        base = empty_program_bytes(work)
        programs = {}
        for name in WRAPPERS:
            program, size, error = compile_one(name, work)
            if program is None:
                results[name] = {"error": failures.get(name, error)}
                continue
            programs[name] = program
            classes, _ = once(program, rows, 1, 0)
            wrong = classes != meant
            results[name] = {
                "ns": 1e300,
                "bytes": size - base,
                "rows": len(rows),
                "wrong": int(wrong.sum()),
                "wrong_at_thresholds": int(wrong[ROWS + 2000 :].sum()),
            }
        for _ in range(repeats):
            for name, program in programs.items():
                results[name]["ns"] = min(results[name]["ns"], once(program, typical, ROWS, 8)[1])
    results["onnxruntime (Python)"] = onnx_result(alone, rows, meant)
    floats = typical[:200].astype(np.float64)
    results["scikit-learn (Python)"] = {
        "ns": python_ns(alone.predict, floats), "rows": len(rows), "wrong": 0,
    }  # fmt: skip
    return results


def onnx_result(model, rows: np.ndarray, meant: np.ndarray) -> dict:
    import onnxruntime

    from export.onnx_file import convert

    content = convert(model, SPECS, "peer", ("NSB", "SB"))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def ask(x: np.ndarray) -> np.ndarray:
        return session.run(None, {"features": x})[0]

    floats = rows.astype(np.float32)
    wrong = (ask(floats) > 0.5).astype(int) != meant
    return {
        "ns": python_ns(ask, floats, 400), "bytes": len(content), "rows": len(rows),
        "wrong": int(wrong.sum()), "wrong_at_thresholds": int(wrong[ROWS + 2000 :].sum()),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeats", type=int, default=12, help="interleaved rounds of each peer")
    parser.add_argument("--generate", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.generate:
        generate(Path(args.generate[0]), int(args.generate[1]), int(args.generate[2]))
        return 0
    report = {"load_before": os.getloadavg()[0], "models": {}}
    with tempfile.TemporaryDirectory() as held:
        try:
            install(Path(held))
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"peers can't be installed ({error}): ours alone is measured", file=sys.stderr)
        for title, (trees, depth) in MODELS.items():
            report["models"][title] = measure(trees, depth, Path(held), args.repeats)
    report["load_after"] = os.getloadavg()[0]
    if args.json:
        print(json.dumps(report, indent=2))
        return 0
    for title, results in report["models"].items():
        print(f"\n{title}\n{'':24}{'ns':>10}{'bytes':>9}{'wrong':>7}{'at thresholds':>15}  of rows")
        for name, r in results.items():
            if "error" in r:
                print(f"{name:24}{r['error']}")
                continue
            cells = f"{r['ns']:>10.1f}{r.get('bytes', 0):>9}{r['wrong']:>7}"
            print(f"{name:24}{cells}{r.get('wrong_at_thresholds', 0):>15}  {r['rows']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
