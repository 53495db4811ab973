"""Addresses and ports are replaced by hashes that only the owner of a key can make (HMAC-SHA256).

Equal ones stay equal, so that connections can still be told apart and grouped. Without the key
nobody can try all addresses, of which there are few enough to do so with a plain hash.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from pathlib import Path
from typing import Any

from data.errors import UserError
from data.place import reason

LEAST_BYTES = 16
_V4 = r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])"
_V6 = r"(?<![0-9A-Fa-f:.])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![0-9A-Fa-f:])"
ADDRESS = re.compile(rf"{_V4}|{_V6}")
HIDDEN = "(not kept: the store has pseudonyms)"


def read_key(path: Path) -> bytes:
    """The key in a file.

    Raises
    ------
    UserError
        When it can't be read, others than its owner can read it, or it is too short.
    """
    try:
        key = path.read_bytes().strip()
        shared = path.stat().st_mode & 0o077
    except OSError as error:
        raise UserError(
            f"--pseudonymise {path}: {reason(error)}: make a key with "
            f"`(umask 077; openssl rand -hex 32 > {path})`"
        ) from None
    if shared:
        raise UserError(f"--pseudonymise {path}: others can read it: chmod 600 {path}")
    if len(key) < LEAST_BYTES:
        raise UserError(
            f"--pseudonymise {path}: give at least {LEAST_BYTES} bytes, chosen at random"
        )
    return key


class Pseudonyms:
    """Replaces whatever says who the ends of a connection are; without a key, nothing."""

    def __init__(self, key: bytes | None) -> None:
        self._key = key

    @property
    def name(self) -> str:
        """Name of the key, from which nobody can find it."""
        return self._hash("", "key") if self._key is not None else ""

    def _hash(self, text: str, what: str) -> str:
        assert self._key is not None
        message = f"{what}\0{text}".encode("utf-8", "surrogateescape")
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()[:20]

    def source(self, name: str) -> str:
        """A log's name, which may have addresses in it, and so do the folders that it lies in."""
        return name if self._key is None else f"log-{self._hash(name, 'source')}"

    def text(self, value: str | None) -> str | None:
        """Text with a pseudonym in place of each IP address."""
        if self._key is None or value is None:
            return value
        return ADDRESS.sub(lambda found: f"ip-{self._hash(found.group(), 'address')}", value)

    def connection(self, row: dict[str, Any]) -> dict[str, Any]:
        """Row of a connection of a source that has its pseudonym already."""
        if self._key is None:
            return row
        source = row["source"]
        name = row["connection"].removeprefix(f"{source}:")
        subflows = [
            {**one, "sport": self._port(one["sport"]), "dport": self._port(one["dport"])}
            for one in row["subflows"]
        ]
        token = None if row["token"] is None else self._hash(row["token"], "token")
        return {
            **row,
            "connection": f"{source}:{self._hash(name, 'connection')}",
            "token": token,
            "subflows": subflows,
        }

    def _port(self, port: int) -> int:
        """A number beyond all ports, so that it can't be taken for one; -1 is still unknown."""
        if port < 0:
            return port
        return 65_536 + int(self._hash(str(port), "port")[:7], 16) % (2**31 - 65_536)

    def quarantined(self, text: str) -> str:
        """Text of a line that nobody understood: what is in it isn't known."""
        return text if self._key is None else HIDDEN
