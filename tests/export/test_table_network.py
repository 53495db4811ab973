"""Networks in table files: both readers take what was written and refuse everything else."""

import struct
import subprocess
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from c_readers import built
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_forms import SPECS
from test_bpf_network import network
from test_several import exported
from test_table import BIAS_AT, ITEMS_AT, PARTS_AT, mended
from test_targets_c import NOTHING, source_of

from data.errors import UserError
from export.bundle.manifest import bundle_files
from export.document import dumps, loads
from export.fixed import INT32_MAX, INT32_MIN
from export.forms.curve import MAX_ENTRIES
from export.forms.dense import MAX_LAYERS, MAX_WIDTH, Dense
from export.forms.mlp import Mlp
from export.params import Options, VerifyParams
from export.table_file import HEAD, MOST_LABELS, read, write
from export.table_network import ACTIVATIONS, CURVE, LAYER
from export.tanh import tanh_curve
from export.targets import emit, fitting
from export.toolchain import kernel_module
from export.vectors import make_vectors
from export.verify import verify
from features.spec import schema_hash
from models.store import replace_directory

SCHEMA = schema_hash(SPECS, {})
TINY = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "cczoo_network.h"
int main(int argc, char **argv)
{
	FILE *stream = argc > 2 ? fopen(argv[1], "rb") : NULL;
	static uint8_t file[1 << 20];
	size_t size = stream ? fread(file, 1, sizeof(file), stream) : 0;
	uint8_t *copy = malloc(size + 1);
	struct cczoo_network network;
	int32_t x[4], *scratch;
	int64_t scores[CCZOO_NETWORK_MAX_LABELS], class;
	int error;
	for (size_t i = 0; i < size; i++)
		copy[i + 1] = file[i];
	error = cczoo_network_load(&network, copy + 1, size, 4, strtoul(argv[2], NULL, 10), NULL);
	fprintf(stderr, "%s", cczoo_table_text(error));
	if (!error) {
		scratch = malloc(network.scratch * sizeof(*scratch));
		while (fread(x, sizeof(x), 1, stdin)) {
			class = cczoo_network_classify(&network, x, scratch, scores);
			fwrite(scores, sizeof(*scores), network.outputs, stdout);
			fwrite(&class, sizeof(class), 1, stdout);
		}
		free(scratch);
	}
	free(copy);
	return error != 0;
}
"""


def named(count):
    return tuple(f"label {i}" for i in range(count))


LAYERS = (
    Dense(((1, -2, 3, 0), (5, 0, 0, 2**20), (0, 0, 0, 0)), (5, -5, 2**40), 10, "tanh"),
    Dense(((3, -1, 7), (2, 2, 2)), (0, 1), 2, "relu"),
    Dense(((1, -7), (0, 2), (-3, 3)), (9, 0, -9), 0, "identity"),
)
FORM = Mlp(SPECS, named(3), 0, LAYERS, tanh_curve(13, 12, 9), 8)
CURVE_AT = HEAD.size + len(LAYERS) * LAYER.size
ENTRIES_AT = CURVE_AT + CURVE.size
SUMS_AT = ENTRIES_AT + 4 * len(FORM.curve.entries)


@pytest.fixture(scope="module")
def c_reader(tmp_path_factory):
    """Function: bytes, labels, observations -> what the C reader says and answers, sanitized."""
    work = tmp_path_factory.mktemp("reader")
    reader = built(work, PROGRAM, "cczoo_network.c")

    def said(content, labels=3, x=NOTHING):
        (work / "file").write_bytes(content)
        command = [reader, work / "file", str(labels)]
        given_rows = np.asarray(x, dtype=np.int32).tobytes()
        done = subprocess.run(command, input=given_rows, capture_output=True, check=False)
        return done.stderr.decode(), np.frombuffer(done.stdout, dtype=np.int64)

    return said


def agrees(c_reader, form, x):
    """Both readers take the file, and the C reader answers as the form."""
    content = write(form, SCHEMA)
    assert read(content, SPECS, form.labels, SCHEMA, "it") == form
    text, numbers = c_reader(content, len(form.labels), x)
    assert text == "loaded"
    answers, meant = numbers.reshape(len(x), form.outputs + 1), form.evaluate(x)
    assert (answers[:, -1] == meant.classes).all()
    assert (answers[:, :-1] == meant.scores.reshape(len(x), form.outputs)).all()


@st.composite
def networks(draw):
    """Of one to four layers, with weights that use all the room that their sums have."""
    outputs = draw(st.sampled_from([1, 1, 2, 3, 25]))
    labels = named(2 if outputs == 1 and draw(st.booleans()) else outputs)
    q = draw(st.integers(4, 20))
    entries, interpolate = draw(st.integers(2, 40)), draw(st.booleans())
    curve = tanh_curve(draw(st.integers(4, 20)), q, entries, interpolate=interpolate)
    widths = [4, *draw(st.lists(st.integers(1, 9), max_size=3)), outputs]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    layers, bound = [], 2**31
    for columns, rows in pairwise(widths):
        hidden = len(layers) < len(widths) - 2
        activation = draw(st.sampled_from(ACTIVATIONS)) if hidden else "identity"
        most = min(INT32_MAX, 2**62 // bound // columns) >> draw(st.integers(0, 28))
        weights = rng.integers(-most, most, (rows, columns), endpoint=True)
        biases = rng.integers(-(2**61), 2**61, rows) >> draw(st.integers(0, 60))
        shift = draw(st.integers(0, 40)) if hidden else 0
        rows_of = tuple(map(tuple, weights.tolist()))
        layers.append(Dense(rows_of, tuple(biases.tolist()), shift, activation))
        bound = layers[-1].bound(curve)
    cut = draw(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9))
    form = Mlp(SPECS, labels, cut, tuple(layers), curve, draw(st.integers(0, 62)))
    return loads(dumps(form), "it")


@TINY
@given(form=networks())
def test_both_readers_take_any_network_and_c_answers_as_it(c_reader, form):
    rng = np.random.default_rng(0)
    ends = rng.choice([INT32_MIN, INT32_MAX, 0, 1, -1], (60, 4))
    agrees(c_reader, form, np.concatenate([ends, rng.integers(-2000, 2000, (60, 4))]))


@TINY
@given(st.data())
def test_both_readers_agree_on_what_a_network_is(c_reader, data):
    content = bytearray(write(FORM, SCHEMA))
    at = data.draw(st.integers(HEAD.size // 4, len(content) // 4 - 2)) * 4
    old = struct.unpack_from("<I", content, at)[0]
    new = data.draw(st.integers(0, 2**32 - 1) | st.integers(-4, 4).map(lambda d: (old + d) % 2**32))
    struct.pack_into("<I", content, at, new)
    try:
        read(mended(bytes(content)), SPECS, FORM.labels, SCHEMA, "x")
        refusal = ""
    except UserError as error:
        refusal = str(error)
    found_good = not refusal or "model hash" in refusal
    assert (c_reader(mended(bytes(content)))[0] == "loaded") == found_good


def put(at, number, code="<I", form=FORM):
    content = bytearray(write(form, SCHEMA))
    struct.pack_into(code, content, at, number)
    return mended(bytes(content))


def written(**parts):
    """A file of a form that nobody has checked."""
    return write(replace(FORM, **parts), SCHEMA)


def curved(**parts):
    return written(curve=replace(FORM.curve, **parts))


def first(**parts):
    return written(layers=(replace(LAYERS[0], **parts), *LAYERS[1:]))


def last(**parts):
    return written(layers=(*LAYERS[:-1], replace(LAYERS[-1], **parts)))


def wide(width):
    """One layer of so many units, all of them looking at the first feature."""
    rows = tuple((i, 0, 0, 1) for i in range(width))
    return (
        Dense(rows, tuple(range(width)), 3, "relu"),
        Dense(((1,) * width,) * 3, (0, 1, 2), 0, "identity"),
    )


def deep(layers):
    same = tuple(tuple(int(i == j) for j in range(4)) for i in range(4))
    hidden = Dense(same, (0,) * 4, 0, "identity")
    return (*(hidden,) * (layers - 1), Dense(same[:3], (0,) * 3, 0, "identity"))


def full(bias):
    """Sums of the first layer that reach 2**63 - 2**31 + bias."""
    rows = ((-INT32_MAX, -INT32_MAX, -1, 0), (0, 0, 0, 1))
    hidden = Dense(rows, (bias, 0), 31, "identity")
    return (hidden, Dense(((1, 0), (0, 1), (0, 0)), (0, 0, 0), 0, "identity"))


GOOD = write(FORM, SCHEMA)
MALFORMED = {
    "empty": (b"", "shorter"),
    "cut off": (GOOD[:-1], "not as long"),
    "a bit flipped": (GOOD[:130] + bytes([GOOD[130] ^ 1]) + GOOD[131:], "checksum"),
    "trees": (mended(GOOD[:6] + b"\4" + GOOD[7:]), "kind of model"),
    "four labels": (mended(GOOD[:7] + b"\4" + GOOD[8:]), "number of classes"),
    "two scores": (last(weights=((1, 2),) * 2, biases=(0, 0)), "number of classes"),
    "five features": (put(12, 5), "number of features"),
    "no layers": (put(PARTS_AT, 0), "counts"),
    "17 layers": (written(layers=deep(MAX_LAYERS + 1)), "counts"),
    "more layers than bytes": (put(PARTS_AT, 2**32 - 1), "counts"),
    "63 places": (put(BIAS_AT, 63, "<q"), "counts"),
    "negative places": (put(BIAS_AT, -1, "<q"), "counts"),
    "bytes too many": (mended(GOOD[:-4] + b"\0" * 4 + GOOD[-4:]), "counts"),
    "bytes too few": (mended(GOOD[:-8] + GOOD[-4:]), "counts"),
    "entries too many": (put(ITEMS_AT, 10), "counts"),
    "entries that overflow 32 bits of length": (put(ITEMS_AT, 2**30 + 9), "counts"),
    "no units": (written(layers=(replace(LAYERS[0], weights=(), biases=()), *LAYERS[1:])), "layer"),
    "1025 units": (written(layers=wide(MAX_WIDTH + 1)), "layer"),
    "a shift of 63": (first(shift=63), "layer"),
    "activation 4": (put(HEAD.size + 3, 4, "<B"), "layer"),
    "tanh without a table": (written(curve=None), "layer"),
    "a shift of the last layer": (last(shift=1), "layer"),
    "an activation of the last layer": (last(activation="relu"), "layer"),
    "one entry": (curved(entries=(0,)), "tanh"),
    "too many entries": (curved(entries=(0,) * (MAX_ENTRIES + 1)), "tanh"),
    "a table that starts elsewhere": (curved(entries=(1, 2)), "tanh"),
    "a falling table": (put(ENTRIES_AT + 4, 4000), "tanh"),
    "a negative entry": (put(ENTRIES_AT + 4, 2**32 - 1), "tanh"),
    "a tanh above one": (put(SUMS_AT - 4, 4097), "tanh"),
    "32 bits of input": (curved(places=32), "tanh"),
    "no bits of output": (curved(q=0), "tanh"),
    "31 bits of output": (curved(q=31), "tanh"),
    "a factor of 0": (curved(mul=0), "tanh"),
    "a factor of 32 bits": (curved(mul=2**31), "tanh"),
    "no shift of the position": (curved(down=0), "tanh"),
    "a large shift of the position": (curved(down=62), "tanh"),
    "21 bits between entries": (curved(frac=21), "tanh"),
    "a shift that no field holds": (curved(down=2**32 - 1, frac=2**32 - 1), "tanh"),
    "a table that ends too late": (curved(mul=1, down=30, frac=12), "tanh"),
    "a position of 64 bits": (curved(down=60, frac=0), "tanh"),
    "the smallest weight": (put(SUMS_AT + 24, -(2**31), "<i"), "could overflow"),
    "an overflowing bias": (put(SUMS_AT, 2**62 + 1, "<q"), "could overflow"),
    "an overflowing negative bias": (put(SUMS_AT, -(2**63), "<q"), "could overflow"),
    "an overflowing sum": (first(weights=((INT32_MAX,) * 4,) * 3), "could overflow"),
    "a sum one too large": (written(layers=full(2**31)), "could overflow"),
    "an overflowing sum of tanh": (
        written(
            layers=(LAYERS[0], Dense(((INT32_MAX,) * 3,) * 3, (2**62,) * 3, 0, "identity")),
            curve=replace(FORM.curve, q=30, entries=(0, 2**30), mul=2**30),
        ),
        "could overflow",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_is_refused_by_both_readers(name, c_reader):
    content, said = MALFORMED[name]
    text, answers = c_reader(content)
    assert said in text
    assert "\n" not in text, text
    assert not len(answers)
    with pytest.raises(UserError) as caught:
        read(content, SPECS, FORM.labels, SCHEMA, "x.cct")
    assert str(caught.value).startswith("x.cct: ")
    assert "model hash" not in str(caught.value)


WIDEST = {
    "it": {},
    "1024 units": {"layers": wide(MAX_WIDTH)},
    "16 layers": {"layers": deep(MAX_LAYERS)},
    "the largest sum": {"layers": full(INT32_MAX)},
    "the most entries": {"curve": tanh_curve(20, 20, MAX_ENTRIES)},
    "a last entry that counts": {"curve": replace(FORM.curve, entries=(0, 4096), mul=2**30)},
}


@pytest.mark.parametrize("name", WIDEST)
def test_the_widest_are_taken(name, c_reader):
    form = loads(dumps(replace(FORM, **WIDEST[name])), "it")
    rows = [[INT32_MIN] * 4, [INT32_MAX] * 4, [INT32_MIN, INT32_MIN, INT32_MAX, 1]]
    agrees(c_reader, form, np.concatenate([rows, make_vectors(form, NOTHING, 20, 1).x[:200]]))


def test_255_outputs_are_taken_and_256_refused(c_reader):
    def outputs(count):
        layer = Dense(tuple((i % 7, 0, 1, -i) for i in range(count)), (0,) * count, 0, "identity")
        return Mlp(SPECS, named(count), 0, (layer,), None, 0)

    agrees(c_reader, outputs(MOST_LABELS), np.arange(-8, 8).reshape(4, 4))
    with pytest.raises(UserError, match="256 labels don't fit a table file, 255 do"):
        write(outputs(256), SCHEMA)
    assert "table" in fitting(source_of(outputs(MOST_LABELS)))
    assert "table" not in fitting(source_of(outputs(256)))


@pytest.mark.parametrize(
    ("outputs", "hidden", "activation", "real"),
    [
        (1, (8,), "tanh", False),
        (25, (12,), "logistic", False),
        (3, (10, 8), "relu", True),
    ],
)
def test_a_trained_network_verifies(outputs, hidden, activation, real, tmp_path):
    form = network(outputs, hidden, activation, real)
    assert form.outputs == outputs
    bundle = tmp_path / "bundle"
    if len(form.labels) == 2:
        values = np.arange(8.0).reshape(2, 4)
        source = replace(source_of(form), values=values, probability=np.zeros(2))
        replace_directory(bundle, bundle_files(source, ["table"], Options(), "the tests"))
    else:
        exported(form, bundle, target="table")
    report = verify(bundle, VerifyParams(random=50))
    assert report["ok"], report
    (table,) = report["targets"]
    assert table["mismatches"] == 0
    assert table["sanitized"] == {"vectors": table["vectors"], "findings": 0}
    assert table["damaged"]["accepted"] == 0
    assert table["damaged"]["inverted"] > 100
    assert 0 < table["stack_bytes"] < 1024
    assert ("kernel_module" in table) == (len(form.labels) == 2)
    if "kernel_module" in table and kernel_module.headers() is not None:
        assert table["kernel_module"].startswith("compiled against ")
        assert "warning" not in table["kernel_module"]


def test_a_module_comes_with_one_score_of_two_classes_alone():
    one = Dense(((1, 2),), (0,), 0, "identity")
    of_two = replace(FORM, labels=named(2), layers=(*LAYERS[:2], one))
    files = emit("table", source_of(of_two), Options())
    assert files["Kbuild"].decode().endswith("a_model_kmod.o cczoo_network.o\n")
    assert b"cczoo_network_load(" in files["a_model_kmod.c"]
    readers = {f"cczoo_{name}.{end}" for name in ("table", "network") for end in "ch"}
    assert set(emit("table", source_of(FORM), Options())) == {"a_model.cct", *readers}
