"""Keeps what a compiler made of some bytes, for the next proof in this process that wants it.

What it makes hangs on the compiler, its flags and the files that it is given, and on nothing else.
Every proof still links, runs and measures for itself.
"""

from __future__ import annotations

import shutil
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

from export.toolchain import sandbox

KEPT = 64
"""Products kept, up to some megabytes each."""
STACK = ".su"
"""What gcc writes beside an object, of its frames."""
_products: OrderedDict[object, dict[str, bytes]] = OrderedDict()


def once(
    command: Sequence[str], inputs: Sequence[Path], made: Path, make: Callable[[], None]
) -> None:
    """Make a file, or write it as the same compiler made it of the same inputs before.

    Parameters
    ----------
    command : sequence of str
        The compiler and what it is told, without the folders, which differ each time.
    inputs : sequence of Path
        Every file that goes into it and isn't the system's.
    made : Path
        Where the product goes, and its ``.su`` beside it.
    make : callable
        Makes it there. What it raises is passed on, and nothing is kept of it.
    """
    if sandbox.box() is not None:
        # Of what others sent nothing is kept, nor even read here.
        make()
        return
    contents = tuple((path.name, path.read_bytes()) for path in inputs)
    key = (tuple(command), _version(command[0]), contents, made.name)
    beside = made.with_suffix(STACK)
    if key in _products:
        _products.move_to_end(key)
        for suffix, content in _products[key].items():
            (beside if suffix else made).write_bytes(content)
        made.chmod(0o755)
        return
    make()
    stack = {STACK: beside.read_bytes()} if beside.exists() else {}
    _products[key] = {"": made.read_bytes(), **stack}
    if len(_products) > KEPT:
        _products.popitem(last=False)


def _version(compiler: str) -> tuple[str, int, int]:
    """What tells a compiler from another that takes its name later."""
    path = Path(shutil.which(compiler) or compiler)
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), found.st_size, found.st_mtime_ns
