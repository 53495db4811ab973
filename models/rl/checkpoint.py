"""Checkpoints of a training: a folder that is there whole or not at all, and holds no pickle.

``networks.safetensors`` has weights and the optimiser's moments, ``arrays.zst`` all other arrays
one after the other, compressed, as most of a simulation's are nearly empty. ``state.msgpack`` has
the tree that they belong into and everything else.
"""

from __future__ import annotations

import ast
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np
from backports import zstd
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from data.errors import UserError

FORMAT = 2
NETWORKS = ("network", "optimiser", "best")
"""Branches of the tree that are kept as safetensors."""


def write(folder: Path, steps: int, tree: dict[str, Any]) -> Path:
    """Write a checkpoint and remove those before it.

    Parameters
    ----------
    folder : Path
        Of all checkpoints of a training.
    steps : int
        By which checkpoints are told apart.
    tree : dict
        Numbers, text, bytes and arrays in dicts and lists; the branches `NETWORKS` are dicts of
        arrays, however deep.

    Returns
    -------
    Path
        The checkpoint's folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / f"checkpoint-{steps:012d}"
    if final.exists():
        # Its steps decide all that comes next: the one that is there holds the same.
        return final
    part = folder / f".{final.name}.{os.getpid()}"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    try:
        networks = {name: dict(_flat(tree[name])) for name in NETWORKS}
        flat = {f"{k}/{n}": _whole(v) for k, one in networks.items() for n, v in one.items()}
        save_file(flat, part / "networks.safetensors")
        rest = {name: value for name, value in tree.items() if name not in NETWORKS}
        with zstd.open(part / "arrays.zst", "wb", level=1) as file:
            checked = _Arrays(file.write)
            plain = checked.plain(rest)
        packed = msgpack.packb({"format": FORMAT, "sum": checked.sum, "tree": plain})
        (part / "state.msgpack").write_bytes(packed)
        for path in (*part.iterdir(), part):
            _to_disk(path)
        part.rename(final)
        _to_disk(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    _tidy(folder, final)
    return final


def latest(folder: Path) -> Path | None:
    """The newest checkpoint in a folder; None if there is none."""
    return max(folder.glob("checkpoint-*"), default=None)


def read(path: Path) -> dict[str, Any]:
    """The tree that `write` was given; its arrays are copies.

    Raises
    ------
    UserError
        When it is none, was made by another version, or is damaged.
    """
    try:
        head = msgpack.unpackb((path / "state.msgpack").read_bytes(), strict_map_key=False)
        packed = (path / "arrays.zst").read_bytes()
        # A tree without arrays has written nothing, not even a frame.
        blob = zstd.decompress(packed) if packed else b""
        if head["format"] != FORMAT:
            raise ValueError(f"format {head['format']} instead of {FORMAT}")
        if zlib.crc32(blob) != head["sum"]:
            raise ValueError("arrays.zst isn't what was written")
        tree: dict[str, Any] = _filled(head["tree"], blob)
        tree |= {name: {} for name in NETWORKS}
        for name, value in load_file(path / "networks.safetensors").items():
            _put(tree, name.split("/"), value)
    except Exception as error:
        # msgpack and safetensors raise types of their own.
        text = str(error) or type(error).__name__
        raise UserError(
            f"{path}: no checkpoint of this version ({text}): delete it, or train without --resume"
        ) from None
    return tree


class _Arrays:
    """Puts arrays one after the other, and their places into the tree."""

    def __init__(self, write: Callable[[Any], object]) -> None:
        self.write, self.offset, self.sum = write, 0, 0

    def plain(self, value: Any) -> Any:
        """The value as msgpack takes it."""
        if isinstance(value, np.ndarray):
            return self._put(value)
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, dict):
            return {key: self.plain(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.plain(one) for one in value]
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
            return {"__int__": str(value)}
        return value

    def _put(self, array: NDArray[Any]) -> dict[str, Any]:
        whole = _whole(array)
        if whole.dtype.hasobject:
            raise TypeError(f"an array of {whole.dtype} in a checkpoint")
        raw = whole.reshape(-1).view(np.uint8).data
        self.write(raw)
        self.sum = zlib.crc32(raw, self.sum)
        kind = repr(np.lib.format.dtype_to_descr(whole.dtype))
        found = {"__array__": [kind, list(array.shape), self.offset]}
        self.offset += len(raw)
        return found


def _filled(value: Any, blob: bytes) -> Any:
    if isinstance(value, list):
        return [_filled(one, blob) for one in value]
    if not isinstance(value, dict):
        return value
    if "__int__" in value:
        return int(value["__int__"])
    if "__array__" in value:
        text, shape, offset = value["__array__"]
        kind = np.lib.format.descr_to_dtype(ast.literal_eval(text))
        if kind.hasobject:
            raise ValueError(f"an array of {kind}")
        count = int(np.prod(shape))
        return np.frombuffer(blob, kind, count, offset).reshape(shape).copy()
    return {key: _filled(one, blob) for key, one in value.items()}


def _flat(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", value


def _put(tree: dict[str, Any], path: list[str], value: NDArray[Any]) -> None:
    for key in path[:-1]:
        tree = tree.setdefault(key, {})
    tree[path[-1]] = value


def _whole(array: NDArray[Any]) -> NDArray[Any]:
    # Of an array without dimensions numpy would make one with a dimension.
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def _to_disk(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _tidy(folder: Path, final: Path) -> None:
    """Remove older checkpoints, and what a killed training left half-written."""
    for path in folder.iterdir():
        if path.name.startswith((".checkpoint-", "checkpoint-")) and path != final:
            shutil.rmtree(path, ignore_errors=True)
