"""Rows of a store's features stand in for a table: ``--store`` and ``--where`` of many commands.

What is selected is written to a table of its own for as long as the command runs, piece by piece:
only files whose day and labels fit are opened, and nothing is in memory as a whole.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from data.errors import UserError


def add_arguments(parser: argparse.ArgumentParser, what: str = "sbd") -> None:
    """Let a command that takes ``--features`` take a store in its place.

    Parameters
    ----------
    parser : ArgumentParser
    what : str
        The table of features that the command reads.
    """
    parser.add_argument(
        "--store", help="a store with features (`cczoo features --store`), in place of --features"
    )
    parser.add_argument(
        "--where",
        metavar="CONDITION",
        help="with --store: the rows to take, as in \"day >= 2026-11-01 and isp = 'x'\"",
    )
    parser.set_defaults(features_table=what)


@contextmanager
def opened(args: argparse.Namespace) -> Iterator[None]:
    """Have ``args.features`` name a table of what ``--store`` and ``--where`` select.

    Raises
    ------
    UserError
        When there is neither a table nor a store, or nothing in it fits.
    """
    if not hasattr(args, "features_table"):
        yield
        return
    reference = getattr(args, "reference_where", None)
    if args.store is None:
        if args.where is not None or reference is not None:
            raise UserError("--where: goes with --store: name the store to select from")
        if args.features is None and not hasattr(args, "to"):
            raise UserError("--features is missing: name a table, or a store with --store")
        yield
        return
    from data.place import scratch
    from pipelines.fleet.selected import write

    with scratch("selection") as folder:
        args.features = _table(args, folder / "selection.parquet", args.where, write)
        if reference is not None:
            args.reference = _table(args, folder / "reference.parquet", reference, write)
        yield


def _table(args: argparse.Namespace, path: Path, where: str | None, write: Any) -> Path:
    from data.fleet.address import address

    write(address(args.store), args.features_table, where, _settings(args), path)
    return path


def _settings(args: argparse.Namespace) -> Any:
    """Settings of windows that the command is about, if it is about some."""
    from features.params import SbdParams
    from features.sbd import table_of
    from pipelines.params import load

    model = getattr(args, "model", None)
    if model is not None and not str(model).startswith("rule:") and not hasattr(args, "training"):
        from pipelines.sources import open_model

        meta = open_model(model).meta
        if table_of(meta.family) is not None:
            args.features_table = table_of(meta.family)
            return SbdParams.parse(meta.feature_settings, f"{model}: feature_settings")
    return load(args.params).features.sbd if getattr(args, "params", None) else None
