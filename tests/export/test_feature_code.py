"""The exported features against their meaning: hostile calls, real logs, every subset of them."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.errors import UserError
from data.ingest import ingest
from data.store import iter_connections
from export.bundle.manifest import bundle_files
from export.feature_code import generator
from export.feature_code.feed import build_feed
from export.feature_code.random_calls import random_calls
from export.forms.nodes import Nodes
from export.forms.tree import Tree
from export.params import Options, VerifyParams
from export.source import Source
from export.toolchain.harness import SANITIZER_FLAGS, CannotRun
from export.toolchain.sanitize import no_sanitizers
from export.verify import verify
from features.fixed_sbd import evaluate_pairs, wifi_of
from features.fixed_series import Calls, calls
from features.params import SbdParams
from features.smartsbd import FEATURES
from features.windows import choose_pair

pytestmark = pytest.mark.skipif(
    not (shutil.which("gcc") or shutil.which("clang")), reason="no C compiler on this machine"
)
RAW = Path(__file__).parents[2] / "data" / "raw"
LOGS = (
    *("smartsbd-paper/frankfurt", "smartsbd-paper/guangzhou", "smartsbd-paper/shanghai"),
    *("smartsbd-paper/silicon-valley", "smartsbd-table6/table6", "smartsbd-random/random"),
)
USUAL = SbdParams()
DENSE = SbdParams(window_factor=10, min_window_us=1000, max_points=100, min_samples=2)
"""Short windows: many of them in few calls, and a grid between microseconds at once."""


def source_of(features, params=USUAL):
    """A model that asks every feature once."""
    n = len(features)
    feature, value, right = [], [], []
    for i, f in enumerate(features):
        feature += [i, -1]
        value += [f.scale, 1000 * (i % 2)]
        right += [2 * i + 2, 0]
    form = Tree(
        features, ("NSB", "SB"), 500,
        Nodes((*feature, -1), (*value, 1000 * (n % 2)), (*right, 0)),
    )  # fmt: skip
    return Source(
        "a model", "1", "smartsbd", "tree", features, form.labels, 0.5, form, "", b"",
        np.zeros((4, n)), np.zeros(4), feature_settings=params.model_dump(),
    )  # fmt: skip


def built(work, features=FEATURES, params=USUAL, flags=None, subflows=2):
    work.mkdir(parents=True, exist_ok=True)
    options = Options(subflows=subflows)
    files = bundle_files(source_of(features, params), ["c"], options, "the tests")
    for name, content in files.items():
        (work / name).write_bytes(content)
    (work / "build").mkdir()
    made_of = (work, "a_model", work / "build", 120)
    return build_feed(*made_of, features=len(features), subflows=subflows, flags=flags)


def compared(feed, made, features=FEATURES, params=USUAL):
    """Windows of pairs, what the C has otherwise, and the numbers of sets seen."""
    form = source_of(features).form
    windows = wrong = 0
    sets = set()
    for (given_calls, wifi), answer in zip(made, feed.run(made, 120), strict=True):
        meant = evaluate_pairs(given_calls, wifi, feed.subflows, params, features)
        windows += len(meant.window)
        wrong += answer.unlike(meant, form.evaluate(meant.x).classes)
        sets |= set(answer.sets.tolist())
    return windows, wrong, sets


def differing(*of, **also):
    """Windows, and how many of them the C has otherwise."""
    return compared(*of, **also)[:2]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """As a kernel compiles it, all 18 features."""
    return built(tmp_path_factory.mktemp("kernel"))


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    """Under the address and undefined behaviour sanitizers, short windows."""
    work = tmp_path_factory.mktemp("sanitized")
    if missing := no_sanitizers(work, 60):
        pytest.skip(missing)
    return built(work / "bundle", params=DENSE, flags=SANITIZER_FLAGS)


TIMES = st.one_of(
    st.integers(0, 40), st.integers(0, 3000), st.just(0), st.integers(-5000, 0),
    st.integers(0, 1 << 40), st.integers(0, 1 << 63),
)  # fmt: skip
RTTS = st.one_of(st.integers(0, 60), st.integers(100, 2000), st.integers(0, (1 << 32) - 1))
STATES = st.one_of(st.just(-1), st.integers(0, 4), st.integers(-(2**31), 2**31 - 1))
ONE = st.tuples(
    st.one_of(st.integers(0, 1), st.integers(-2, 3)), TIMES, RTTS, STATES, st.booleans(),
    st.one_of(st.integers(0, 5000), st.integers(0, (1 << 64) - 1)),
)  # fmt: skip


@st.composite
def hostile_calls(draw):
    """Any calls; in most both subflows are congested at once, or no window would ever start."""
    parts = draw(st.lists(ONE, max_size=120))
    if draw(st.booleans()):
        opening = [(k, 0, draw(st.integers(1, 500)), 3, False, 0) for k in (0, 1)]
        parts = [*opening, *parts * draw(st.integers(1, 4))]
    subflow, gaps, rtt_us, ca_state, is_ack, acked = zip(*parts, strict=True) if parts else [()] * 6
    time_us, now = [], draw(st.integers(0, 1 << 41))
    for gap in gaps:
        now = min(max(0, now + gap), (1 << 64) - 1)
        time_us.append(now)
    return Calls(
        np.array(subflow, np.int64), np.array(time_us, np.uint64), np.array(rtt_us, np.int64),
        np.array(ca_state, np.int64), np.array(is_ack, np.bool_), np.array(acked, np.uint64),
    )  # fmt: skip


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(made=st.lists(st.tuples(hostile_calls(), st.integers(-2, 2)), min_size=1, max_size=6))
def test_hostile_calls_mean_the_same_and_break_nothing(sanitized, made):
    assert differing(sanitized, made, params=DENSE)[1] == 0


def test_made_up_connections_under_sanitizers(sanitized):
    rng = np.random.default_rng(11)
    made = [(random_calls(rng, DENSE), int(rng.integers(-1, 2))) for _ in range(60)]
    windows, wrong = differing(sanitized, made, params=DENSE)
    assert windows > 400
    assert wrong == 0


def test_made_up_connections_as_a_kernel_compiles_it(kernel):
    rng = np.random.default_rng(12)
    made = [(random_calls(rng, USUAL), int(rng.integers(-1, 2))) for _ in range(60)]
    windows, wrong = differing(kernel, made)
    assert windows > 100
    assert wrong == 0


@pytest.mark.skipif(not RAW.is_dir(), reason="data/raw isn't in this checkout")
def test_real_logs_of_every_dataset(kernel, tmp_path):
    logs = [log for part in LOGS for log in sorted((RAW / part).glob("*.klog.zst"))[::120][:2]]
    assert len(logs) == 2 * len(LOGS)
    ingest(logs, tmp_path / "events")
    made = []
    for row, events in iter_connections(tmp_path / "events"):
        pair = choose_pair(events)
        made.append((calls(events, pair, USUAL, True), wifi_of(row, pair)))
    windows, wrong = differing(kernel, made)
    assert windows >= 3 * len(logs)
    assert wrong == 0


SUBSETS = [
    *((f,) for f in FEATURES),
    tuple(f for f in FEATURES if "Thpt" not in f.name),
    tuple(f for f in FEATURES if f.name.endswith("Ratio")),
    tuple(f for f in FEATURES[::-1] if f.name in ("RTT_CState_Thpt_DTWD", "RTT_ED")),
]


@pytest.mark.parametrize("features", SUBSETS, ids=lambda fs: "+".join(f.name for f in fs)[:40])
def test_a_model_gets_the_features_that_it_uses_and_no_others(features, tmp_path):
    feed = built(tmp_path / "bundle", features)
    rng = np.random.default_rng(13)
    made = [(random_calls(rng, USUAL), -1) for _ in range(12)]
    windows, wrong = differing(feed, made, features)
    assert windows > 10
    assert wrong == 0
    text = (tmp_path / "bundle" / "a_model_sbd.h").read_text()
    assert ("sbd_warp(" in text) == any(f.name.endswith("DTWD") for f in features)
    assert ("sbd_ack(" in text) == any("Thpt" in f.name for f in features)


@pytest.mark.skipif(not shutil.which("clang-14"), reason="no clang-14 on this machine")
def test_clang_compiles_it_to_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "clang-14")
    rng = np.random.default_rng(14)
    made = [(random_calls(rng, USUAL), -1) for _ in range(20)]
    assert differing(built(tmp_path / "bundle"), made)[1] == 0


def test_frames_fit_the_smallest_kernels_and_nothing_is_included(kernel):
    assert kernel.stack_bytes is None or kernel.stack_bytes <= 512
    text = (kernel.executable.parents[1] / "a_model_sbd.h").read_text()
    assert re.findall(r"#include.*", text) == ['#include "a_model.h"']
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for word in ("float", "double", "malloc", "int128", "goto"):
        assert word not in code
    # Any other division would be one of 64 bits that a 32-bit kernel can't link.
    assert set(re.findall(r"\S+ / \S+", code)) <= {"gap / 2,", "took / 2,", "((a) / (b))"}


def test_verify_proves_it_and_sees_what_is_wrong(tmp_path):
    source = source_of(FEATURES, DENSE)
    files = bundle_files(source, ["c"], Options(), "the tests")
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    report = verify(tmp_path, VerifyParams(random=50))
    assert report["ok"], report
    (found,) = report["targets"]
    assert found["companion"]["windows"] > 100
    assert found["companion"]["mismatches"] == 0
    assert found["companion"]["state_bytes"] < 1 << 16


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("#define SBD_MIN_SAMPLES 2U", "#define SBD_MIN_SAMPLES 3U"),
        ("s->now_us < s->end_us", "s->now_us <= s->end_us"),
        ("if (at_us >= to_us)", "if (at_us > to_us)"),
        ("+ gap / 2, gap)", "+ 0, gap)"),
        ("corner0 < above0 ? corner0 : above0", "corner0 > above0 ? corner0 : above0"),
    ],
)
def test_a_single_slip_would_be_found(right, wrong, tmp_path):
    built(tmp_path, params=DENSE)
    header = tmp_path / "a_model_sbd.h"
    assert right in header.read_text()
    header.write_text(header.read_text().replace(right, wrong))
    (tmp_path / "slip").mkdir()
    feed = build_feed(tmp_path, "a_model", tmp_path / "slip", 120, features=len(FEATURES))
    rng = np.random.default_rng(15)
    made = [(random_calls(rng, DENSE), -1) for _ in range(40)]
    assert differing(feed, made, params=DENSE)[1] > 0


def test_of_two_subflows_the_partition_is_the_class(sanitized):
    rng = np.random.default_rng(16)
    made = [(random_calls(rng, DENSE), -1) for _ in range(10)]
    windows, wrong, sets = compared(sanitized, made, params=DENSE)
    assert windows > 50
    assert wrong == 0
    assert sets == {1, 2}
    for answer in sanitized.run(made, 120):
        assert answer.window.tolist() == answer.fixed.window.tolist()
        assert (answer.group[:, 1] == 0).tolist() == (answer.classes == 1).tolist()


@pytest.mark.parametrize(("exported", "fed"), [(2, 3), (3, 2), (3, 4)])
def test_a_header_is_fed_with_no_other_number_of_subflows(exported, fed, tmp_path):
    built(tmp_path, FEATURES[:1], subflows=exported)
    (tmp_path / "other").mkdir()
    made_of = (tmp_path, "a_model", tmp_path / "other", 120)
    with pytest.raises(CannotRun, match="the header is for"):
        build_feed(*made_of, features=1, subflows=fed)


@pytest.mark.parametrize(
    ("subflows", "follows"), [(2, "sbd_compute(s, &s->grid[!s->filling]"), (3, "return sets;")]
)
def test_a_window_that_is_not_taken_is_found(subflows, follows, tmp_path):
    built(tmp_path, FEATURES[:1], DENSE, subflows=subflows)
    header = tmp_path / "a_model_sbd.h"
    taken = f"s->ready = 0;\n\t{follows}"
    assert taken in header.read_text()
    header.write_text(header.read_text().replace(taken, follows))
    (tmp_path / "slip").mkdir()
    made_of = (tmp_path, "a_model", tmp_path / "slip", 120)
    feed = build_feed(*made_of, features=1, subflows=subflows)
    rng = np.random.default_rng(17)
    with pytest.raises(CannotRun, match="still waits"):
        feed.run([(random_calls(rng, DENSE, subflows), -1) for _ in range(10)], 120)


def test_only_the_features_as_they_are_defined_now_travel():
    assert generator("smartsbd", FEATURES[:3]) is not None
    assert generator("smartsbd-plus", FEATURES[:3]) is None
    changed = FEATURES[0].__class__(**{**FEATURES[0].__dict__, "scale": 1000})
    assert generator("smartsbd", (changed,)) is None


@pytest.mark.parametrize("params", [{"max_points": 2000}])
def test_settings_beyond_64_bits_are_refused(params):
    with pytest.raises(UserError, match=r"features\.sbd"):
        bundle_files(source_of(FEATURES, SbdParams(**params)), ["c"], Options(), "the tests")
