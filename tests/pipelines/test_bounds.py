"""Every number of every settings model has bounds, and a wrong one is refused before any work."""

import importlib
import pkgutil
import typing

import annotated_types
import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

import data
import export
import features
import models
import pipelines
from data.results import Result
from data.strict import Strict
from pipelines.cli import main
from pipelines.gates import GATES, gate
from pipelines.params import Params

LOWER = (annotated_types.Ge, annotated_types.Gt)
UPPER = (annotated_types.Le, annotated_types.Lt)
CONTENT = {
    "data.decisions.schema.About": "of a file of decisions; an action may have any sign",
    "models.sbd.accumulate.VerdictSettings": "fitted, of a kept entry",
    "models.sbd.conditions.clusters.Clusters": "fitted, of groups.json",
    "models.meta.FeatureSpec": "of a kept entry; a feature may have any range",
    "pipelines.registry.outbox.Content": "measured",
    "data.netsim.paper.Claim": "what a paper reports, of any sign",
    "export.bundle.manifest_schema.Manifest": "of a bundle, held against what is emitted again",
    "export.bundle.manifest_schema.Spec": "of a bundle; a feature may have any range",
    "export.bundle.manifest_schema.Vector": "of a bundle, held against its model's answers",
}
"""Models of files that a command has written, or of what a paper says: nobody sets them."""
CHECKED = {
    "data.netsim.scenario.Link.steps": "pairs, by its own validator",
    "data.netsim.scenario.Link.delay_steps": "pairs, by its own validator",
    "data.netsim.scenario.Link.lateness_us": "a pair, by its own validator",
}
SET = (Params, *(gate(name).Settings for name in GATES))
"""What params.yaml is read into: these have upper bounds too."""


def all_models():
    for package in (data, features, models, export, pipelines):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".isolated" not in found.name and "__main__" not in found.name:
                importlib.import_module(found.name)
    todo, known = [Strict], []
    while todo:
        for one in todo.pop().__subclasses__():
            todo.append(one)
            # A result was measured: nobody sets it.
            if issubclass(one, Result):
                continue
            if one.__module__.split(".")[0] != "tests" and "test_" not in one.__module__:
                known.append(one)
    return known


def numbers(annotation, metadata=()):
    """Bounds of each number within an annotation."""
    if annotation in (int, float):
        yield tuple(metadata)
        return
    args = typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Annotated:
        inner = [m for field in args[1:] if isinstance(field, FieldInfo) for m in field.metadata]
        yield from numbers(args[0], [*metadata, *inner, *args[1:]])
        return
    # Bounds of a whole, such as a length, are not those of the numbers within.
    union = type(None) in args or typing.get_origin(annotation) is typing.Union
    for arg in args if typing.get_origin(annotation) is not typing.Literal else ():
        yield from numbers(arg, metadata if union else ())


def below(model):
    """A settings model and those within it."""
    yield model
    for field in model.model_fields.values():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from below(field.annotation)


def lacking(model, bounds):
    where = f"{model.__module__}.{model.__name__}"
    return [
        f"{where}.{name}"
        for name, field in model.model_fields.items()
        if f"{where}.{name}" not in CHECKED
        and any(
            not any(isinstance(one, bounds) for one in found)
            for found in numbers(field.annotation, field.metadata)
        )
    ]


def test_every_number_has_a_lower_bound():
    known = all_models()
    assert len(known) > 30
    named = {f"{model.__module__}.{model.__name__}": model for model in known}
    assert not CONTENT.keys() - named.keys()
    wrong = [
        name for key, model in named.items() if key not in CONTENT for name in lacking(model, LOWER)
    ]
    assert not wrong, "give them a Field(ge=…) or Field(gt=…)"


def test_every_number_of_params_yaml_has_an_upper_bound():
    wrong = {name for root in SET for model in below(root) for name in lacking(model, UPPER)}
    assert not wrong, "give them a Field(le=…) or Field(lt=…)"


SBD = "models: {sbd: %s}"
WRONG = {
    SBD % "{search: {folds: 0}}": "models.sbd.search.folds: >= 2, not 0",
    SBD % "{protocol: {holdout: 1.5}}": "models.sbd.protocol.holdout: < 1, not 1.5",
    SBD % "{plus: {forest_trees: 0}}": "models.sbd.plus.forest_trees: >= 1, not 0",
    SBD % "{bootstrap: -5}": "models.sbd.bootstrap: >= 10, not -5",
    SBD % "{workers: -1}": "models.sbd.workers: >= 0, not -1",
    SBD % "{confidence: .nan}": "models.sbd.confidence: input should be a finite number, not nan",
    SBD % "{plus: {confidence: .inf}}": "models.sbd.plus.confidence: input should be ",
    SBD % "{seed: 7, seed: 8}": "key 'seed' is given twice, lines 1 and 1: keep one",
    "features: {sbd: {max_points: 100000}}": "features.sbd.max_points: <= 65536, not 100000",
    "export: {verify: {timeout_s: 0}}": "export.verify.timeout_s: > 0, not 0",
    "promotion: {gates: {test-set: {margin: 2}}}": "promotion.gates: test-set: margin: <= 1, not 2",
}
WORDS = {
    ": >= ": ": input should be greater than or equal to ",
    ": <= ": ": input should be less than or equal to ",
    ": > ": ": input should be greater than ",
    ": < ": ": input should be less than ",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_value_is_one_line_before_any_work(text, tmp_path, capsys):
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    words = ["--features", str(tmp_path / "none"), "--params", str(path)]
    assert main(["train", "sbd", "all", *words, "--out", str(tmp_path / "o")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    words = WRONG[text]
    for short, long in WORDS.items():
        words = words.replace(short, long)
    assert f"{path}: {words}" in error
    assert not (tmp_path / "o").exists()
