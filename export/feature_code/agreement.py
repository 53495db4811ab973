"""Measures how far exported features agree with Python's, over whole logs.

For each bundle it counts the windows in which the C and the fixed-point reference differ (which
must be 0), and measures what fixed point changes against the floating-point features and the float
model of training. With three and more subflows (``--set subflows=3``) the windows of every pair
count, and every partition.

    cczoo export smartsbd-dt -t c -t onnx --out build/smartsbd-dt
    python -m export.feature_code.agreement build/smartsbd-dt --logs data/raw/smartsbd-paper
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from data.ingest import ingest
from data.labels import pair_label
from data.place import scratch
from data.schema import LABELS
from data.store import iter_connections
from export.bundle.manifest import Bundle
from export.bundle.plain_files import Broken
from export.bundle.reemit import read_emitted
from export.feature_code.feed import Feed
from export.feature_code.sbd import feed_of, made_for, meant_verdicts
from export.fixed import to_integers
from export.onnx.run import decided, predict
from export.toolchain.harness import CannotRun
from features.arrays import Float, Int
from features.fixed_sbd import evaluate_pairs, needs_throughput, wifi_of
from features.fixed_series import calls
from features.pairs import choose_subflows, pair_windows
from features.params import SbdParams
from features.sbd import compute, features_of
from features.windows import Window

BATCH = 64
"""Connections that the C is given at a time."""
TIMEOUT_S = 120.0

Connection = tuple[dict[str, Any], Any]


@dataclass
class Agreement:
    """Counts of one bundle over the connections so far."""

    bundle: Bundle
    feed: Feed
    params: SbdParams
    connections: int = 0
    fixed: int = 0
    floating: int = 0
    mismatches: int = 0
    exact: list[Float] = field(default_factory=list)
    integers: list[Int] = field(default_factory=list)
    labels: list[str | None] = field(default_factory=list)

    def add(self, batch: Sequence[Connection]) -> None:
        """Compare the windows of some connections."""
        features = self.bundle.features
        acks = needs_throughput(features)
        made = []
        for row, events in batch:
            chosen = choose_subflows(events, self.feed.subflows)
            if chosen is not None:
                kept = {subflow: events[subflow] for subflow in chosen}
                given = calls(events, chosen, self.params, acks)
                made.append((row, kept, chosen, given, wifi_of(row, chosen)))
        given_to = [(given, wifi) for *_, given, wifi in made]
        answers = self.feed.run(given_to, TIMEOUT_S)
        for (row, kept, chosen, given, wifi), answer in zip(made, answers, strict=True):
            meant = evaluate_pairs(given, wifi, self.feed.subflows, self.params, features)
            verdicts = meant_verdicts(self.bundle, meant.x)
            self.mismatches += answer.unlike(meant, self._form_classes(meant.x), verdicts)
            found = pair_windows(row, kept, self.params)[0]
            floats = self._floats([window for _, window in found])
            keys = [(window.index, *pair) for pair, window in found]
            at = dict(zip(keys, floats, strict=True))
            self.fixed += len(meant.window)
            self.floating += len(found)
            for index, places, x in zip(meant.window.tolist(), meant.pair, meant.x, strict=True):
                a, b = sorted(chosen[place] for place in places)
                if (index, a, b) in at:
                    self.exact.append(at[index, a, b])
                    self.integers.append(x)
                    self.labels.append(pair_label(row, (a, b)))
        self.connections += len(batch)

    def report(self) -> dict[str, Any]:
        """What was found."""
        features = self.bundle.features
        x = np.array(self.integers, np.int64).reshape(-1, len(features))
        exact = np.array(self.exact).reshape(-1, len(features))
        scaled = np.abs(x - to_integers(exact, features))
        float_classes = self._float_classes(exact)
        fixed_classes = self._form_classes(x)
        known = np.array([label is not None for label in self.labels], np.bool_)
        truth = np.array([label == LABELS[0] for label in self.labels], np.int64)
        return {
            "name": self.bundle.manifest["name"],
            "subflows": self.feed.subflows,
            "connections": self.connections,
            "windows_fixed": self.fixed,
            "mismatches_c_reference": self.mismatches,
            "windows_float": self.floating,
            "windows_both": len(x),
            "largest_difference": {
                f.name: int(column.max(initial=0))
                for f, column in zip(features, scaled.T, strict=True)
            },
            "disagreeing_verdicts": int((float_classes != fixed_classes).sum()),
            "accuracy_float": _share((float_classes == truth)[known]),
            "accuracy_fixed": _share((fixed_classes == truth)[known]),
        }

    def _floats(self, found: Sequence[Window]) -> Float:
        family = self.bundle.manifest["family"]
        columns = [f.name for f in features_of(family)]
        chosen = [columns.index(f.name) for f in self.bundle.features]
        if not found:
            return np.empty((0, len(chosen)))
        return np.asarray(compute(family, found)[:, chosen])

    def _form_classes(self, x: Int) -> Int:
        if self.bundle.form is None:
            raise UserError(f"{self.bundle.directory}: has no form: export it again with -t c")
        return self.bundle.form.evaluate(x).classes

    def _float_classes(self, values: NDArray[np.float64]) -> Int:
        (path,) = self.bundle.files("onnx")
        return decided(predict(path.read_bytes(), values, path.name), self.bundle.threshold)


def agreement(
    bundles: Sequence[Path], connections: Iterable[Connection], work: Path
) -> list[dict[str, Any]]:
    """Compare bundles with their meaning over connections.

    Parameters
    ----------
    bundles : sequence of Path
        Exported with the targets c and onnx.
    connections : iterable
        Rows and events, as :func:`data.store.iter_connections` has them.
    work : Path
        For objects.

    Returns
    -------
    list of dict
        One per bundle, windows counted once for each pair: ``windows_fixed`` and
        ``mismatches_c_reference``; ``windows_both`` and, of these, the ``largest_difference`` per
        feature in scaled units, ``disagreeing_verdicts`` of the float model on float features, and
        both accuracies (None without labels).

    Raises
    ------
    UserError
        When a bundle isn't one, or lacks a target.
    """
    counting = [_begin(path, work / str(i)) for i, path in enumerate(bundles)]
    for batch in _batches(connections):
        for one in counting:
            one.add(batch)
    return [one.report() for one in counting]


def _share(hits: NDArray[np.bool_]) -> float | None:
    return float(hits.mean()) if hits.size else None


def _begin(path: Path, work: Path) -> Agreement:
    try:
        bundle = read_emitted(path)
    except Broken as error:
        raise UserError(f"{path}: {error}") from None
    targets = bundle.manifest["targets"]
    if "companion" not in targets.get("c", {}) or "onnx" not in targets:
        raise UserError(
            f"{path}: has no computation of features or no float model: export a model of the "
            "families smartsbd or smartsbd-plus-kernel with -t c -t onnx"
        )
    work.mkdir()
    bundle = bundle.copied(work / "bundle")
    try:
        feed = feed_of(bundle, work, TIMEOUT_S)
    except CannotRun as error:
        raise UserError(f"{path}: {error}") from None
    return Agreement(bundle, feed, made_for(bundle)[0])


def _batches(connections: Iterable[Connection]) -> Iterator[list[Connection]]:
    iterator = iter(connections)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def main() -> int:
    """Print the agreement of bundles as JSON; exit status 1 if the C differs anywhere."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bundles", nargs="+", type=Path, help="made by cczoo export -t c -t onnx")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--logs", nargs="+", type=Path, help="logs, or directories of them")
    source.add_argument("--events", type=Path, help="directory made by cczoo ingest")
    args = parser.parse_args()
    with scratch("agreement") as work:
        try:
            events = args.events or work / "events"
            if args.logs:
                ingest(args.logs, events)
            reports = agreement(args.bundles, iter_connections(events), work)
        except UserError as error:
            print(f"agreement: {error}", file=sys.stderr)
            return 2
    json.dump(reports, sys.stdout, indent=2)
    print()
    return int(any(report["mismatches_c_reference"] for report in reports))


if __name__ == "__main__":
    sys.exit(main())
