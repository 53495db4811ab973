"""The exported scale-free features and verdicts against their meaning, integer for integer."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_feature_code import DENSE, LOGS, RAW, USUAL, hostile_calls

from data.errors import UserError
from data.ingest import ingest
from data.store import iter_connections
from export.bundle.manifest import bundle_files
from export.feature_code import generator
from export.feature_code.feed import build_feed
from export.feature_code.random_calls import random_calls
from export.feature_code.verdicts import integer_verdicts
from export.forms.linear import Linear
from export.forms.nodes import Nodes
from export.forms.tree import Tree
from export.params import Options
from export.source import Source, source_of
from export.toolchain.harness import SANITIZER_FLAGS
from export.toolchain.sanitize import no_sanitizers
from features.fixed_sbd import evaluate_pairs, wifi_of
from features.fixed_series import calls
from features.smartsbd_kernel import FEATURES
from features.windows import choose_pair
from models import store
from models.sbd.accumulate import VerdictSettings, accumulate, decide

pytestmark = pytest.mark.skipif(
    not (shutil.which("gcc") or shutil.which("clang")), reason="no C compiler on this machine"
)
VERDICTS = {"slope": 0.9, "offset": -0.2, "forget": 0.8, "temper": 0.7, "confidence": 0.9,
            "bound": 1.0}  # fmt: skip
"""What makes all three answers occur."""


def _source(features=FEATURES, params=USUAL, verdicts=VERDICTS, form=None):
    weights = [(-1) ** i * (40 + i) for i in range(len(features))]
    form = form or Linear(features, ("NSB", "SB"), 0, tuple(weights), -(1 << 21), 22)
    return Source(
        "a model", "1", "smartsbd-plus-kernel", "linear", features, form.labels, 0.5, form, "",
        b"", np.zeros((4, len(features))), np.zeros(4), feature_settings=params.model_dump(),
        verdicts=verdicts,
    )  # fmt: skip


def _built(work, flags=None, **kind):
    work.mkdir(parents=True, exist_ok=True)
    source = _source(**kind)
    for name, content in bundle_files(source, ["c"], Options(), "the tests").items():
        (work / name).write_bytes(content)
    (work / "build").mkdir()
    made_of = (work, "a_model", work / "build", 120)
    return build_feed(*made_of, features=len(source.features), flags=flags), source


def _differing(feed, source, made, params=USUAL):
    """Windows, how many the C has otherwise, and the verdicts that were seen."""
    settings_ = integer_verdicts(source.verdicts, source.form)
    windows = wrong = 0
    seen = set()
    for (given_calls, wifi), answer in zip(made, feed.run(made, 120), strict=True):
        meant = evaluate_pairs(given_calls, wifi, 2, params, source.features)
        found = source.form.evaluate(meant.x)
        verdicts = settings_ and settings_.run(found.scores.tolist())
        windows += len(meant.window)
        wrong += answer.unlike(meant, found.classes, verdicts)
        seen |= set(answer.verdict.tolist())
    return windows, wrong, seen


def _made(seed, params, count):
    rng = np.random.default_rng(seed)
    return [(random_calls(rng, params), int(rng.integers(-1, 2))) for _ in range(count)]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """As a kernel compiles it."""
    return _built(tmp_path_factory.mktemp("plus"))


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    """Under the address and undefined behaviour sanitizers, short windows."""
    work = tmp_path_factory.mktemp("sanitized-plus")
    if missing := no_sanitizers(work, 60):
        pytest.skip(missing)
    return _built(work / "bundle", flags=SANITIZER_FLAGS, params=DENSE)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(made=st.lists(st.tuples(hostile_calls(), st.integers(-2, 2)), min_size=1, max_size=5))
def test_hostile_calls_mean_the_same_and_break_nothing(sanitized, made):
    assert _differing(*sanitized, made, DENSE)[1] == 0


def test_made_up_connections_under_sanitizers(sanitized):
    windows, wrong, _ = _differing(*sanitized, _made(21, DENSE, 40), DENSE)
    assert windows > 250
    assert wrong == 0


def test_made_up_connections_as_a_kernel_compiles_it(kernel):
    windows, wrong, seen = _differing(*kernel, _made(22, USUAL, 40))
    assert windows > 100
    assert wrong == 0
    assert seen == {-1, 0, 1}


@pytest.mark.skipif(not RAW.is_dir(), reason="data/raw isn't in this checkout")
def test_real_logs_of_every_dataset(kernel, tmp_path):
    logs = [log for part in LOGS for log in sorted((RAW / part).glob("*.klog.zst"))[::120][:2]]
    ingest(logs, tmp_path / "events")
    made = []
    for row, events in iter_connections(tmp_path / "events"):
        pair = choose_pair(events)
        made.append((calls(events, pair, USUAL, False), wifi_of(row, pair)))
    windows, wrong, _ = _differing(*kernel, made)
    assert windows >= 3 * len(logs)
    assert wrong == 0


@pytest.mark.parametrize(
    "features",
    [FEATURES[:1], FEATURES[7:12], tuple(f for f in FEATURES if "Long" in f.name), FEATURES[::-1]],
    ids=["one", "some", "long", "all, in another order"],
)
def test_a_model_gets_the_features_that_it_uses(features, tmp_path):
    feed, source = _built(tmp_path / "bundle", features=features)
    assert _differing(feed, source, _made(23, USUAL, 8))[:2] == (
        sum(len(a.window) for a in feed.run(_made(23, USUAL, 8), 120)),
        0,
    )
    text = (tmp_path / "bundle" / "a_model_sbd.h").read_text()
    assert ("sbd_compute_long" in text) == any("Long" in f.name for f in features)
    assert len(re.findall(r"x\[A_MODEL_F_", text)) == len(features)


def test_frames_fit_the_smallest_kernels_and_memory_is_bounded(kernel):
    feed, _ = kernel
    assert feed.stack_bytes is None or feed.stack_bytes <= 512
    assert feed.state_bytes < 1 << 16
    text = (feed.executable.parents[1] / "a_model_sbd.h").read_text()
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for word in ("float", "double", "malloc", "int128", "goto"):
        assert not re.search(rf"\b{word}\b", code)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("k + (width + 1) / 2", "k + width / 2"),
        ("upto[level + step - 1] <= k", "upto[level + step - 1] < k"),
        ("turn & 1 ? x : x + lag", "turn & 1 ? x + lag : x"),
        ("if (s->blocks < SBD_BLOCKS)", "if (s->blocks < SBD_BLOCKS - 1)"),
        ("before = now;", "before = 0;"),
    ],
)
def test_a_single_slip_would_be_found(right, wrong, tmp_path):
    _, source = _built(tmp_path, params=DENSE)
    header = tmp_path / "a_model_sbd.h"
    assert right in header.read_text()
    header.write_text(header.read_text().replace(right, wrong))
    (tmp_path / "slip").mkdir()
    feed = build_feed(tmp_path, "a_model", tmp_path / "slip", 120, features=len(FEATURES))
    assert _differing(feed, source, _made(24, DENSE, 12), DENSE)[1] > 0


def test_a_slip_in_the_verdicts_would_be_found(tmp_path):
    _, source = _built(tmp_path, params=DENSE)
    header = tmp_path / "a_model_verdict.h"
    assert "* state >> 16" in header.read_text()
    header.write_text(header.read_text().replace("* state >> 16", "* state >> 17"))
    (tmp_path / "slip").mkdir()
    feed = build_feed(tmp_path, "a_model", tmp_path / "slip", 120, features=len(FEATURES))
    assert _differing(feed, source, _made(25, DENSE, 20), DENSE)[1] > 0


def test_three_subflows_are_refused():
    with pytest.raises(UserError, match="compare two subflows"):
        bundle_files(_source(), ["c"], Options(subflows=3), "the tests")


def test_verdicts_are_of_linear_models_alone():
    tree = Tree(FEATURES, ("NSB", "SB"), 500, Nodes((0, -1, -1), (1, 0, 1000), (2, 0, 0)))
    with pytest.raises(UserError, match="linear"):
        bundle_files(_source(form=tree), ["c"], Options(), "the tests")
    assert integer_verdicts({}, tree) is None


def test_a_model_without_verdicts_has_none(tmp_path):
    feed, source = _built(tmp_path / "bundle", verdicts={}, features=FEATURES[:3])
    assert _differing(feed, source, _made(26, USUAL, 6))[1:] == (0, {-1})
    assert not (tmp_path / "bundle" / "a_model_verdict.h").exists()


def test_other_families_have_no_such_code():
    assert generator("smartsbd-plus-kernel", FEATURES[:3]) is not None
    assert generator("smartsbd", FEATURES[:3]) is None
    assert generator("smartsbd-plus", FEATURES[:3]) is None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-9, 9), min_size=1, max_size=40), st.sampled_from((1.0, 1.5, 4.0)))
def test_integer_verdicts_are_those_of_training(log_odds, bound):
    """Within rounding: where the state in floats is clear of the limit, so is the verdict."""
    given_settings = {**VERDICTS, "bound": bound}
    form = _source().form
    fixed = integer_verdicts(given_settings, form)
    scores = [round(value * (1 << form.shift)) for value in log_odds]
    meant = VerdictSettings.parse(given_settings, "the test")
    clipped = np.clip(np.array(scores) / (1 << form.shift), -5.2933, 5.2933)
    evidence = meant.slope * clipped + meant.offset
    group = np.zeros(len(scores), np.int64)
    state = accumulate(evidence, group, meant.decay, meant.temperature, meant.most)
    clear = (np.abs(np.abs(state) - meant.limit) > 1e-3) | (np.abs(state) >= meant.most)
    found = np.array(fixed.run(scores))
    # At the bound of the limit itself both stand exactly there, or rounding is all between them.
    wanted = decide(state, meant.limit)
    assert (found == wanted)[clear & (np.abs(state) < meant.limit - 1e-3)].all()
    assert (found == wanted)[np.abs(state) > meant.limit + 1e-3].all()


def test_the_zoo_s_entry_carries_its_verdicts():
    entry = store.load(Path(store.ZOO) / "smartsbd-plus-kernel")
    source = source_of(entry)
    assert source.verdicts["bound"] == 1.0
    found = integer_verdicts(source.verdicts, source.form)
    assert found.limit == found.bound == round(np.log(9) * 65536)
    assert source_of(store.load(Path(store.ZOO) / "smartsbd-plus")).verdicts == {}
