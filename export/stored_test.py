"""The test that is stored with an entry: its observations with what each form decides on them."""

from __future__ import annotations

from export.decisions import of_form, of_onnx
from export.source import Source
from features.grid import on_grid
from models.trained import Test


def test_file(test: Test | None, source: Source) -> dict[str, bytes]:
    """The stored test with what each form of the model decides on its observations, if any."""
    if test is None or not len(test.observations):
        return {}
    values = on_grid(test.observations, source.features)
    answers = {"model.onnx": of_onnx(source, values)}
    if source.form is not None:
        answers["model.json"] = of_form(source.form, source, values)
    return {test.file: test.content(answers)}
