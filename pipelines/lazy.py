"""Let a subcommand have subcommands, each in a module that is imported only when it is called."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipelines import names

Known = Mapping[str, tuple[str, str]]
"""Name -> (module with ``add_arguments(parser)``, ``run(args) -> int`` and ``EXAMPLE``, one line of
help)."""
Early = Callable[[Sequence[str]], None]
"""Function that refuses mistaken words before the module that would refuse them is imported."""


class Lazy(names.Parser):
    """A parser that imports its module only when it parses, so that the help of others is quick."""

    def __init__(
        self, *args: object, module: str = "", early: Early | None = None, **options: object
    ) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.module = module
        self.early = early

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """Add the module's own arguments, then parse."""
        if self.early is not None:
            self.early(args)
        command = importlib.import_module(self.module)
        command.add_arguments(self)
        self.epilog = command.EXAMPLE
        return super().parse_known_args(args, namespace)


def add(
    parser: argparse.ArgumentParser,
    dest: str,
    known: Known,
    early: Mapping[str, Early] | None = None,
    more: Known | None = None,
) -> None:
    """Let a parser choose among subcommands.

    Parameters
    ----------
    parser : ArgumentParser
        Parser of the command that has the subcommands.
    dest : str
        Name of the parsed argument that holds the chosen name, also used in messages.
    known : mapping
        The subcommands; see :data:`Known`.
    early : mapping, optional
        Name -> function that checks a subcommand's words before its module is imported.
    more : mapping, optional
        Further subcommands, which the help doesn't list: they would bury the others.
    """
    commands = parser.add_subparsers(
        dest=dest, required=True, metavar="|".join(known), parser_class=Lazy
    )
    for name, (module, line) in {**known, **(more or {})}.items():
        listed: dict[str, Any] = {"help": line} if name in known else {}
        commands.add_parser(
            name,
            **listed,
            description=line,
            module=module,
            early=(early or {}).get(name),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )


def run(known: Known, name: str, args: argparse.Namespace) -> int:
    """Hand over to the module of the chosen subcommand; returns its exit status."""
    module, _ = known[name]
    code: int = importlib.import_module(module).run(args)
    return code
