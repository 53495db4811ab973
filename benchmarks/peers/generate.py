"""Runs in the peers' environment: a model in numbers -> each peer's C, or why there is none.

``python generate.py DIRECTORY < trees.json``
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rebuild


def m2cgen(forest: Any, alone: Any, out: Path) -> None:
    import m2cgen

    sys.setrecursionlimit(10_000)
    (out / "m2cgen.h").write_text(m2cgen.export_to_c(alone))


def emlearn(forest: Any, alone: Any, out: Path, dtype: str) -> None:
    import emlearn

    model = emlearn.convert(alone, method="inline", dtype=dtype)
    model.save(name="model", format="c", file=str(out / "emlearn.h"))


def tl2cgen(forest: Any, alone: Any, out: Path) -> None:
    import tl2cgen
    import treelite

    # Only in units of bounded size does its forest compile within minutes.
    tl2cgen.generate_c_code(
        treelite.sklearn.import_model(forest),
        dirpath=str(out / "tl2cgen"),
        params={"parallel_comp": min(4, len(forest.estimators_))},
    )


def main() -> int:
    out = Path(sys.argv[1])
    given = json.load(sys.stdin)
    forest = rebuild.forest(given["trees"], given["columns"])
    alone = forest.estimators_[0] if len(given["trees"]) == 1 else forest
    makers: dict[str, Callable[[], None]] = {
        "m2cgen": lambda: m2cgen(forest, alone, out),
        "emlearn": lambda: emlearn(forest, alone, out, given["dtype"]),
        "tl2cgen": lambda: tl2cgen(forest, alone, out),
    }
    failures = {}
    for name, make in makers.items():
        try:
            make()
        except Exception as error:  # a peer's trouble is a line of the table
            failures[name] = f"{type(error).__name__}: {str(error)[:150]}"
    (out / "failures.json").write_text(json.dumps(failures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
