"""Table files: both readers take what was written and refuse everything else."""

import shutil
import struct
import subprocess

import pytest
from c_readers import built
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_forms import SPECS, forests, nodes, trees
from test_targets_c import source_of

from data.errors import UserError
from export.bundle.manifest import read_bundle
from export.forms.linear import Linear
from export.forms.nodes import MAX_DEPTH, Nodes
from export.forms.tree import Tree
from export.params import Options, VerifyParams
from export.table_file import HEAD, RIGHT_BITS, crc32c, read, write
from export.targets import emit
from export.targets.table import prove
from export.toolchain import kernel_module
from export.vectors import make_vectors
from export.verify import verify
from features.spec import schema_hash

LABELS = ("NSB", "SB")
TREE = Tree(SPECS, LABELS, 7, Nodes((1, -1, 0, -1, -1), (5, 1, -3, 2, 9), (2, 0, 4, 0, 0)))
LINEAR = Linear(SPECS, LABELS, 0, (1, -2, 3, 2**20), -5, 4)
SCHEMA = schema_hash(SPECS, {})
GOOD = write(TREE, SCHEMA)
SIZE_AT, FEATURES_AT, CUT_AT, PARTS_AT, ITEMS_AT, BIAS_AT = 8, 12, 16, 88, 92, 96
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "cczoo_table.h"
int main(int argc, char **argv)
{
	FILE *stream = argc > 1 ? fopen(argv[1], "rb") : NULL;
	static uint8_t file[1 << 20];
	static const uint8_t zeros[CCZOO_TABLE_HASH_BYTES];
	struct cczoo_table table;
	size_t size = stream ? fread(file, 1, sizeof(file), stream) : 0;
	uint8_t *copy = malloc(size + 1);
	int error;
	for (size_t i = 0; i < size; i++)
		copy[i + 1] = file[i];
	error = cczoo_table_load(&table, copy + 1, size, 4, argc > 2 ? zeros : NULL);
	puts(cczoo_table_text(error));
	free(copy);
	return error;
}
"""


@pytest.fixture(scope="module")
def c_reader(tmp_path_factory):
    """Function: bytes -> what the C reader says of them, from an odd address, sanitized."""
    work = tmp_path_factory.mktemp("reader")
    reader = built(work, PROGRAM, "cczoo_table.c")

    def said(content, *schema):
        (work / "file").write_bytes(content)
        command = [reader, work / "file", *schema]
        done = subprocess.run(command, capture_output=True, check=False)
        assert not done.stderr, done.stderr.decode()
        return done.stdout.decode().strip()

    return said


def mended(content):
    """The same with the right length and checksum, which hide no other mistake."""
    content = content[:SIZE_AT] + struct.pack("<I", len(content)) + content[SIZE_AT + 4 :]
    return content[:-4] + struct.pack("<I", crc32c(content[:-4]))


def put(at, numbers, form=TREE, code="<I"):
    content = bytearray(write(form, SCHEMA))
    struct.pack_into(code, content, at, numbers)
    return mended(bytes(content))


def node(index, value, feature, right):
    content = bytearray(GOOD)
    link = feature << RIGHT_BITS | right
    struct.pack_into("<iI", content, HEAD.size + 4 + 8 * index, value, link)
    return mended(bytes(content))


def resized(extra, form=TREE):
    content = write(form, SCHEMA)
    return mended(content[:-4] + extra + content[-4:])


def chain(depth):
    """Comparisons one below the other, each the right child of the one before."""
    feature = [0, -1] * depth + [-1]
    right = [x for i in range(depth) for x in (2 * i + 2, 0)] + [0]
    return Nodes(tuple(feature), (0,) * len(feature), tuple(right))


MALFORMED = {
    "empty": (b"", "shorter"),
    "a head without its end": (GOOD[:107], "shorter"),
    "another magic": (mended(b"CCZX" + GOOD[4:]), "not a table file"),
    "another version": (mended(GOOD[:4] + b"\2\0" + GOOD[6:]), "another version"),
    "version in the other byte order": (mended(GOOD[:4] + b"\0\1" + GOOD[6:]), "another version"),
    "cut off": (GOOD[:-1], "not as long"),
    "added to": (GOOD + b"\0", "not as long"),
    "a bit flipped": (GOOD[:110] + bytes([GOOD[110] ^ 1]) + GOOD[111:], "checksum"),
    "kind 0": (mended(GOOD[:6] + b"\0" + GOOD[7:]), "kind of model"),
    "kind 4": (mended(GOOD[:6] + b"\4" + GOOD[7:]), "kind of model"),
    "three classes": (mended(GOOD[:7] + b"\3" + GOOD[8:]), "number of classes"),
    "five features": (put(FEATURES_AT, 5), "number of features"),
    "no features": (put(FEATURES_AT, 0), "number of features"),
    "no nodes": (put(ITEMS_AT, 0), "counts"),
    "more nodes than there are": (put(ITEMS_AT, 6), "counts"),
    "nodes that overflow 32 bits of length": (put(ITEMS_AT, 0x20000005), "counts"),
    "two roots in a tree": (put(PARTS_AT, 2), "counts"),
    "no roots": (put(PARTS_AT, 0), "counts"),
    "bytes between nodes and checksum": (resized(b"\0"), "counts"),
    "a bias in a tree": (put(BIAS_AT, 1), "isn't 0"),
    "a root elsewhere": (put(HEAD.size, 2), "roots"),
    "a feature out of range": (node(0, 5, 4, 2), "compares a feature"),
    "a child of itself": (node(2, 5, 0, 2), "preorder"),
    "a cycle": (node(2, 5, 1, 0), "preorder"),
    "a child beyond the end": (node(0, 5, 1, 5), "preorder"),
    "two parents": (node(0, 5, 1, 4), "preorder"),
    "a leaf too early": (node(0, 5, 0, 0), "roots"),
    "a subtree missing": (node(4, 5, 1, 6), "preorder"),
    "too deep": (write(Tree(SPECS, LABELS, 0, chain(MAX_DEPTH + 1)), SCHEMA), "deeper"),
    "an overflowing sum": (
        write(Linear(SPECS, LABELS, 0, (2**31 - 1,) * 4, 0, 4), SCHEMA),
        "could overflow",
    ),
    "an overflowing bias": (put(BIAS_AT, 2**62 + 1, LINEAR, "<q"), "could overflow"),
    "the smallest weight": (put(HEAD.size, -(2**31), LINEAR, "<i"), "could overflow"),
    "63 binary places": (put(PARTS_AT, 63, LINEAR), "counts"),
    "a weight too many": (resized(b"\0" * 4, LINEAR), "counts"),
    "fewer weights than features": (put(ITEMS_AT, 3, LINEAR), "counts"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_is_refused_by_both_readers(name, c_reader):
    content, said = MALFORMED[name]
    assert said in c_reader(content)
    with pytest.raises(UserError) as caught:
        read(content, SPECS, LABELS, SCHEMA, "x.cct")
    assert str(caught.value).startswith("x.cct: ")
    assert "\n" not in str(caught.value)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(trees | forests)
def test_round_trip_and_the_c_reader_takes_it(c_reader, form):
    content = write(form, SCHEMA)
    assert read(content, SPECS, LABELS, SCHEMA, "x") == form
    assert c_reader(content) == "loaded"


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(nodes, st.data())
def test_both_readers_agree_on_what_a_tree_is(c_reader, given_nodes, data):
    form = Tree(SPECS, LABELS, 0, given_nodes)
    content = bytearray(write(form, SCHEMA))
    at = data.draw(st.integers(HEAD.size // 4, len(content) // 4 - 2)) * 4
    old = struct.unpack_from("<I", content, at)[0]
    new = data.draw(st.integers(0, 2**32 - 1) | st.integers(-4, 4).map(lambda d: (old + d) % 2**32))
    struct.pack_into("<I", content, at, new)
    try:
        read(mended(bytes(content)), SPECS, LABELS, SCHEMA, "x")
        refusal = ""
    except UserError as error:
        refusal = str(error)
    # Python knows the model's hash besides, which comes last: all before it was found right.
    found_good = not refusal or "model hash" in refusal
    assert (c_reader(mended(bytes(content))) == "loaded") == found_good


def test_deepest_tree_loads(c_reader):
    form = Tree(SPECS, LABELS, 0, chain(MAX_DEPTH))
    assert c_reader(write(form, SCHEMA)) == "loaded"
    assert read(write(form, SCHEMA), SPECS, LABELS, SCHEMA, "x") == form


def test_linear_round_trip(c_reader):
    assert read(write(LINEAR, SCHEMA), SPECS, LABELS, SCHEMA, "x") == LINEAR
    assert c_reader(write(LINEAR, SCHEMA)) == "loaded"


def test_other_features_and_other_content_are_named(c_reader):
    assert "made for other features" in c_reader(GOOD, "zeros")
    with pytest.raises(UserError, match="other features"):
        read(GOOD, SPECS, LABELS, schema_hash(SPECS, {"window_factor": 25}), "")
    with pytest.raises(UserError, match="model hash"):
        read(put(CUT_AT, 8, code="<q"), SPECS, LABELS, SCHEMA, "x")


def test_checksum_is_castagnolis():
    assert crc32c(b"123456789") == 0xE3069283


@pytest.mark.parametrize("name", ["tree", "forest", "linear"])
def test_bundle_verifies(name, bundles, tmp_path):
    copy = tmp_path / name
    shutil.copytree(bundles / name, copy)
    report = verify(copy, VerifyParams(random=50))
    (table,) = [target for target in report["targets"] if target["target"] == "table"]
    assert "error" not in table
    assert table["mismatches"] == 0
    assert table["sanitized"] == {"vectors": table["vectors"], "findings": 0}
    size = (copy / f"{name}.cct").stat().st_size
    assert table["file_bytes"] == size
    assert table["damaged"]["accepted"] == 0
    assert size >= 20000 or table["damaged"]["inverted"] == size == table["damaged"]["truncated"]
    if kernel_module.headers() is None:
        assert table["kernel_module"] == (
            "no kernel headers here: apt-get install linux-headers-amd64"
        )
    else:
        assert table["kernel_module"].startswith("compiled against ")
        assert "warning" not in table["kernel_module"]


def test_a_reader_that_answers_otherwise_is_found(bundles, tmp_path):
    copy = tmp_path / "tree"
    shutil.copytree(bundles / "tree", copy)
    bundle = read_bundle(copy)
    reader = copy / "cczoo_table.c"
    text = reader.read_text()
    assert "<= s32_at(node) ?" in text
    reader.write_text(text.replace("<= s32_at(node) ?", "< s32_at(node) ?"))
    vectors = make_vectors(bundle.form, bundle.integers, 50, 1)
    report = prove(bundle, vectors, VerifyParams(), tmp_path)
    assert 0 < report["mismatches"] < len(vectors.x) // 2


def test_a_long_name_is_cut_for_the_kernel():
    form = TREE
    module = emit("table", source_of(form, "a-name-of-more-than-15"), Options())
    text = module["a_name_of_more_than_15_kmod.c"].decode()
    (line,) = [line for line in text.splitlines() if ".name = " in line]
    name = line.split('"')[1]
    assert name.startswith("a_name_of_")
    assert len(name) == 15


def test_without_headers_the_module_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_module, "MODULES", tmp_path)
    monkeypatch.setattr(kernel_module, "SOURCES", tmp_path)
    said = kernel_module.compile_module(tmp_path, 10)
    assert said == "no kernel headers here: apt-get install linux-headers-amd64"
