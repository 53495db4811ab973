"""What the report reads. Anything may be missing: a section then says so, and how to make it."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl


class MissingInput(Exception):
    """An input isn't there: what it is, and the command that makes it."""

    def __init__(self, path: Path, command: str) -> None:
        super().__init__(f"{path} is missing")
        self.path = path
        self.command = command


@dataclass(frozen=True)
class Inputs:
    """Files of one pipeline run, below ``root``.

    Attributes
    ----------
    root : Path
        The repository, or a copy of its layout.
    """

    root: Path = Path(".")

    @property
    def raw(self) -> Path:
        """Compact logs of the lab, one directory per campaign."""
        return self.root / "data" / "raw"

    @property
    def events(self) -> Path:
        """What ``cczoo ingest`` wrote."""
        return self.root / "data" / "interim" / "events"

    @property
    def trained(self) -> Path:
        """Models trained here."""
        return self.root / "models" / "trained"

    def reproduction(self) -> list[dict[str, Any]]:
        """Whether each released model was trained here to the same; see `cczoo zoo reproduced`."""
        path = self.root / "reports" / "reproduction.json"
        found: list[dict[str, Any]] = _json(path, f"cczoo zoo reproduced --out {path}")["models"]
        return found

    def table(self, name: str) -> Any:
        """A JSON result table of ``cczoo train sbd``.

        Raises
        ------
        MissingInput
            When it isn't there or isn't JSON.
        """
        step = "search" if name in {"mi.json", "best.json"} else "protocol"
        path = self.root / "reports" / "sbd" / name
        return _json(path, f"cczoo train sbd {step}")

    def optional(self, name: str) -> Any:
        """As `table`, ``None`` where it is missing."""
        try:
            return self.table(name)
        except MissingInput:
            return None

    @cached_property
    def search(self) -> pl.DataFrame:
        """Curves of the grid search."""
        import polars as pl

        path = self.root / "reports" / "sbd" / "search.csv"
        if not path.is_file():
            raise MissingInput(path, "cczoo train sbd search")
        return pl.read_csv(path, infer_schema_length=None)

    @cached_property
    def features(self) -> pl.DataFrame:
        """The features table."""
        import polars as pl

        path = self.root / "data" / "processed" / "sbd.parquet"
        if not path.is_file():
            raise MissingInput(path, f"cczoo features sbd --events {self.events} --out {path}")
        return pl.read_parquet(path)

    def feature_counts(self) -> dict[str, Any]:
        """Counts that ``cczoo features sbd --json`` printed."""
        path = self.root / "data" / "processed" / "sbd.json"
        counts: dict[str, Any] = _json(path, "make repro")
        return counts

    @cached_property
    def campaigns(self) -> dict[str, list[dict[str, Any]]]:
        """Campaign -> its records, one per run, without the scenarios.

        Raises
        ------
        MissingInput
            When there is no ``campaign.jsonl`` at all.
        """
        found: dict[str, list[dict[str, Any]]] = {}
        for path in sorted(self.raw.glob("*/campaign.jsonl")):
            records = []
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    record = json.loads(line)
                except ValueError:
                    continue  # the unfinished last line of a collection that was killed
                record.pop("scenario", None)
                records.append(record)
            found[path.parent.name] = records
        if not found:
            raise MissingInput(self.raw / "*/campaign.jsonl", "make lab-data")
        return found

    @cached_property
    def labels(self) -> dict[str, list[dict[str, str]]]:
        """Campaign -> rows of its ``labels.csv``; only logs that are there."""
        found = {}
        for path in sorted(self.raw.glob("*/labels.csv")):
            with path.open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            found[path.parent.name] = [r for r in rows if (path.parent / r["source"]).is_file()]
        if not found:
            raise MissingInput(self.raw / "*/labels.csv", "make lab-data")
        return found

    def certificates(self) -> dict[str, dict[str, Any]]:
        """Bundle -> certificate of its verification.

        Raises
        ------
        MissingInput
            When no bundle was verified.
        """
        paths = sorted((self.root / "reports" / "verified").glob("*/certificate.json"))
        if not paths:
            path = self.root / "reports" / "verified" / "*" / "certificate.json"
            raise MissingInput(path, "dvc repro verify")
        return {path.parent.name: _json(path, "cczoo verify") for path in paths}

    def benchmark(self, name: str, command: str, key: str = "") -> Any:
        """What a benchmark has kept, or one entry of it; ``command`` is the one that measures.

        Raises
        ------
        MissingInput
            When there is no such file, or it lacks the entry.
        """
        path = self.root / "benchmarks" / "results" / f"{name}.json"
        found = _json(path, command)
        if key and key not in found:
            raise MissingInput(path, command)
        return found[key] if key else found


def _json(path: Path, command: str) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise MissingInput(path, command) from None
