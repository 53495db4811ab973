"""Rank congestion controls on the same drawn scenarios: by power, in win rates, at their worst.

Over 200 scenarios in families: one flow on constant, stepping, trace-driven and lossy links,
beside CUBIC, and MPTCP over separate and shared bottlenecks. Finished runs are kept: a command
that was killed goes on where it was, and only what has changed is played again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.league.families import FAMILIES, GIVEN, STANDINGS, in_words

if TYPE_CHECKING:
    from pipelines.league.draw import Drawn
    from pipelines.league.standings import Place

EXAMPLE = """examples:
  cczoo league --out docs/league.md
  cczoo league --cc cubic,bbr,vegas --only constant,lossy --json
  cczoo league --cc cubic,tcco,registry:nuwa-rl@champion --delay 5 --json
  cczoo league --traces my-links/ --only own-traces
  cczoo league --list"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("--cc", default="all", metavar="NAME[,NAME]",
                        help="who plays, against each other (default all)")  # fmt: skip
    parser.add_argument("--only", metavar="FAMILY[,FAMILY]", help="play these families alone")
    parser.add_argument("--traces", type=Path, metavar="DIR",
                        help="capacity traces as a further family, own-traces")  # fmt: skip
    parser.add_argument("--scenario", default="", metavar="FILE[,FILE]",
                        help="scenario files, three seeds each, as a further family, "
                        "own-scenarios")  # fmt: skip
    parser.add_argument("--delay", type=float, default=0.0, metavar="MS",
                        help="time from a policy's observation to its action's effect "
                        "(default 0 ms)")  # fmt: skip
    parser.add_argument("--each", type=int, help="scenarios of each family (default 25)")
    parser.add_argument("--seed", type=int, help="of the drawing (default: the published list's)")
    parser.add_argument("--jobs", type=int, help="processes side by side (default: all cores)")
    parser.add_argument("--work", type=Path, default=Path("data/interim/league"),
                        help="where finished runs are kept (default: %(default)s)")  # fmt: skip
    parser.add_argument("--out", type=Path, help="Markdown page to write; a folder beside it")
    parser.add_argument("--list", action="store_true", help="show the families and their ranges")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Play, rank and print; write the page if asked for."""
    if args.list:
        return _list(args.json)
    from pipelines.league import capacity, fitting, given, kept, page, players, scores, standings
    from pipelines.league.draw import digest
    from pipelines.league.runs import play_all
    from pipelines.output import print_json

    if args.out is not None:
        given.check_out(args.out)
    seed, each, processes = _numbers(args)
    names = players.named(args.cc)
    entrants = players.entrants(names, args.delay)
    drawn = _drawn(args, seed, each)
    most = capacity.of_all(drawn)
    results = play_all(fitting.jobs(entrants, drawn), processes, args.work)
    rows = scores.rows(drawn, most, results, names)
    played: dict[str, list[str]] = {}
    for one in drawn:
        played.setdefault(one.family, []).append(one.name)
    # The reference plays for comparison too: its runs count if it is ranked.
    cpu_s = kept.total({key: results[key] for key in rows})
    head = kept.Header(command=given.command(args), seed=seed, each=each, digest=digest(drawn),
                       runs=len(rows), cpu_s=cpu_s)  # fmt: skip
    figures = kept.Figures(head, played, rows)
    ranking = standings.rankings(played, rows)
    for line in standings.unranked(played, rows):
        print(line, file=sys.stderr)
    if args.out is not None:
        from data.files import write_text
        from pipelines.league import figures as pictures

        folder = args.out.with_suffix("")
        kept.write(folder, figures)
        pictures.write(folder, figures, ranking)
        write_text(args.out, page.page(figures, ranking, pictures.written(folder, ranking)))
    if args.json:
        print_json([place.row() for places in ranking.values() for place in places])
        return 0
    for name in _shown(ranking):
        print(f"{STANDINGS.get(name, name)}:")
        print("\n".join(page.standing(ranking[name])))
    print(f"{len(rows)} runs in {len(drawn)} scenarios, {head.cpu_s:.0f} s of processor time; "
          f"list {head.digest[:16]}")  # fmt: skip
    return 0


def _shown(ranking: Mapping[str, Sequence[Place]]) -> list[str]:
    """Standings, then the families that are summed up in none of them."""
    apart = [name for name in ranking
             if name not in STANDINGS
             and not (name in FAMILIES and FAMILIES[name].standing in ranking)]  # fmt: skip
    return [name for name in STANDINGS if name in ranking] + apart


def _numbers(args: argparse.Namespace) -> tuple[int, int, int]:
    """Seed, scenarios of each family, processes."""
    from data.errors import UserError
    from pipelines.league import draw
    from pipelines.league.runs import cores

    seed = draw.SEED if args.seed is None else args.seed
    each = draw.EACH if args.each is None else args.each
    processes = cores() if args.jobs is None else args.jobs
    for name, value, least in (("seed", seed, 0), ("each", each, 1), ("jobs", processes, 1)):
        if not least <= value <= 1 << 31:
            raise UserError(f"--{name} {value}: give a whole number from {least} on")
    return seed, each, processes


def _drawn(args: argparse.Namespace, seed: int, each: int) -> list[Drawn]:
    """All scenarios that are played."""
    from data.errors import UserError
    from pipelines.league import draw, own

    given = {"own-traces": args.traces is not None, "own-scenarios": bool(args.scenario)}
    names = chosen(args.only) or [*FAMILIES, *(name for name, there in given.items() if there)]
    for name in names:
        if not given.get(name, True):
            raise UserError(f"--only {name}: give {GIVEN[name].rpartition(' ')[2]} too")
    drawn = draw.scenarios([name for name in names if name in FAMILIES], seed, each)
    if "own-traces" in names:
        traced, refused = own.of_traces(args.traces, args.work, seed, each)
        own.report(refused, args.traces)
        drawn += traced
    if "own-scenarios" in names:
        drawn += own.of_scenarios(args.scenario.split(","))
    return drawn


def chosen(only: str | None) -> list[str]:
    """Families of a list of names with commas between.

    Raises
    ------
    UserError
        For an unknown one, with the nearest.
    """
    from data.errors import unknown_name

    found = list(dict.fromkeys(filter(None, (part.strip() for part in (only or "").split(",")))))
    for name in found:
        if name not in FAMILIES and name not in GIVEN:
            raise unknown_name("family", name, [*FAMILIES, *GIVEN])
    return found


def _list(as_json: bool) -> int:
    """Print the families."""
    if as_json:
        from pipelines.output import print_json

        print_json({name: {"standing": one.standing, "says": one.says, "ranges": one.ranges}
                    for name, one in FAMILIES.items()})  # fmt: skip
        return 0
    for name, one in FAMILIES.items():
        print(f"{name} ({STANDINGS[one.standing]}): {one.says}\n    {in_words(one)}")
    return 0
