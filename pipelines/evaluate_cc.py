"""Evaluate congestion controls in the simulator, with a progress bar."""

from __future__ import annotations

import argparse

from data.netsim import runner

EXAMPLE = runner.EXAMPLE
add_arguments = runner.add_arguments


def run(args: argparse.Namespace) -> int:
    """Run `data.netsim.runner.run` with a progress bar."""
    from pipelines.output import progress

    return runner.run(args, progress)
