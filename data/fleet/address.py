"""Addresses of stores and logs: paths on this machine, or URLs of object stores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from data.errors import UserError
from data.place import reason

PACKAGES = {
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "s3": "s3fs",
    "s3a": "s3fs",
    "az": "adlfs",
    "abfs": "adlfs",
}
"""Scheme of a URL -> package that fsspec needs for it; s3fs comes with ``cczoo[fleet]``."""
PART_BYTES = 8 << 20
"""Bytes of an upload that are in memory at once."""


def address(text: str) -> str:
    """Text of a command line as an address: ``file://`` is a path, other URLs stay as they are."""
    return text.removeprefix("file://") if text.startswith("file://") else text


def is_url(place: str) -> bool:
    """Whether an address is none of this machine's paths."""
    return "://" in place


def whole(place: str) -> str:
    """The address with an absolute path, by which a process elsewhere finds the same place."""
    return place.rstrip("/") if is_url(place) else str(Path(place).resolve())


def below(place: str, *names: str) -> str:
    """Address of something inside a place."""
    return "/".join([place.rstrip("/"), *names])


def filesystem(place: str) -> tuple[Any, str]:
    """The file system of an address, and the address as that file system has it.

    Raises
    ------
    UserError
        When the scheme is unknown, or its package isn't installed.
    """
    import fsspec

    if not is_url(place):
        return fsspec.filesystem("file", auto_mkdir=True), str(Path(place).resolve())
    scheme = place.partition("://")[0]
    try:
        found, path = fsspec.core.url_to_fs(place, use_listings_cache=False)
    except ImportError:
        package = PACKAGES.get(scheme, scheme)
        raise UserError(f"{place}: needs the package {package}: pip install {package}") from None
    except ValueError as error:
        raise UserError(
            f"{place}: {error}: give a path, or a URL as in s3://bucket/store"
        ) from None
    return found, str(path)


def delta_options(place: str) -> dict[str, str] | None:
    """Options with which Delta reaches an address; it takes the keys from the environment."""
    if not is_url(place):
        return None
    options = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    endpoint = options.get("AWS_ENDPOINT_URL", "")
    if endpoint.startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    return options


def readable(place: str, error: OSError) -> UserError:
    """The one line about a log or a store that can't be read."""
    return UserError(f"{place}: {reason(error)}: make it readable or leave it out")
