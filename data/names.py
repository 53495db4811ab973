"""File names are written to tables as text, whatever bytes they are made of."""

from __future__ import annotations

import os
import re


def printable(name: str) -> str:
    r"""Write a file's name as text that any table and terminal can hold.

    Bytes that aren't UTF-8, control characters and the backslash itself become ``\xNN``, so that
    the name can be had back from it (`original`). Other names stay as they are.
    """
    text = os.fsencode(name).decode("utf-8", "surrogateescape")
    return "".join(_escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    code = ord(letter)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x20 or code == 0x7F or letter == "\\":
        return f"\\x{code:02x}"
    return letter


def original(text: str) -> str:
    """The file's name of which `printable` made ``text``."""
    raw = re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), text.encode())
    return os.fsdecode(raw)
