"""Write docs/fidelity.md: the simulator beside ns-3 on the same dumbbell.

``python benchmarks/ns3/compare.py --seeds 3 --duration 60`` after ``benchmarks/ns3/build.sh``.
Results of ns-3 are kept in ``benchmarks/ns3/build/results.json``, so that a run goes on where
the last one stopped; ``--cases`` chooses some.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from data.netsim import scenario
from data.netsim.metrics import simulate

HERE = Path(__file__).parent
PROGRAM = HERE / "build" / "dumbbell"
RESULTS = HERE / "build" / "results.json"
PAGE = HERE.parents[1] / "docs" / "fidelity.md"
NOTES = HERE / "notes.md"
CASES: dict[str, tuple[str, str, str]] = {
    "NewReno": ("TcpNewReno", "droptail", "reno"),
    "NewReno, RED": ("TcpNewReno", "red", "reno"),
    "NewReno, CoDel": ("TcpNewReno", "codel", "reno"),
    "NewReno, PIE": ("TcpNewReno", "pie", "reno"),
    "Westwood+": ("TcpWestwoodPlus", "droptail", "westwood"),
    "Vegas": ("TcpVegas", "droptail", "vegas"),
    "CUBIC": ("TcpCubic", "droptail", "cubic"),
    "BBR": ("TcpBbr", "droptail", "bbr"),
    "DCTCP": ("TcpDctcp", "droptail", "dctcp"),
}
"""name -> (ns-3's class, queue discipline, the simulator's control)."""
METRICS = ("goodput_mbps", "rtt_ms", "drop_rate", "queue_packets")


def of_ns3(case: str, seed: int, duration_s: float, loss: float) -> dict[str, float]:
    """One run of ns-3; adds its CPU time."""
    control, discipline, _ = CASES[case]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(
        [str(PROGRAM), f"--cc={control}", f"--queue-disc={discipline}", f"--seed={seed}",
         f"--duration={duration_s}", f"--loss={loss}"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    words = dict(word.split("=") for word in done.stdout.split())
    result = {key: float(value) for key, value in words.items()}
    return result | {"cpu_s": resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before}


def of_netsim(case: str, seed: int, duration_s: float, loss: float) -> dict[str, float]:
    """One run of the simulator."""
    _, discipline, control = CASES[case]
    settings = {"duration_s": duration_s, "links.core.loss": loss}
    spec = scenario.load("macc-fig4", settings)[discipline]
    run = simulate(spec, control, seed)
    core = float(run["loss_rate"]) - loss
    return {
        "goodput_mbps": run["goodput_mbps"],
        "rtt_ms": run["rtt_ms"],
        "drop_rate": max(0.0, core),
        "queue_packets": run["queue_packets"],
    }


def main() -> int:
    """Run what is missing, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--netsim-seeds", type=int, default=20)
    parser.add_argument("--duration", type=float, default=60.0)
    parser.add_argument("--cases", default=",".join(CASES).replace(", ", "; "))
    parser.add_argument("--losses", default="0.0003,0")
    args = parser.parse_args()
    if not PROGRAM.exists():
        print(f"{PROGRAM} is missing: run benchmarks/ns3/build.sh", file=sys.stderr)
        return 2
    kept: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    chosen = [name.replace("; ", ", ") for name in args.cases.split(",")]
    for loss in [float(word) for word in args.losses.split(",")]:
        for case in chosen:
            for seed in range(1, args.seeds + 1):
                key = f"{case}|{loss:g}|{args.duration:g}|{seed}"
                if key not in kept:
                    kept[key] = of_ns3(case, seed, args.duration, loss)
                    RESULTS.write_text(json.dumps(kept, indent=1), encoding="utf-8")
                    print(key, kept[key], flush=True)
    PAGE.write_text(_page(kept, args.netsim_seeds), encoding="utf-8")
    return 0


def _page(kept: dict[str, Any], netsim_seeds: int) -> str:
    groups: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    for key, run in kept.items():
        case, loss, duration, _ = key.split("|")
        groups.setdefault((case, loss, duration), []).append(run)
    lines = [
        NOTES.read_text(encoding="utf-8").rstrip(),
        "",
        "## Beside ns-3.37",
        "",
        "MA-CC's dumbbell (`macc-fig4`): each cell is ns-3 / netsim, mean over the seeds (their "
        "number in the second column); the ratio is of goodputs.",
        "",
        "| case | seeds | loss | s | goodput Mbps | ratio | RTT ms | drops % | queue packets |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (case, loss, duration), runs in groups.items():
        ours = [of_netsim(case, seed, float(duration), float(loss)) for seed in range(netsim_seeds)]
        a = {name: float(np.mean([run[name] for run in runs])) for name in METRICS}
        b = {name: float(np.mean([run[name] for run in ours])) for name in METRICS}
        lines.append(
            f"| {case} | {len(runs)} / {netsim_seeds} | {float(loss) * 100:g} % | {duration} "
            f"| {a['goodput_mbps']:.2f} / {b['goodput_mbps']:.2f} "
            f"| {b['goodput_mbps'] / a['goodput_mbps']:.2f} "
            f"| {a['rtt_ms']:.0f} / {b['rtt_ms']:.0f} "
            f"| {a['drop_rate'] * 100:.3f} / {b['drop_rate'] * 100:.3f} "
            f"| {a['queue_packets']:.1f} / {b['queue_packets']:.1f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
