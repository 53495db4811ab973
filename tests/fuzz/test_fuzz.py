"""A little fuzzing from the stored seeds; ``make fuzz`` takes longer."""

import json

import pytest

from export.bundle.manifest import read_manifest
from export.document import dumps, loads
from export.forms import FORMS
from export.table_file import read, write
from features.spec import schema_hash
from models.meta import Meta
from tests.fuzz.fuzz import HERE, TARGETS, Missing, fuzz

EXECUTIONS = {
    "feature_code": 1000, "document": 1000, "manifest": 500, "table": 30_000, "network": 30_000,
}  # fmt: skip
"""What takes two or three seconds, where nothing else goes on."""


@pytest.mark.parametrize("name", TARGETS)
def test_some_executions_find_nothing(name, tmp_path):
    try:
        found = fuzz(name, 900, tmp_path, EXECUTIONS[name])
    except Missing as error:
        pytest.skip(str(error))
    assert found["finding"] == ""
    assert int(found["executions"]) >= EXECUTIONS[name]
    assert int(found["edges"]) > 80


def test_seeds_are_of_this_version():
    folders = [HERE / "corpus" / name for name in ("table", "network")]
    tables = {path.stem: path for folder in folders for path in folder.iterdir()}
    documents = list((HERE / "corpus" / "document").iterdir())
    kinds = set()
    for path in documents:
        form = loads(path.read_bytes(), path.name)
        kinds.add(form.kind)
        assert dumps(form) == path.read_text()
        table = tables.pop(path.stem, None)
        if table:
            schema = schema_hash(form.features, {})
            assert write(form, schema) == table.read_bytes()
            found = read(table.read_bytes(), form.features, form.labels, schema, table.name)
            assert found == form
    assert kinds == set(FORMS), "a kind without a seed in corpus/document is hardly fuzzed"
    assert set(tables) == {"left", "right"}, "the deepest trees, too large to keep twice"


def test_seeds_of_manifests_are_of_this_version():
    """Otherwise the fuzzer wouldn't come past the first check."""
    taken = set()
    for path in (HERE / "corpus" / "manifest").iterdir():
        content = path.read_bytes()
        if content.startswith(b"meta"):
            Meta.parse(json.loads(content[4:]), path.name)
            taken.add("meta")
        else:
            taken.add(read_manifest(content, path.name)["kind"])
    assert taken == {"meta", "lut", "tree"}
