"""Evaluate a classifier on a table of features, or congestion controls in the simulator."""

from __future__ import annotations

import argparse
import importlib

from pipelines import names

TASKS: dict[str, tuple[str, str]] = {
    "sbd": ("pipelines.sbd.evaluate", "a classifier or rule on a table of features"),
    "cc": ("pipelines.evaluate_cc", "congestion controls on simulated scenarios, over seeds"),
}
"""name -> (module with ``add_arguments``, ``run`` and ``EXAMPLE``, one line of help)."""

EXAMPLE = """examples:
  cczoo evaluate sbd --model smartsbd-plus --features data/processed/sbd.parquet --json
  cczoo evaluate cc --scenario tcco-fig9-loss --cc cubic,bbr --seeds 10 --json"""


class _Lazy(names.Parser):
    """Imports a task's module when its arguments are parsed, so that help stays quick."""

    def __init__(self, *args: object, module: str = "", **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.module = module

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """Add the task's own arguments, then parse."""
        if self.module == TASKS["cc"][0]:
            names.check_simulation(args)
        task = importlib.import_module(self.module)
        task.add_arguments(self)
        self.epilog = task.EXAMPLE
        return super().parse_known_args(args, namespace)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    tasks = parser.add_subparsers(
        dest="task", required=True, metavar="|".join(TASKS), parser_class=_Lazy
    )
    for name, (module, line) in TASKS.items():
        tasks.add_parser(
            name,
            help=line,
            description=line,
            module=module,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )


def run(args: argparse.Namespace) -> int:
    """Hand over to the task."""
    module, _ = TASKS[args.task]
    code: int = importlib.import_module(module).run(args)
    return code
