"""Result files of commands other than ``cczoo train``: a schema for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from data.results import Result, ResultFile

FORMAT: Literal[1] = 1
"""Of ``reproduction.json``."""


@dataclass(frozen=True)
class Verdict:
    """Whether one released model came out the same here.

    Attributes
    ----------
    name : str
    verdict : str
        ``identical``, ``equal``, ``differs`` or ``missing`` (not trained here).
    text : str
        The same in words.
    version : str
        Released.
    files : tuple of str
        Sealed files whose bytes differ.
    form : str
        ``same``, ``differs``, or empty where there is no integer form.
    answers, differing : int
        Stored observations that both were asked, and how many verdicts differ.
    largest : float
        Largest difference of a probability.
    figure : float
        Largest difference of a number in ``metrics.json``.
    """

    name: str
    verdict: str
    text: str
    version: str = ""
    files: tuple[str, ...] = ()
    form: str = ""
    answers: int = 0
    differing: int = 0
    largest: float = 0.0
    figure: float = 0.0


class Reproduction(Result):
    """``reproduction.json``: a verdict per released model."""

    format: Literal[1]
    models: tuple[Verdict, ...]


class Registered(Result):
    """``registered.json``: the run in the tracking store, and registered name -> version."""

    run: str
    versions: dict[str, str]


REPRODUCTION = ResultFile("reproduction.json", Reproduction, "cczoo zoo reproduced --out FILE")
REGISTERED = ResultFile("registered.json", Registered, "python -m pipelines.registry.register")
NUMBERS = ResultFile("headline.json", dict[str, int | float], "cczoo report")
"""The few numbers that stand for a run."""
