"""``cczoo features ... --store``: follow a store as the command line says."""

from __future__ import annotations

import argparse

from pipelines.fleet.follow import Followed, follow
from pipelines.fleet.kinds import Kind


def followed(args: argparse.Namespace, kind: Kind) -> Followed:
    """Compute what is new in ``args.store`` and fits ``args.where``."""
    from data.fleet.address import address
    from data.fleet.where import Where
    from pipelines.fleet.spread import spread_over

    return follow(address(args.store), kind, spread_over(args.jobs or None), Where(args.where))
