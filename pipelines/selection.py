"""Rows of a store stand in for a table or a directory: ``--store``, ``--events``, ``--where``.

What is selected is written to a table, or to a directory of events, of its own for as long as the
command runs, piece by piece: only files whose day and labels fit are opened, and nothing is in
memory as a whole.
"""

from __future__ import annotations

import argparse
import re
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


def add_events(parser: argparse.ArgumentParser) -> None:
    """Let a command that takes ``--events`` take a part of a store there."""
    parser.add_argument(
        "--where",
        metavar="CONDITION",
        help='with a store as --events: the connections to take, as in "day >= 2026-11-01"',
    )
    parser.set_defaults(events_selected=True)


@contextmanager
def opened(args: argparse.Namespace) -> Iterator[None]:
    """Have ``args.features`` and ``args.events`` name what is selected of a store.

    Raises
    ------
    UserError
        When there is neither a table nor a store, or nothing in it fits.
    """
    from data.place import scratch

    store = _store_of_events(args)
    if store is None:
        with _features(args):
            yield
        return
    with scratch("events") as folder, _features(args), _renamed(folder, store):
        args.events = _directory(args, store, folder / "events")
        yield


@contextmanager
def _features(args: argparse.Namespace) -> Iterator[None]:
    """Have ``args.features`` name a table of what ``--store`` and ``--where`` select."""
    if not hasattr(args, "features_table"):
        if "events_selected" in args and args.where and _store_of_events(args) is None:
            raise UserError("--where: goes with a store as --events")
        yield
        return
    reference = getattr(args, "reference_where", None)
    if args.store is None:
        if (args.where is not None or reference is not None) and _store_of_events(args) is None:
            raise UserError("--where: goes with --store: name the store to select from")
        if args.features is None and not hasattr(args, "to"):
            raise UserError("--features is missing: name a table, or a store with --store")
        yield
        return
    from data.place import scratch
    from pipelines.fleet.selected import write

    with scratch("selection") as folder, _renamed(folder, args.store):
        args.features = _table(args, folder / "selection.parquet", args.where, write)
        if reference is not None:
            args.reference = _table(args, folder / "reference.parquet", reference, write)
        yield


@contextmanager
def _renamed(folder: Path, store: str) -> Iterator[None]:
    """Have messages name the store, and not a copy that is gone when they are read."""
    try:
        yield
    except UserError as error:
        text = re.sub(rf"{re.escape(str(folder))}[\w/.-]*", store, str(error))
        raise UserError(text) from None


def _store_of_events(args: argparse.Namespace) -> str | None:
    """Address of the store that ``--events`` names, if it names one.

    Rules judge by events: where features are of a store, they take them from there.
    """
    events, store = getattr(args, "events", None), getattr(args, "store", None)
    if "events" not in args or not isinstance(events, Path | None):
        return None
    if events is None:
        by_rule = str(getattr(args, "model", "")).startswith("rule:")
        return store if by_rule and isinstance(store, str) else None
    # A path has put the two slashes of a URL together.
    if (url := re.fullmatch(r"([a-z][a-z0-9]+):/([^/].*)", str(events))) and not events.exists():
        return f"{url[1]}://{url[2]}"
    return str(events) if (events / "logs" / "_delta_log").is_dir() else None


def _directory(args: argparse.Namespace, store: str, out: Path) -> Path:
    """A directory with the connections of a store."""
    from data.fleet.address import address
    from data.fleet.directory import write_directory
    from data.fleet.select import known_columns, open_logs
    from data.fleet.where import Where

    where = Where(getattr(args, "where", None))
    # With features of a store, the condition may be on columns that only these have.
    known = set(known_columns(open_logs(address(store))))
    if hasattr(args, "features_table") and args.store and not set(where.columns) <= known:
        where = Where()
    write_directory(address(store), where, out)
    return out


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
