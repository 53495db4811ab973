"""Tables: what they are off by, and that compiled ones answer as their form."""

import json
import math
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_forms import SPECS
from small_networks import ACTIONS, policy, recurrent

from data.errors import UserError
from export.bundle.manifest import bundle_files
from export.document import dumps, loads
from export.fixed import INT32_MAX, INT32_MIN
from export.forms.grid import Grid
from export.forms.table import Table
from export.functions import nuwa_tanh
from export.lower.tabulate import tabulate
from export.onnx.source import source_from_onnx
from export.params import Options, VerifyParams
from export.source import Source
from export.tanh import bound, largest_error, stated_error, tanh_curve
from export.targets import emit
from export.toolchain.compiled import prove_header
from export.vectors import make_vectors
from export.verify import verify
from models.store import replace_directory
from pipelines.cli import main

QUICK = VerifyParams(random=200)
needs_compiler = pytest.mark.skipif(
    not (shutil.which("gcc") or shutil.which("clang")), reason="no C compiler on this machine"
)
SIZES = [
    (4097, 12, 12, True), (4097, 12, 12, False), (65, 16, 12, True), (2, 4, 4, True),
    (1000, 8, 15, False), (33, 20, 10, True), (3, 1, 0, True),
]  # fmt: skip


@pytest.mark.parametrize(("entries", "q", "places", "interpolate"), SIZES)
def test_error_is_what_is_stated_and_within_the_bound(entries, q, places, interpolate):
    curve = tanh_curve(places, q, entries, interpolate=interpolate)
    assert len(curve.entries) == entries
    reach = 2 * curve.limit
    x = np.arange(-reach, reach + 1)
    answers = curve.at(x) / 2.0**q
    worst = max(abs(a - math.tanh(int(i) / 2**places)) for a, i in zip(answers, x, strict=True))
    assert worst - 1e-12 <= largest_error(curve) <= bound(curve)
    # Past where the test looks, tanh only comes nearer to one.
    assert largest_error(curve) <= max(worst, 1 - curve.entries[-1] / 2**q) + 1e-12
    assert (curve.at(-x) == -curve.at(x)).all()
    assert (np.diff(curve.at(x)) >= 0).all()


def test_tables_of_4097_entries_in_q12_err_no_more_than_rounding_demands():
    assert largest_error(tanh_curve(12, 12, 4097)) <= 2.4e-4
    assert largest_error(tanh_curve(12, 12, 4097, interpolate=False)) <= 8e-4


def test_too_many_inputs_get_a_bound_that_holds():
    curve = tanh_curve(28, 24, 513)
    assert "largest_error" not in stated_error(curve)
    with pytest.raises(ValueError, match="too many"):
        largest_error(curve)
    x = np.random.default_rng(0).integers(INT32_MIN, INT32_MAX, 500_000)
    assert np.abs(curve.at(x) / 2.0**24 - np.tanh(x / 2.0**28)).max() <= bound(curve) < 1e-4


@needs_compiler
@pytest.mark.parametrize(("entries", "q", "places", "interpolate"), [*SIZES, (4097, 30, 31, True)])
def test_compiled_table_answers_as_the_form(entries, q, places, interpolate, tmp_path):
    options = Options(entries=entries, q=q, input_q=places, interpolate=interpolate)
    source = nuwa_tanh(options)
    files = emit("lut", source, options)
    header = tmp_path / "nuwa_tanh.h"
    header.write_bytes(files["nuwa_tanh.h"])
    assert files == emit("c", source, options)
    none = np.zeros((0, 1), dtype=np.int64)
    vectors = make_vectors(source.form, none, 300, 1)
    report = prove_header(header, "nuwa_tanh", source.form, vectors, QUICK, tmp_path)
    assert report["mismatches"] == 0
    assert report["sanitized"]["findings"] == 0


@needs_compiler
def test_one_wrong_entry_is_found(tmp_path):
    source = nuwa_tanh(Options(entries=257))
    text = emit("lut", source, Options())["nuwa_tanh.h"].decode()
    entry = source.form.curve.entries[100]
    (tmp_path / "nuwa_tanh.h").write_text(text.replace(f" {entry},", f" {entry + 1},", 1))
    vectors = make_vectors(source.form, np.zeros((0, 1), dtype=np.int64), 10, 1)
    report = prove_header(
        tmp_path / "nuwa_tanh.h", "nuwa_tanh", source.form, vectors, QUICK, tmp_path
    )
    assert report["mismatches"] > 0


@needs_compiler
def test_command_line(tmp_path, capsys):
    out = str(tmp_path / "tanh")
    options = ["-t", "lut", "-t", "c", "-t", "python", "-t", "json", "--set", "entries=129"]
    assert main(["export", "nuwa-tanh", *options, "--set", "q=14", "--out", out]) == 0
    assert main(["verify", out, "--random", "100", "--json"]) == 0
    captured = capsys.readouterr().out
    report = {t["target"]: t for t in json.loads(captured[captured.index("{") :])["targets"]}
    assert set(report) == {"lut", "c", "python", "json"}
    assert report["lut"]["largest_error"] == largest_error(tanh_curve(14, 14, 129))
    assert main(["export", "nuwa-tanh", "-t", "lut", "--set", "q=31", "--out", out]) == 2
    assert "q=31: 1 to 30 is possible" in capsys.readouterr().err


