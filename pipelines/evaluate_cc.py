"""Evaluate congestion controls and trained policies in the simulator, with a progress bar."""

from __future__ import annotations

import argparse

from data.errors import UserError
from data.netsim import runner
from data.netsim.cc import CONTROLS

EXAMPLE = f"""{runner.EXAMPLE}
  cczoo evaluate cc --scenario macc-fig4 --cc cubic,macc --seeds 4
  cczoo evaluate cc --scenario tcco-fig9a --cc bbr,reports/rl/tcco/seed-7 --delay 5"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the evaluation, with those of policies."""
    runner.add_arguments(parser)
    parser.add_argument(
        "--delay",
        type=float,
        default=0.0,
        metavar="MS",
        help="time from a policy's observation to its action's effect (default 0 ms)",
    )


def run(args: argparse.Namespace) -> int:
    """Run `data.netsim.runner.run` with a progress bar and with policies as controls."""
    from pipelines.controllers import listed, player
    from pipelines.output import progress

    if args.list:
        runner.print_catalogue({**runner.catalogue(), "policies": listed()}, args.json)
        return 0
    names = [name for part in args.cc.split(",") if (name := part.strip())]
    others = {n: player(n, args.delay) for n in names if n not in CONTROLS and n != "all"}
    if args.delay and not others:
        raise UserError("--delay: no policy among --cc: it is the delay of a policy's actions")
    if "all" in names and len(names) > 1:
        every = [name for name in CONTROLS if name != "agent"]
        names = list(dict.fromkeys(every + [name for name in names if name != "all"]))
    args.cc = ",".join(names)
    if not others:
        return runner.run(args, progress)
    from models.one_thread import one_thread

    # Once for all threads of --jobs: each would set back what another one needs.
    with one_thread():
        return runner.run(args, progress, others)
