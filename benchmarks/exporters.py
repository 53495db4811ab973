"""Our C beside m2cgen, emlearn, treelite/tl2cgen, ONNX Runtime and scikit-learn, on the same trees.

All compiled peers get the same rows in their own native type, the same compiler with the same
flags and the same driver, the model in a unit of its own; rounds of all of them are interleaved
and the shortest one counts, since the machines that this runs on are shared. The rows fall into
all leaves evenly and are more than a branch predictor can learn. Answers are compared with the
source model's on integers: random rows and, for every threshold, rows just below, on and above it.
Peers live in an environment of their own below .bench/, made on first use with uv.

    python benchmarks/exporters.py [--quick] [--json] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PEERS = Path(__file__).parent / "peers"
sys.path[:0] = [str(ROOT), str(PEERS)]

import numpy as np  # noqa: E402
import trees  # noqa: E402
from uv import uv as find_uv  # noqa: E402

from export.params import Options  # noqa: E402
from export.source import Source  # noqa: E402
from export.targets import emit  # noqa: E402
from export.toolchain.harness import find_compiler  # noqa: E402

FLAGS = ["-std=gnu99", "-O2"]
COMPILE_CPU_S = 60
RANDOM_ROWS = 20_000
TIMED_ROWS = 1 << 15
ROUNDS = 6
PLAIN = "#define SET(to, from) (to) = (from)\n"
ANSWER = "#include <stdint.h>\n#include <string.h>\n"
WRAPPERS: dict[str, tuple[str, str]] = {
    "cczoo if-else": (
        f"#define ROW int32_t\n{PLAIN}",
        f'{ANSWER}#include "ours.h"\nint answer(int32_t *x) {{ return ours_classify(x); }}\n',
    ),
    "cczoo array": (
        f"#define ROW int32_t\n{PLAIN}",
        f'{ANSWER}#include "ours_array.h"\nint answer(int32_t *x) {{ return ours_classify(x); }}\n',
    ),
    "m2cgen": (
        f"#define ROW double\n{PLAIN}",
        f'{ANSWER}#include "m2cgen.h"\n'
        "int answer(double *x) { double p[2]; score(x, p); return p[1] > p[0]; }\n",
    ),
    "emlearn": (
        f"#define ROW DTYPE\n{PLAIN}",
        f'{ANSWER}#include "emlearn.h"\n'
        "int answer(DTYPE *x) { return model_predict(x, COLUMNS); }\n",
    ),
    "tl2cgen": (
        '#include "tl2cgen/header.h"\n#define ROW union Entry\n'
        "#define SET(to, from) (to).fvalue = (from)\n",
        f'{ANSWER}#include "tl2cgen/header.h"\n'
        "int answer(union Entry *x)\n"
        "{ double p[2] = {0}; predict(x, 0, p); return p[1] > p[0]; }\n",
    ),
}
"""Contestant -> (its row.h, its unit)."""


def peers_python() -> Path | None:
    """The peers' interpreter; None where there is no environment and none can be made."""
    home = ROOT / ".bench" / "exporters"
    python, stamp = home / "bin" / "python", home / "made-of"
    wanted = (PEERS / "requirements.txt").read_text()
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    uv = find_uv()
    if uv is None:
        print("no uv here, so there are no peers: ours alone", file=sys.stderr)
        return None
    try:
        subprocess.run(
            [uv, "venv", "-q", "--clear", "--python", sys.executable, str(home)], check=True
        )
        install = [uv, "pip", "install", "-q", "--python", str(python), "-r"]
        subprocess.run([*install, str(PEERS / "requirements.txt")], check=True)
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"peers can't be installed ({error}): ours alone", file=sys.stderr)
        return None
    stamp.write_text(wanted)
    return python


