"""How models are judged, in terms that fit every family: figures, stored tests, paired answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from models.stats.intervals import by_connection

if TYPE_CHECKING:
    from data.strict import Strict
    from models.store import ZooModel

Answer = Callable[["ZooModel", NDArray[np.float64]], NDArray[Any]]
"""What a model decides on observations, float64 array [N, d], as a kernel would carry it out: the
index of a label for each, int64 array [N], or a score per label, float64 array [N, labels]."""


@dataclass(frozen=True)
class Figure:
    """One measured number.

    Attributes
    ----------
    mean, low, high : float or None
        The number and the limits of its 95 % interval; None where they are undefined.
    count : int
        How many things it is a mean over.
    of : str
        What they are, and the figure's unit where it isn't a share: "windows", "scenarios".
    """

    mean: float | None
    low: float | None
    high: float | None
    count: int
    of: str


@dataclass(frozen=True)
class StoredTest:
    """The test that is stored with an entry.

    Attributes
    ----------
    observations : float64 array [N, d]
        In the features' own units.
    score : function
        What answers to them are worth: larger is better. It takes what :data:`Answer` returns.
    stored : mapping
        File of the entry that answers -> its score when the entry was made: ``mean``, ``low``,
        ``high``, and how many of what it is over.
    of : str
        The key of those counts that the score is a mean over, such as ``windows``.
    """

    observations: NDArray[np.float64]
    score: Callable[[NDArray[Any]], float]
    stored: Mapping[str, Mapping[str, Any]]
    of: str


@dataclass(frozen=True)
class Paired:
    """Worth of both models' answers on the same things.

    Attributes
    ----------
    candidate, champion : float64 array [N]
        Larger is better; no champion before the first promotion.
    group : int64 array [N]
        Things with the same number depend on each other, such as windows of one connection.
    meaning : str
        What a mean of it says: "of windows right", "mean utility".
    unit : float
        What a gate's margin of 1 stands for: 1 of shares, else a typical size of the worth.
    """

    candidate: NDArray[np.float64]
    champion: NDArray[np.float64] | None
    group: NDArray[np.int64]
    meaning: str
    unit: float = 1.0

    def where(self, mask: NDArray[np.bool_]) -> Paired:
        """Some of them."""
        champion = None if self.champion is None else self.champion[mask]
        return Paired(self.candidate[mask], champion, self.group[mask], self.meaning, self.unit)

    def figures(self) -> dict[str, Any]:
        """How many, both means, their difference; without a champion the candidate's interval."""
        found: dict[str, Any] = {"count": len(self.candidate)}
        found["candidate"] = float(self.candidate.mean())
        if self.champion is None:
            return found | {"interval": by_connection(self.candidate, self.group)}
        found["champion"] = float(self.champion.mean())
        return found | {"difference": by_connection(self.candidate - self.champion, self.group)}


@dataclass(frozen=True)
class Asked:
    """What a family is asked to compare two models on.

    Attributes
    ----------
    name : str
        Registered name, for messages.
    data : Path
        Data with the test; where it is missing the tests stored with the models are used.
    params : Strict
        The family's settings.
    only : mapping
        Attribute -> value, for the model of a group.
    answer : function
        What a model decides.
    """

    name: str
    data: Path
    params: Strict
    only: Mapping[str, str]
    answer: Answer


@dataclass(frozen=True)
class Pairing:
    """A candidate beside the champion on one test.

    Attributes
    ----------
    what : str
        Where the test comes from, for people.
    leading : str
        The quantity that groups are judged on, and whose things are counted.
    quantities : mapping
        Name of the things -> worth of the answers: ``windows``, ``connections``.
    columns : mapping
        Attribute -> its value for each thing of the leading quantity, string array [N].
    described : mapping
        What an audit needs to find the same test again; ``hash`` is its content's.
    """

    what: str
    leading: str
    quantities: Mapping[str, Paired]
    columns: Mapping[str, NDArray[Any]]
    described: Mapping[str, Any]

    @property
    def count(self) -> int:
        """Things of the leading quantity."""
        return len(self.quantities[self.leading].candidate)


@dataclass(frozen=True)
class Block:
    """A part of the report: a heading, some text and a table.

    Attributes
    ----------
    title, text : str
        Plain text.
    columns : sequence of str
        Heads of the table; the first column names the rows.
    rows : sequence
        A string, a number, a :class:`Figure` or None in each cell.
    """

    title: str
    text: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Figure | str | float | int | None]] = field(default_factory=tuple)
