"""Serves commands that are called as ``python -m MODULE``: a parser, and one-line errors."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence


def command_parser(
    module: str, description: str | None, examples: str = ""
) -> argparse.ArgumentParser:
    """A parser without arguments yet.

    Parameters
    ----------
    module : str
        Dotted name of what is called.
    description : str, optional
        The module's docstring.
    examples : str
        Shown below the arguments as they are.
    """
    return argparse.ArgumentParser(
        prog=f"python -m {module}",
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def answer(
    parser: argparse.ArgumentParser,
    run: Callable[[argparse.Namespace], int],
    argv: Sequence[str] | None,
    *,
    resumes: bool = False,
) -> int:
    """Read the command line and run it.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    run : callable
        Takes the arguments, returns the exit status.
    argv : sequence of str, optional
        The arguments, by default the process's own.
    resumes : bool
        Whether the same command goes on where it was stopped.

    Returns
    -------
    int
        What ``run`` returned; 2 if the user's input is wrong, 1 if it was interrupted. Both are
        told in one line.
    """
    from data.errors import UserError

    try:
        return run(parser.parse_args(argv))
    except UserError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        further = "; run it again to go on" if resumes else ""
        print(f"{parser.prog}: interrupted{further}", file=sys.stderr)
        return 1