def generate(python: Path | None, case: trees.Case, work: Path) -> dict[str, str]:
    """Write everyone's code; what a peer can't do, by its name."""
    form = case.form
    source = Source(
        "ours", "1", "benchmark", form.kind, form.features, form.labels, 0.5, form, "", b"",
        np.zeros((0, case.columns)), np.zeros(0),
    )  # fmt: skip
    for layout, file in (("if-else", "ours.h"), ("array", "ours_array.h")):
        (work / file).write_bytes(emit("c", source, Options(layout=layout))["ours.h"])
    if python is None:
        return dict.fromkeys(("m2cgen", "emlearn", "tl2cgen"), "not installed")
    given = {"trees": trees.plain(form), "columns": case.columns, "dtype": case.dtype}
    command = [str(python), "-W", "ignore", str(PEERS / "generate.py"), str(work)]
    subprocess.run(command, input=json.dumps(given), text=True, check=True, capture_output=True)
    return json.loads((work / "failures.json").read_text())


def compile_one(name: str, case: trees.Case, work: Path) -> dict[str, Any]:
    """``program`` and ``bytes`` of the model's objects, or ``error``."""
    row, unit = WRAPPERS[name]
    folder = work / f"build {name}".replace(" ", "_")
    folder.mkdir()
    head = f"#include <stdint.h>\n#define COLUMNS {case.columns}\n#define DTYPE {case.dtype}\n"
    (folder / "row.h").write_text(head + row)
    (folder / "model.c").write_text(head + unit)
    own = sorted((work / "tl2cgen").glob("*.c")) if name == "tl2cgen" else []
    compiler = [*find_compiler(), *FLAGS, "-w", f"-I{folder}", f"-I{work}"]
    objects = []
    try:
        for i, file in enumerate([folder / "model.c", *own]):
            objects.append(str(folder / f"{i}.o"))
            compiling = [*compiler, "-c", str(file), "-o", objects[-1]]
            # CPU time, so that a busy machine doesn't decide who may take part.
            limited = ["prlimit", f"--cpu={COMPILE_CPU_S}", *compiling]
            subprocess.run(limited, check=True, capture_output=True, text=True)
        program = folder / "program"
        driver = [*compiler, str(PEERS / "driver.c"), *objects, "-lm", "-o", str(program)]
        subprocess.run(driver, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        if "Killed" in error.stderr or "CPU time" in error.stderr:
            return {"error": f"not compiled within {COMPILE_CPU_S} s of CPU time"}
        lines = [line for line in error.stderr.splitlines() if "error" in line]
        return {"error": (lines or [error.stderr])[0].split("error:")[-1].strip()[:120]}
    sizes = subprocess.run(["size", "-A", *objects], check=True, capture_output=True, text=True)
    sections = re.findall(r"^\.(?:text|rodata|data|bss)\S*\s+(\d+)", sizes.stdout, re.M)
    return {"program": program, "bytes": sum(map(int, sections))}


def ask(program: Path, rows: np.ndarray, timed: int, rounds: int) -> tuple[np.ndarray, float]:
    """Answers on all rows, and nanoseconds per row of the shortest round over the first ones."""
    command = [str(program), str(len(rows)), str(timed), str(rounds)]
    done = subprocess.run(
        command, input=rows.astype(np.int32).tobytes(), capture_output=True, check=True
    )
    return np.frombuffer(done.stdout, dtype=np.uint8) - ord("0"), float(done.stderr)


def judged(answers: np.ndarray, case: trees.Case) -> dict[str, int]:
    """Disagreements with the source model."""
    wrong = answers[TIMED_ROWS:] != case.meant[TIMED_ROWS:]
    return {
        "random_rows": RANDOM_ROWS,
        "random_wrong": int(wrong[:RANDOM_ROWS].sum()),
        "threshold_rows": int(len(wrong) - RANDOM_ROWS),
        "threshold_wrong": int(wrong[RANDOM_ROWS:].sum()),
    }


def measure(case: trees.Case, python: Path | None, repeats: int) -> dict[str, dict[str, Any]]:
    """Everyone's figures on one model."""
    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as held:
        work = Path(held)
        failures = generate(python, case, work)
        able = [name for name in WRAPPERS if name not in failures]
        with ThreadPoolExecutor(2) as pool:
            built = list(pool.map(lambda name: compile_one(name, case, work), able))
        programs = {}
        for name in WRAPPERS:
            results[name] = {"error": failures[name]} if name in failures else {}
        for name, made in zip(able, built, strict=True):
            if "error" in made:
                print(f"  {name}: {made['error']}", file=sys.stderr)
                results[name] = made
                continue
            programs[name] = made.pop("program")
            answers, _ = ask(programs[name], case.rows, 1, 0)
            results[name] = {"ns": 1e300, **made, **judged(answers, case)}
        # A forest's round over fewer rows fits between two interruptions as well.
        timed = case.rows[: TIMED_ROWS if len(case.form.trees) == 1 else TIMED_ROWS // 8]
        for _ in range(repeats):
            for name, program in programs.items():
                best = ask(program, timed, len(timed), ROUNDS)[1]
                results[name]["ns"] = min(results[name]["ns"], best)
    return {**results, **trees.in_python(case, lambda answers: judged(answers, case))}


def ratios(results: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What travels to other machines: time and size relative to our faster layout."""
    ours = {n: r for n, r in results.items() if n.startswith("cczoo") and "ns" in r}
    best = min(ours, key=lambda n: ours[n]["ns"])
    compiled = [n for n in WRAPPERS if not n.startswith("cczoo") and "ns" in results[n]]
    fastest = min(compiled, key=lambda n: results[n]["ns"], default=None)
    return {
        "ours": best,
        "fastest_peer": fastest,
        "fastest_peer_time": results[fastest]["ns"] / ours[best]["ns"] if fastest else None,
        "time": {n: r["ns"] / ours[best]["ns"] for n, r in results.items() if "ns" in r},
        "bytes": {n: r["bytes"] / ours[best]["bytes"] for n, r in results.items() if "bytes" in r},
    }


def rounded(value: Any) -> Any:
    """Floats with three significant digits, so that a file differs only where results do."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return float(f"{value:.3g}") if isinstance(value, float) else value


def show(report: dict[str, Any]) -> None:
    """Print the table."""
    for title, model in report["models"].items():
        print(f"\n{title}")
        print(f"{'':26}{'ns':>10}{'times ours':>12}{'bytes':>9}{'wrong':>7}{'at thresholds':>15}")
        for name, r in model["results"].items():
            if "error" in r:
                print(f"{name:26}{r['error']}")
                continue
            cells = f"{r['ns']:>10.1f}{model['ratios']['time'][name]:>12.2f}"
            cells += f"{r.get('bytes', '–'):>9}{r['random_wrong']:>7}{r['threshold_wrong']:>15}"
            print(f"{name:26}{cells}  of {r['random_rows']} and {r['threshold_rows']}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON alone on stdout")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, without the forest")
    parser.add_argument("--only", help="models whose title contains this")
    parser.add_argument("--out", type=Path, help="write the JSON here as well")
    args = parser.parse_args()
    python, wanted = peers_python(), (PEERS / "requirements.txt").read_text().split()
    report: dict[str, Any] = {
        "made_by": "make bench",
        "flags": FLAGS,
        "peers": wanted if python else [],
        "left_out": [] if python else [f"{peer}: not installed" for peer in wanted],
        "load_before": os.getloadavg()[0],
        "models": {},
    }
    for case in trees.cases(args.quick, RANDOM_ROWS, TIMED_ROWS):
        if args.only and args.only not in case.title:
            continue
        print(f"{case.title} ...", file=sys.stderr)
        results = measure(case, python, 3 if args.quick else 12)
        about = {"trees": len(case.form.trees), "nodes": sum(map(len, case.form.trees))}
        report["models"][case.title] = {**about, "results": results, "ratios": ratios(results)}
    report["load_after"] = os.getloadavg()[0]
    report = rounded(report)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(report, indent=1) + "\n")
    if args.json:
        print(json.dumps(report, indent=1))
    else:
        show(report)
    right = all(
        not r["random_wrong"] and not r["threshold_wrong"]
        for model in report["models"].values()
        for name, r in model["results"].items()
        if name.startswith("cczoo") and "error" not in r
    )
    slower = [
        title
        for title, model in report["models"].items()
        if (model["ratios"]["fastest_peer_time"] or 1.0) < 1.0
    ]
    for title in slower:
        print(f"slower than {report['models'][title]['ratios']['fastest_peer']}: {title}",
              file=sys.stderr)  # fmt: skip
    return 0 if right and not slower else 1


if __name__ == "__main__":
    sys.exit(main())
