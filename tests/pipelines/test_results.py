"""Result files: each is what its schema says, and the same again when it is read and written."""

import dataclasses
import json
import types
import typing
from pathlib import Path

import numpy as np
import pytest
import typing_extensions
from annotated_types import Ge
from pydantic import BaseModel, JsonValue

from data import yaml_text
from data.errors import UserError
from models.sbd.results.accuracy import TABLE5, ValueRow
from models.sbd.results.neural import CURVE
from models.sbd.results.verdicts import LOFO, PLUS
from pipelines.result_files import FILES
from tests.pipelines.written_tables import written

ROOT = Path(__file__).parents[2]
SIMPLE = {bool: True, int: 3, float: 0.25, str: "b"}


def example(content, place=(), needed=None):
    """What a type is in JSON; to `needed` go the places of keys that it can't do without."""
    needed = [] if needed is None else needed
    args = typing.get_args(content)
    origin = typing.get_origin(content)
    if origin in (typing.Annotated, typing.Union, types.UnionType):
        return example(args[0], place, needed)
    if origin is typing.Literal:
        return args[0]
    if origin is tuple:
        return [example(args[0], (*place, 0), needed)]
    if origin is dict:
        return {"a": example(args[1], (*place, "a"), needed)}
    if content in SIMPLE:
        return SIMPLE[content]
    if isinstance(content, type) and issubclass(content, BaseModel):
        keys = {one.alias or name: one for name, one in content.model_fields.items()}
        if content is ValueRow:  # the attribute stands in the file by its own name
            keys = {{"value": "family"}.get(key, key): keys[key] for key in keys if key != "column"}
        needed += [(*place, key) for key, one in keys.items() if one.is_required()]
        return {key: allowed(one, (*place, key), needed) for key, one in keys.items()}
    if dataclasses.is_dataclass(content) or typing_extensions.is_typeddict(content):
        keys = typing.get_type_hints(content)
        return {key: example(one, (*place, key), needed) for key, one in keys.items()}
    assert content is JsonValue, content
    return {"any": ["JSON"]}


def allowed(field, place, needed):
    """What a field is in JSON, no lower than it may be."""
    low = max((rule.ge for rule in field.metadata if isinstance(rule, Ge)), default=None)
    found = example(field.annotation, place, needed)
    return found if low is None or found >= low else type(found)(low)


def without(tree, place):
    copy = part = json.loads(json.dumps(tree))
    for key in place[:-1]:
        part = part[key]
    del part[place[-1]]
    return copy


@pytest.mark.parametrize("name", FILES)
def test_what_is_read_and_written_again_is_the_same(name, tmp_path):
    file = FILES[name]
    tree = example(file.content)
    written_ = file.write(tmp_path, tree)
    text = (tmp_path / file.name).read_text()
    assert json.loads(text) == tree
    assert file.read(tmp_path) == written_
    file.write_at(tmp_path / "again.json", written_)
    assert (tmp_path / "again.json").read_text() == text


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_lacks_a_field_is_one_line(name, tmp_path):
    file, needed = FILES[name], []
    tree = example(file.content, (), needed)
    path = tmp_path / "of-before.json"
    for place in needed:
        path.write_text(json.dumps(without(tree, place)))
        with pytest.raises(UserError) as caught:
            file.read_at(path)
        said = str(caught.value)
        assert said.startswith(f"{path}: of another version of cczoo: ")
        assert said.endswith(f": make it again with `{file.made_by}`")
        assert "\n" not in said
    # Numbers by name, such as those of a headline, have no fields: only their kind is known.
    path.write_text('{"a": "text"}')
    with pytest.raises(UserError, match="of another version"):
        file.read_at(path)


def test_tables_of_a_training_are_read_whole(tmp_path):
    assert len(written()) == 10
    for name, text in written().items():
        file = FILES[f"sbd/{name}"]
        (tmp_path / name).write_text(text)
        file.write_at(tmp_path / "again.json", file.read(tmp_path))
        assert (tmp_path / "again.json").read_text() == text, name


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("neural/neural.json", "data/reference/neural.json"),
        ("neural/neural.json", "benchmarks/results/neural.json"),
        ("auto-table5/automl.json", "benchmarks/results/automl.json"),
    ],
)
def test_kept_results_are_of_this_version(name, path):
    FILES[name].read_at(ROOT / path)


def test_every_result_of_the_pipeline_has_a_schema():
    stages = yaml_text.read(ROOT / "dvc.yaml")["stages"]
    outs = [out for stage in stages.values() for out in stage.get("outs", [])]
    outs += [one for stage in stages.values() for one in stage.get("metrics", [])]
    paths = {out if isinstance(out, str) else next(iter(out)) for out in outs}
    found = {path.removeprefix("reports/") for path in paths if path.startswith("reports/")}
    # What `cczoo verify --json` printed is for a person, nothing reads it.
    assert {path for path in found if path.endswith(".json")} - {"verify.json"} <= FILES.keys()


def test_what_is_missing_or_no_json_says_how_to_make_it(tmp_path):
    assert PLUS.made_by.startswith("cczoo train sbd ")
    with pytest.raises(UserError, match=f"plus.json: missing: make it with `{PLUS.made_by}`"):
        PLUS.read(tmp_path)
    (tmp_path / "plus.json").write_text('{"chosen": ')
    with pytest.raises(UserError, match=f"not JSON: .*: make it again with `{PLUS.made_by}`"):
        PLUS.read(tmp_path)


def test_too_few_families_are_an_empty_mapping(tmp_path):
    assert PLUS.write(tmp_path, {}) is None
    assert (tmp_path / "plus.json").read_text() == "{}\n"
    assert PLUS.read(tmp_path) is None
    found = LOFO.write(tmp_path, {"families": [], "nested": {}, "candidates": {"lr": {}}})
    assert (found.nested, found.candidates) == (None, {"lr": None})


def test_numbers_are_written_as_json_has_them(tmp_path):
    point = {"epoch": np.int64(0), "loss": np.float32(0.5), "validation_accuracy": 1.0}
    (read,) = CURVE.write(tmp_path, [{**point, "validation_loss": float("nan")}])
    assert (read.epoch, read.loss, read.validation_loss) == (0, 0.5, None)
    assert '"validation_loss": null' in (tmp_path / "curve.json").read_text()


def test_nothing_is_written_that_could_not_be_read(tmp_path):
    with pytest.raises(ValueError, match="both"):
        TABLE5.write(tmp_path, [{"dataset": "ALL", "model": "dt"}])
    assert not list(tmp_path.iterdir())


def test_what_is_read_can_not_be_changed(tmp_path):
    (row,) = TABLE5.write(tmp_path, example(TABLE5.content))
    with pytest.raises(ValueError, match="frozen"):
        row.model = "other"
