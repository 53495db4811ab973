"""Distil a policy of the zoo into a tree that a kernel can run, and judge it by its return.

The tree learns from what its teacher would do where the tree itself has led (VIPER): rows count by
how much a wrong action would cost, and rounds, sizes and what the tree may see are chosen by the
return of validation episodes. The figures printed are of a test that nothing was chosen by.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.output import print_json

if TYPE_CHECKING:
    from models.distill.params import Distill
    from models.distill.rollout import Task
    from models.distill.search import Found

EXAMPLE = """examples:
  cczoo distill tcco --depth 10 --leaves 255
  cczoo distill macc-tcp --set rounds=5 --beside --json
  cczoo zoo release tcco-tree"""
SIZED = "cloning with weights"
"""Imitation whose sizes stand beside a tree that was searched for."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("name", help="policy of the zoo: tcco, nuwa-rl, macc-tcp or macc-aqm")
    parser.add_argument("--depth", type=int, help="comparisons on the longest path (default: 10)")
    parser.add_argument("--leaves", type=int, help="leaves at most (default: 255)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="another setting, such as rounds=5 or lanes=32; may be given again",
    )  # fmt: skip
    parser.add_argument(
        "--beside", action="store_true",
        help="also test plain cloning, DAgger without weights, smaller trees, and forests, boosted "
        "trees, networks and tables (takes as long again several times)",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, help="where the entry is written (default: models/trained/NAME-tree)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Distil, test, and write the entry."""
    from data import yaml_text
    from data.command_line import made_by
    from data.errors import UserError
    from data.place import check_own
    from models import store
    from models.distill.params import Distill

    given = {key: getattr(args, key) for key in ("depth", "leaves")}
    stated = {key: value for key, value in given.items() if value is not None}
    params = Distill.parse({**stated, **yaml_text.assigned(args.set)}, "distill")
    task = task_of(args.name)
    name = f"{args.name}-tree"
    out = args.out or store.TRAINED / name
    if out.name != name:
        raise UserError(f"--out {out}: the entry is called {name}: give a folder of that name")
    check_own(out, store.own_files, "cczoo distill")
    result, found = distilled(name, task, params, beside=args.beside)
    write(name, args.name, task, found, result, made_by(), out)
    result["out"] = str(out)
    if args.json:
        print_json(result)
    else:
        _print(result)
    return 0


def task_of(name: str) -> Task:
    """The teacher that a name stands for, with the others of its team.

    Raises
    ------
    UserError
        When there is none, or it is a tree already.
    """
    from data.errors import UserError
    from models import policies, store
    from models.closedloop import player
    from models.distill.rollout import Task
    from models.policies.in_tree import TreePolicy

    pair = next((p for p, both in policies.PAIRS.items() if name in both), None)
    if name in policies.PAIRS:
        raise UserError(f"{name}: {' and '.join(policies.PAIRS[name])}: distil them one by one")
    teacher = player(name).policy
    if isinstance(teacher, TreePolicy):
        raise UserError(f"{name}: a tree already: name a policy that was trained")
    there = pair is not None and set(policies.PAIRS[pair]) <= set(policies.kept(store.ZOO))
    team = player(pair).policy if there and pair is not None else teacher
    return Task(teacher, team)


def distilled(name: str, task: Task, params: Distill, beside: bool) -> tuple[dict[str, Any], Found]:
    """Distil and test; what ``--json`` prints, and the student."""
    from models.distill.judge import relative, tested
    from models.distill.search import distil

    found = distil(task, params, note)
    note("testing")
    teacher = tested(task, None, params)
    student = tested(task, found.chosen, params)
    result: dict[str, Any] = {
        "student": name,
        "teacher": task.teacher.name,
        "leaves": found.chosen.leaves,
        "depth": found.chosen.depth,
        "sees": found.chosen.view,
        "round": found.chosen.round + 1,
        "relative_return": relative(student, teacher).plain(),
        "returns": round(float(student.mean()), 6),
        "teacher_return": round(float(teacher.mean()), 6),
        "ns": _ns(name, task, found),
        "agreement": round(found.agreement, 5),
        "rows": found.rows,
        "seeds": params.seeds,
        "episodes": params.episodes,
        "settings": found.settings,
        "curve": [],
    }
    if beside:
        result["curve"] = _beside(name, task, params, found, teacher)
    return result, found


def _beside(name: str, task: Task, params: Distill, found: Found, teacher: Any) -> list[Any]:
    """Rows of smaller trees, and of students that were made in other ways."""
    from models.distill.judge import relative, tested
    from models.distill.search import distil

    students = {f"{name}, {size} leaves at most": one for size, one in found.sizes.items()}
    # A tree that was searched for has one size; imitations show what a size costs.
    searched = not students
    if searched:
        students[name] = found.chosen
    plain: dict[str, dict[str, Any]] = {
        "plain cloning": {"rounds": 1, "weights": "none"},
        SIZED: {"rounds": 1},
        "DAgger without weights": {"weights": "none"},
    }
    for title, changes in plain.items():
        note(title)
        other = distil(task, params.model_copy(update={**changes, "steered": 0}), note)
        students[title] = other.chosen
        if searched and title == SIZED:
            students |= {f"{title}, {n} leaves at most": one for n, one in other.sizes.items()}
    rows, known = [], {}
    for title, one in students.items():
        key = one.estimator.tree_.__getstate__()["nodes"].tobytes()
        if key not in known:
            known[key] = tested(task, one, params)
        rows.append(
            {"student": title, "leaves": one.leaves, "depth": one.depth,
             "relative_return": relative(known[key], teacher).plain(),
             "returns": round(float(known[key].mean()), 6)}
        )  # fmt: skip
    return [*rows, *_others(task, params, found, teacher)]


def _others(task: Task, params: Distill, found: Found, teacher: Any) -> list[Any]:
    """Rows of students of other families, which learn from the rows of the chosen tree."""
    import numpy as np

    from models.distill import others
    from models.distill.judge import relative, tested
    from models.distill.search import weights_of

    rows = []
    wanted, weights = found.whole.scores.argmax(axis=1), weights_of(found.whole, "gap")
    for title in others.OTHERS if len(np.unique(wanted)) > 1 else ():
        note(title)
        one = others.fit(title, found.whole.seen, wanted, weights, params.seed)
        returns = tested(task, one, params)
        rows.append(
            {"student": title, "size": one.size,
             "relative_return": relative(returns, teacher).plain(),
             "returns": round(float(returns.mean()), 6)}
        )  # fmt: skip
    return rows


def _ns(name: str, task: Task, found: Found) -> float | None:
    """Time of a decision of the tree's C on this machine; None if there is no compiler."""
    from export.policy.student import source_of_student
    from export.proof import prove

    source = source_of_student(name, task, found.chosen, found)
    report = prove(source, ["c"], "cczoo distill").report
    (target,) = report["targets"]
    spent = target.get("ns_per_decision")
    return None if spent is None else round(float(spent), 1)


def write(
    name: str, teacher: str, task: Task, found: Found, result: dict[str, Any], command: str,
    out: Path,
) -> None:  # fmt: skip
    """Write the entry of a student; one that was there is replaced whole."""
    from export.policy.student import described
    from models.distill import card

    timeless = {key: value for key, value in result.items() if key != "ns"}
    relative = result["relative_return"]
    headline = {
        "relative_return": relative["mean"],
        "relative_return_low": relative["low"],
        "leaves": result["leaves"],
        "depth": result["depth"],
    }
    columns = [f.name for f in task.deriver(1).features]
    used = sorted({int(i) for i in found.chosen.estimator.tree_.feature if i >= 0})
    facts = {
        "Looks at": ", ".join(columns[i] for i in used) or "nothing",
        "Learned from": f"{result['rows']} rows, round {result['round']}, sees {result['sees']}",
        "Does as its teacher": f"on {result['agreement']:.2%} of them, by weight",
        "Made by": f"`{command}`",
    }
    text = card.render(name, teacher, result, facts, result["curve"])
    metrics = {"headline": headline, "evaluated": [], "distilled": timeless}
    made = described(name, task, found, metrics, text, command)
    made.write(out.parent)


def note(text: str) -> None:
    """Show how far it is."""
    print(text, file=sys.stderr)


def _print(result: dict[str, Any]) -> None:
    relative = result["relative_return"]
    ns = "" if result["ns"] is None else f", {result['ns']:g} ns a decision"
    print(
        f"{result['out']}: {result['leaves']} leaves, depth {result['depth']}{ns}; return "
        f"{relative['mean']:+.2%} [{relative['low']:+.2%}, {relative['high']:+.2%}] against "
        f"{result['teacher']}, {result['seeds']} seeds"
    )
    for row in result["curve"]:
        one = row["relative_return"]
        shown = f"{one['mean']:+.2%} [{one['low']:+.2%}, {one['high']:+.2%}]"
        size = row["size"] if "size" in row else f"{row['leaves']} leaves"
        print(f"  {row['student']:<36} {size:>24}  {shown}")
    print(f"release it with: cczoo zoo release {result['student']}", file=sys.stderr)
