"""Result files of commands other than ``cczoo train``: a schema for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from data.results import Result, ResultFile

FORMAT: Literal[1] = 1
"""Version of the format of ``reproduction.json``."""


@dataclass(frozen=True)
class Verdict:
    """How a released model compares with the one that was trained here.

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
        ``same``, ``differs``, or empty if there is no integer form.
    answers, differing : int
        Number of stored observations that both models answered, and of verdicts that differ.
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
    """Content of ``reproduction.json``: a verdict per released model."""

    format: Literal[1]
    models: tuple[Verdict, ...]


class Registered(Result):
    """Content of ``registered.json``: the run in the store, and registered name -> version."""

    run: str
    versions: dict[str, str]


REPRODUCTION = ResultFile("reproduction.json", Reproduction, "cczoo zoo reproduced --out FILE")
REGISTERED = ResultFile("registered.json", Registered, "python -m pipelines.registry.register")
NUMBERS = ResultFile("headline.json", dict[str, int | float], "cczoo report")
"""The few numbers that stand for a run."""
