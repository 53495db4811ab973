"""Learn from logged decisions alone, and play what was learned beside who made the logs.

Three steps, each of which keeps what is finished: ``learn`` trains every method with every seed,
``play`` puts them into scenarios of the league and into test episodes of the environment, ``tune``
trains online from each network until it does as well as a training from nothing. Without a step
the page is written of what is kept.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.standalone import answer, command_parser

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLE = """\
examples:
  python -m pipelines.studies.offline.command learn,play,tune --decisions data/processed/decisions
  python -m pipelines.studies.offline.command play --only bc,iql --json
  python -m pipelines.studies.offline.command      # the page alone, of what is kept"""

DECISIONS, TRAINED = Path("data/processed/decisions-sample"), Path("reports/offline-agents")

VALIDATIONS = 6
"""How often an online training from nothing is validated."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns 2 if the user's input is wrong, 1 if it was stopped."""
    return answer(_parser(), run, argv, resumes=True)


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("pipelines.studies.offline.command", __doc__, EXAMPLE)
    parser.add_argument("steps", nargs="?", default="",
                        help="of learn, play and tune, with commas between")  # fmt: skip
    parser.add_argument("--decisions", type=Path, default=DECISIONS,
                        help="the open data set or a sample (default: %(default)s)")  # fmt: skip
    parser.add_argument("--seeds", type=int, default=5, help="of each method (default 5)")
    parser.add_argument("--only", default="", metavar="METHOD[,METHOD]",
                        help="these methods alone, into another --out (default: all)")  # fmt: skip
    parser.add_argument("--updates", type=int, default=600,
                        help="batches of a training from logs (default %(default)s)")  # fmt: skip
    parser.add_argument("--every", type=int, default=12, metavar="N",
                        help="play one in N of the league's scenarios (default 12)")  # fmt: skip
    parser.add_argument("--episodes", type=int, default=32, help="of the test (default 32)")
    parser.add_argument("--tune-steps", type=int, default=6_000,
                        help="of a training from nothing (default %(default)s)")  # fmt: skip
    parser.add_argument("--trained", type=Path, default=TRAINED,
                        help="trainings and finished runs (default: %(default)s)")  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("docs/offline-agents.md"),
                        help="page; a folder beside it (default: %(default)s)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser


def run(args: argparse.Namespace) -> int:
    """Do the steps, write the page, print."""
    from data.errors import UserError, unknown_name
    from data.files import write_text
    from pipelines.output import print_json
    from pipelines.studies.offline import drawing, page, results

    for option in ("seeds", "updates", "every", "episodes", "tune_steps"):
        if getattr(args, option) < 1:
            raise UserError(f"--{option.replace('_', '-')}: give a whole number of at least 1")
    names = _methods(args.only)
    folder = args.out.with_suffix("")
    steps = [one for one in args.steps.split(",") if one]
    for step in steps:
        if step not in STEPS:
            raise unknown_name("step", step, STEPS)
    for step in steps:
        if not STEPS[step](args, names, folder):
            print("stopped: the same command goes on", file=sys.stderr)
            return 1
    if steps and steps[-1] == "learn":
        return 0
    study = results.read(folder)
    drawing.write(folder, study)
    write_text(args.out, page.page(study, folder.name))
    if args.json:
        print_json(study.plain())
        return 0
    print("\n".join(study.sentences))
    print(f"→ {args.out}")
    return 0


def _methods(only: str) -> list[str]:
    from data.errors import unknown_name
    from models.offline.methods import METHODS

    names = [one for one in only.split(",") if one] or list(METHODS)
    for name in names:
        if name not in METHODS:
            raise unknown_name("method", name, METHODS)
    return names


def _learn(args: argparse.Namespace, names: list[str], folder: Path) -> bool:
    from pipelines.studies.offline import kept
    from pipelines.studies.offline.learn import learned

    found = learned(names, args.seeds, args.updates, args.decisions, args.trained)
    kept.LEARNED.write(folder, found)
    for name, costs in found.costs.items():
        cpu_s, peak_mb = sum(one.cpu_s for one in costs), max(one.peak_mb for one in costs)
        print(
            f"{name}: {cpu_s / len(costs):.0f} CPU seconds a seed, peak of memory {peak_mb:.0f} MB",
            file=sys.stderr,
        )
    return True


def _play(args: argparse.Namespace, names: list[str], folder: Path) -> bool:
    import polars as pl

    from data.files import write_file
    from pipelines.studies.offline import kept, play

    learned = kept.LEARNED.read(folder)
    folders, work = _folders(args, names, learned.seeds), args.trained / "runs"
    drawn = play.scenarios(args.every)
    runs = pl.concat([play.of_league(folders, drawn, work), play.published(drawn)])
    write_file(folder / kept.RUNS, runs.write_parquet)
    returns = play.of_environment(folders, learned.best("multipath"), args.episodes, work)
    played = {"every": args.every, "sampler": kept.SAMPLER, "returns": returns}
    kept.PLAYED.write(folder, played)
    return True


def _tune(args: argparse.Namespace, names: list[str], folder: Path) -> bool:
    from pipelines.studies.offline import kept, tune

    folders = _folders(args, names, kept.LEARNED.read(folder).seeds)
    every = max(1, args.tune_steps // VALIDATIONS)
    found = tune.tuned(folders, args.trained / "tuned", args.tune_steps, every)
    if found is not None:
        kept.TUNING.write(folder, found)
    return found is not None


def _folders(args: argparse.Namespace, names: list[str], seeds: list[int]) -> Any:
    """Trainings from logs: method -> seed -> folder."""
    from data.errors import UserError
    from models.rl import checkpoint

    found = {name: {seed: args.trained / name / f"seed-{seed}" for seed in seeds} for name in names}
    for path in (path for mine in found.values() for path in mine.values()):
        if checkpoint.latest(path) is None:
            raise UserError(f"{path}: no training: learn first")
    return found


STEPS: dict[str, Callable[[argparse.Namespace, list[str], Path], bool]] = {
    "learn": _learn,
    "play": _play,
    "tune": _tune,
}

if __name__ == "__main__":
    sys.exit(main())
