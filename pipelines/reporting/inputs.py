"""The files that the report reads.

Any of them may be missing: a section then states so, with the command that makes the file.
"""

from __future__ import annotations

import csv
import json
import logging
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from data.errors import UserError
from data.results import ResultFile
from pipelines.results import REPRODUCTION, Verdict

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")
logger = logging.getLogger(__name__)


class MissingInput(Exception):
    """An input is missing or of another version; names it and the command that makes it."""

    def __init__(self, path: Path, command: str, why: str = "") -> None:
        super().__init__(why or f"{path} is missing")
        self.path = path
        self.command = command
        self.why = "is of another version" if why else "isn't there yet"


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
        """Folder of the lab's compact logs, with one directory per campaign."""
        return self.root / "data" / "raw"

    @property
    def events(self) -> Path:
        """Folder that ``cczoo ingest`` has written."""
        return self.root / "data" / "interim" / "events"

    @property
    def trained(self) -> Path:
        """Folder of the models trained here."""
        return self.root / "models" / "trained"

    def reproduction(self) -> tuple[Verdict, ...]:
        """How each released model compares with the one trained here (`cczoo zoo reproduced`)."""
        path = self.root / "reports" / REPRODUCTION.name
        return self.result(REPRODUCTION, path, f"cczoo zoo reproduced --out {path}").models

    def result(self, file: ResultFile[T], path: Path, command: str = "") -> T:
        """Read a result file.

        ``command`` is the command that makes it, if it isn't the one that the file names.

        Raises
        ------
        MissingInput
            When the file is missing, or isn't as this version writes it.
        """
        command = command or file.made_by
        if not path.is_file():
            raise MissingInput(path, command)
        try:
            return file.read_at(path)
        except UserError as error:
            raise MissingInput(path, command, str(error)) from None

    def table(self, file: ResultFile[T], folder: str = "sbd", command: str = "") -> T:
        """Read a result of ``cczoo train sbd`` below ``reports``; see `result`."""
        return self.result(file, self.root / "reports" / folder / file.name, command)

    def optional(self, file: ResultFile[T], path: Path | None = None) -> T | None:
        """Do as `table` or, with a path, `result`; ``None`` if it is missing or can't be read."""
        try:
            return self.table(file) if path is None else self.result(file, path)
        except MissingInput as error:
            if error.path.is_file():
                logger.warning("report: %s", error)
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
        """Counts that ``cczoo features sbd --json`` has printed."""
        path = self.root / "data" / "processed" / "sbd.json"
        counts: dict[str, Any] = _json(path, "make repro")
        return counts

    @cached_property
    def campaigns(self) -> dict[str, list[dict[str, Any]]]:
        """Records of each campaign, one per run, without the scenarios: campaign -> records.

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
        """Labels of the logs that are there: campaign -> rows of its ``labels.csv``."""
        found = {}
        for path in sorted(self.raw.glob("*/labels.csv")):
            with path.open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            found[path.parent.name] = [r for r in rows if (path.parent / r["source"]).is_file()]
        if not found:
            raise MissingInput(self.raw / "*/labels.csv", "make lab-data")
        return found

    def certificates(self) -> dict[str, dict[str, Any]]:
        """Certificates of the verified bundles: bundle -> certificate.

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
        """Read the results of a benchmark, or one entry of them; ``command`` measures them.

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