GOOD = json.loads(dumps(nuwa_tanh(Options(entries=5)).form))
MALFORMED = {
    "falling": {"entries": [0, 9, 8]},
    "not from zero": {"entries": [1, 9]},
    "one entry": {"entries": [0]},
    "entries too large": {"entries": [0, 2**31]},
    "no places": {"places": None},
    "mul 0": {"mul": 0},
    "down 0": {"down": 0},
    "a position beyond 64 bits": {"down": 61, "mul": 2**31 - 1, "frac": 20},
    "a table that is never left": {"mul": 1, "down": 60},
    "an unknown key": {"more": 1},
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_tables_are_refused(name):
    document = {**GOOD, "curve": {**GOOD["curve"], **MALFORMED[name]}}
    with pytest.raises(UserError, match="curve"):
        loads(json.dumps(document), "x")
    assert isinstance(loads(json.dumps(GOOD), "x"), Table)


cuts = st.lists(st.integers(-50, 50), max_size=5, unique=True).map(lambda e: tuple(sorted(e)))


@settings(max_examples=40, deadline=None)
@given(st.tuples(cuts, cuts, cuts, cuts), st.integers(0, 2**32 - 1))
def test_grid_is_what_comparisons_one_by_one_give(edges, seed):
    rng = np.random.default_rng(seed)
    cells = math.prod(len(e) + 1 for e in edges)
    values = tuple((int(v),) for v in rng.integers(0, 256, cells))
    form = Grid(SPECS, ("a", "b"), 127, edges, values)
    assert loads(dumps(form), "x") == form
    x = rng.integers(-52, 53, (60, 4))
    table = np.array(values).reshape([len(e) + 1 for e in edges])
    meant = [table[tuple(sum(v > c for c in e) for v, e in zip(r, edges, strict=True))] for r in x]
    assert (form.evaluate(x).scores == np.array(meant)).all()


def _source(values, labels=("a", "b")):
    return Source(
        "p", "1", "t", "x", SPECS, labels, 0.5, None, "", b"", values, np.zeros(len(values))
    )  # fmt: skip


@pytest.mark.parametrize("spacing", ["fit", "quantile"])
def test_tabulated_policy_spends_cells_where_they_count(spacing):
    def decide(x):
        return ((x[:, 0] > 1000) ^ (x[:, 2] > -300)).astype(np.int64)

    values = np.random.default_rng(0).uniform(-4000, 4000, (400, 4)).round()
    grid = tabulate(_source(values), decide, 400, spacing)
    assert len(grid.values) <= 400
    assert (grid.edges[1], grid.edges[3]) == ((), ())
    x = np.random.default_rng(1).integers(-4000, 4000, (3000, 4))
    assert (grid.evaluate(x).classes == decide(x)).mean() > (0.98 if spacing == "fit" else 0.85)


def test_a_policy_that_never_changes_is_one_cell():
    grid = tabulate(_source(np.zeros((0, 4))), lambda x: np.ones(len(x), int), 64, "even")
    assert grid.edges == ((),) * 4
    assert grid.evaluate(np.zeros((1, 4), int)).classes == 1
    with pytest.raises(UserError, match="cells=1"):
        tabulate(_source(np.zeros((0, 4))), lambda x: x[:, 0], 1, "even")


@needs_compiler
def test_policy_with_several_actions_is_tabulated_and_its_loss_stated(tmp_path):
    (tmp_path / "p.onnx").write_bytes(policy())
    source = source_from_onnx(tmp_path / "p.onnx")
    files = bundle_files(source, ["lut"], Options(cells=600), "the tests")
    replace_directory(tmp_path / "out", files)
    report = verify(tmp_path / "out", QUICK)
    assert report["ok"], report
    stated = json.loads(files["manifest.json"])["targets"]["lut"]
    grid = loads(files["p_lut.json"], "x")
    assert math.prod(stated["cells"].values()) == len(grid.values) <= 600
    assert grid.labels == ACTIONS
    found = report["targets"][0]["disagreement"]
    assert found["random"] == stated["disagreement"]["random"]
    assert 0 < found["random"]["share"] < 0.4


def test_what_has_a_state_has_no_table(tmp_path):
    (tmp_path / "p.onnx").write_bytes(recurrent("GRU"))
    with pytest.raises(UserError, match="depend on a state"):
        bundle_files(source_from_onnx(tmp_path / "p.onnx"), ["lut"], Options(), "the tests")


def test_curve_with_a_line_and_without_agree_on_entries():
    line, nearest = tanh_curve(10, 12, 257), tanh_curve(10, 12, 257, interpolate=False)
    at = [round(i * 2.0 ** (line.frac + line.down) / line.mul) for i in range(257)]
    x = np.array(at[::16])
    assert np.abs(line.at(x) - nearest.at(x)).max() <= 2
