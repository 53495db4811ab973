"""The ``cczoo`` command: a dict of subcommands, each imported only when it is called."""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from data.errors import UserError, unknown_name
from data.place import check_writable, unwritable
from pipelines import extras, names, selection

SUBCOMMANDS: dict[str, tuple[str, str]] = {
    "lab": ("pipelines.lab", "collect labelled MPTCP kernel logs over emulated paths (root)"),
    "ingest": ("pipelines.ingest", "read kernel logs and traces into Parquet tables"),
    "store": ("pipelines.store", "list, check, compact and forget what a growing store holds"),
    "features": ("pipelines.featurize", "compute features from ingested logs"),
    "conditions": ("pipelines.sbd.conditions", "find groups of path conditions, or assign to them"),
    "train": ("pipelines.train", "train, compare and track classifiers"),
    "distill": ("pipelines.distill", "make a tree of a trained policy, for a kernel to run"),
    "evaluate": ("pipelines.evaluate", "evaluate a model on a table of features"),
    "league": ("pipelines.league.command", "rank congestion controls on the same drawn scenarios"),
    "drift": ("pipelines.drift", "new logs against a training set: keep the model, or train again"),
    "predict": ("pipelines.sbd.predict", "which subflows share a bottleneck, and which to couple"),
    "offline": ("pipelines.offline.command", "what logs cover, and what they say of an agent"),
    "qos": ("pipelines.qos.command", "streams over two paths: settings that make a quality likely"),
    "export": ("pipelines.export", "turn a model into code or a file that a kernel can run"),
    "verify": ("pipelines.verify", "prove that an exported bundle equals its model"),
    "promote": ("pipelines.promote", "make a registered model the champion, if the gates pass"),
    "rollback": ("pipelines.rollback", "make the previous champion the champion again"),
    "zoo": ("pipelines.zoo.command", "list, check, prove and release the repository's models"),
    "report": ("pipelines.report", "write the offline HTML report"),
}
"""Name -> (module with ``add_arguments(parser)`` and ``run(args) -> int``, one line of help)."""

REFUSED = {
    errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EPERM, errno.EROFS,
}  # fmt: skip
"""Errors of a write for which there is no room, no permission or no working disk."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; ``sys.argv`` by default.

    Returns
    -------
    int
        0 done, 1 the work failed, 2 the user's input is wrong.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # The name of a file may hold bytes that are no text.
            stream.reconfigure(errors="backslashreplace")
    _use_the_experiments_own_code(arguments)
    logging.basicConfig(
        level=os.environ.get("CCZOO_LOG", "INFO").upper(),
        format="%(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    if not arguments or arguments[0] in {"-h", "--help"}:
        _print_overview()
        return 0 if arguments else 2
    if arguments[0] == "--version":
        from importlib.metadata import version

        print(f"cczoo {version('cczoo')}")
        return 0
    if arguments[0] in {"train", "evaluate"}:
        from pipelines import old_spellings

        arguments = old_spellings.translated(arguments[0], arguments[1:])
        if argv is None:
            # Files that are made name the command that made them.
            sys.argv[1:] = arguments
    name, rest = arguments[0], arguments[1:]
    try:
        if name not in SUBCOMMANDS:
            raise unknown_name("subcommand", name, SUBCOMMANDS)
        module_name, help_line = SUBCOMMANDS[name]
        module = importlib.import_module(module_name)
        parser = names.Parser(
            prog=f"cczoo {name}",
            description=module.__doc__,
            epilog=getattr(module, "EXAMPLE", help_line),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(parser)
        args = parser.parse_args(rest)
        names.check(name, args)
        if isinstance(out := getattr(args, "out", None), Path) and not _only_tells(args):
            check_writable(out)
        if isinstance(predictions := getattr(args, "predictions", None), Path):
            check_writable(predictions)
        with _tidy_on_sigterm(), selection.opened(args):
            code: int = module.run(args)
    except UserError as error:
        print(f"cczoo {name}: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        absent = extras.missing(error)
        if absent is None:
            raise
        print(f"cczoo {name}: {absent}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader of our output (head, less) has gone: nothing is left to print.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if error.errno not in REFUSED:
            raise
        where = Path(os.fsdecode(error.filename or "the output"))
        print(f"cczoo {name}: {unwritable(where, error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"cczoo {name}: interrupted; run it again to go on", file=sys.stderr)
        return 1
    return code


def _only_tells(args: argparse.Namespace) -> bool:
    """Whether an option asks for what is there already, so that nothing is written."""
    return any(getattr(args, name, False) is True for name in ("where", "verdicts"))


@contextmanager
def _tidy_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end a command as an exception does, so that it removes unfinished files."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _use_the_experiments_own_code(arguments: Sequence[str]) -> None:
    """Go on in the checkout at hand if DVC runs a stage in another than this one.

    ``dvc queue`` and ``dvc exp run --temp`` work in a copy, whereas the installed command belongs
    to the repository: it would write the experiment's models into the repository's zoo, and run
    code that the experiment hasn't.
    """
    here = Path("pipelines/cli.py")
    if "DVC_STAGE" not in os.environ or not here.is_file() or here.samefile(__file__):
        return
    path = [str(Path.cwd()), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    os.execve(sys.executable, [sys.executable, "-m", "pipelines.cli", *arguments], environment)


def _print_overview() -> None:
    width = max(map(len, SUBCOMMANDS))
    print("usage: cczoo SUBCOMMAND ... (each has --help with an example)\n       cczoo --version\n")
    for name, (_, help_line) in SUBCOMMANDS.items():
        print(f"  {name:<{width}}  {help_line}")
    print("\nexample: cczoo ingest data/raw --out data/interim/mine --json")


if __name__ == "__main__":
    sys.exit(main())
