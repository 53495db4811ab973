"""What a model's answer is: which class, which action, or real values; and what it remembers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from data.strict import Strict

OutputKind = Literal["classes", "action", "scores"]


class Output(Strict):
    """What a model answers with; the names are its labels.

    Attributes
    ----------
    kind : str
        ``classes``: which of the labels is the case. ``action``: which of them is to be done.
        ``scores``: a real value for each. A choice is the index of the first largest score, or
        with one score for two labels whether it is above the threshold.
    units : tuple of str
        Of scores, one per label; empty where the kind is another or they have none.
    scale : int, optional
        Of scores: what one unit is in the integer form, which has none where this is None.
    """

    kind: OutputKind = "classes"
    units: tuple[str, ...] = ()
    scale: int | None = Field(None, ge=1)

    def problem(self, labels: tuple[str, ...]) -> str:
        """What of it doesn't fit a model's labels; empty where all does."""
        if not labels:
            return "labels: one name at least was expected"
        if len(set(labels)) != len(labels):
            return "labels: names that differ were expected"
        if self.kind != "scores" and len(labels) == 1:
            return "labels: one label alone decides nothing: output.kind must be scores"
        if self.units and (self.kind != "scores" or len(self.units) != len(labels)):
            return "output.units: one per label, of scores alone, were expected"
        if self.scale is not None and self.kind != "scores":
            return "output.scale: of scores alone"
        return ""


CLASSES = Output()
"""Of a model that says nothing else."""


class State(Strict):
    """What a recurrent model remembers between observations; zeros start a sequence.

    Attributes
    ----------
    given, returned : str
        Names of the ONNX file's input and of the output that is given to it the next time.
    width : int
        Numbers that it holds.
    """

    given: str
    returned: str
    width: int = Field(ge=1)
