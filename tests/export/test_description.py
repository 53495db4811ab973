"""The description of an entry is made in one place, and is what the released ones hold."""

import dataclasses

import pytest

from data.errors import UserError
from export.description import describe
from export.source import source_of
from models import store

TRAINING = {
    "family", "version", "data_hash", "git_commit", "created_by", "calibration", "accumulation",
}  # fmt: skip


def again(model, **changed):
    """The entry's description, from its source and from what training alone knew."""
    rest = set(model.meta.files) - {"model.onnx", "model.json", "vectors.json"}
    more = {name: model.read(name) for name in rest - {"metrics.json", "card.md"}}
    return describe(
        dataclasses.replace(source_of(model), **changed),
        model.meta.model_dump(mode="json", include=TRAINING),
        model.read_json("metrics.json"),
        model.read("card.md").decode(),
        states=[state.model_dump() for state in model.meta.states],
        more=more,
    )


@pytest.mark.parametrize("name", store.names())
def test_a_released_entry_described_again_has_the_same_bytes(name):
    model = store.load(name)
    found = again(model).contents()
    assert found.keys() == {*model.meta.files, "meta.json"}
    for file, content in found.items():
        assert content == model.read(file), file


def test_what_is_written_is_what_is_in_memory(tmp_path):
    found = again(store.load("smartsbd-dt"), name="another")
    written = found.write(tmp_path)
    assert written == tmp_path / "another"
    assert {path.name: path.read_bytes() for path in written.iterdir()} == found.contents()
    assert store.load("another", tmp_path).meta.name == "another"


def test_a_wrong_key_is_refused_in_memory_too():
    found = again(store.load("smartsbd-dt"))
    wrong = dataclasses.replace(found, meta={**found.meta, "famly": "a"})
    with pytest.raises(UserError, match=r"smartsbd-dt.*famly: unknown key, did you mean 'family'"):
        wrong.contents()
