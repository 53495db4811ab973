"""Users' YAML is read in this one place, and refused if it can't be meant as it stands.

PyYAML takes the last of two equal keys, follows an alias as often as it stands there and recurses
as deep as a file says. Here a key is given once, and nesting and size are bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from data.errors import UserError
from data.given import read_text

DEEPEST = 32
"""Levels; settings and scenarios have less than ten."""
MOST = 100_000
"""Values of a file; one behind an alias counts each time that the alias stands there."""
MOST_BYTES = 16 << 20


class _Refused(yaml.YAMLError):
    """What YAML allows and settings don't."""


class _Loader(Composer, yaml.CSafeLoader):
    """PyYAML's safe loader with bounds, on the parser of libyaml: a tenth of the time."""

    def __init__(self, text: str) -> None:
        yaml.CSafeLoader.__init__(self, text)
        Composer.__init__(self)
        self._level = 0
        self._count = 0
        self._sizes: dict[int, tuple[int, int]] = {}

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        event = self.peek_event()
        line = _line(event)
        if isinstance(event, yaml.AliasEvent):
            meant = self.anchors.get(event.anchor)
            if meant is not None and id(meant) not in self._sizes:
                raise _Refused(f"line {line}: an alias that stands within what it stands for")
        self._level += 1
        self._count += 1
        if self._level > DEEPEST:
            raise _Refused(f"nested too deeply, line {line}: {DEEPEST} levels at most")
        if self._count > MOST:
            raise _Refused(f"too large, line {line}: {MOST} values at most")
        node = super().compose_node(parent, index)
        self._level -= 1
        if node is not None and id(node) not in self._sizes:
            self._sizes[id(node)] = self._measured(node, line)
        return node

    def _measured(self, node: Node, line: int) -> tuple[int, int]:
        """How many values and levels a node stands for, aliases followed."""
        parts: list[Node] = []
        if isinstance(node, SequenceNode):
            parts = node.value
        elif isinstance(node, MappingNode):
            parts = [part for pair in node.value for part in pair]
            _check_keys(node)
        sizes = [self._sizes[id(part)] for part in parts]
        count = 1 + sum(values for values, _ in sizes)
        level = 1 + max((levels for _, levels in sizes), default=0)
        if level > DEEPEST:
            raise _Refused(f"nested too deeply, line {line}: {DEEPEST} levels at most")
        if count > MOST:
            raise _Refused(f"too large, line {line}: aliases stand for more than {MOST} values")
        return count, level


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _check_keys(node: MappingNode) -> None:
    seen: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        if not isinstance(key, ScalarNode):
            continue
        line, identity = key.start_mark.line + 1, (key.tag, key.value)
        if identity in seen:
            raise _Refused(
                f"key {key.value!r} is given twice, lines {seen[identity]} and {line}: keep one"
            )
        seen[identity] = line


def loads(text: str, where: str) -> Any:
    """Read a YAML text as plain values.

    Parameters
    ----------
    text : str
    where : str
        The file or option, for the message.

    Raises
    ------
    UserError
        When it isn't YAML, gives a key twice, or is nested too deeply or too large.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except _Refused as error:
        raise UserError(f"{where}: {error}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark is not None else ""
        reason = " ".join(str(error.problem or error.context).split())
        raise UserError(f"{where}: not YAML: {reason}{line}") from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise UserError(f"{where}: not YAML: {str(error).splitlines()[0]}") from None


def assigned(words: Iterable[str]) -> dict[str, Any]:
    """Read what ``--set`` was given: ``KEY=VALUE`` each, the value as YAML.

    Raises
    ------
    UserError
        When a word isn't of this form, and as :func:`loads`.
    """
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not (equals and key.strip()):
            raise UserError(f"--set {word}: KEY=VALUE expected")
        found[key.strip()] = loads(value, f"--set {word}")
    return found


def read(path: Path) -> Any:
    """Read a YAML file as plain values.

    Raises
    ------
    UserError
        When it can't be read or is too large, and as :func:`loads`.
    """
    return loads(read_text(path, "YAML file", "YAML", MOST_BYTES), str(path))
