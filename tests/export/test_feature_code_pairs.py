"""The exported partition against its meaning: hostile calls, real logs with three subflows."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_feature_code import DENSE, USUAL, built, hostile_calls, source_of
from test_feature_code import compared as differing

from data.errors import UserError
from data.ingest import ingest
from export.bundle.manifest import bundle_files
from export.feature_code.agreement import agreement
from export.feature_code.feed import build_feed, partitions
from export.feature_code.random_calls import random_calls
from export.feature_code.sbd import settings as stated
from export.params import Options
from export.toolchain.harness import SANITIZER_FLAGS
from export.toolchain.sanitize import no_sanitizers
from features.fixed_sbd import evaluate, evaluate_pairs
from features.smartsbd import FEATURES

pytestmark = pytest.mark.skipif(
    not (shutil.which("gcc") or shutil.which("clang")), reason="no C compiler on this machine"
)
THREE = Path(__file__).parents[2] / "data" / "raw" / "three-subflows" / "three-subflows"


def made_up(seed, count, subflows, params):
    rng = np.random.default_rng(seed)
    return [
        (random_calls(rng, params, subflows), int(rng.integers(-1, subflows))) for _ in range(count)
    ]


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    """Three subflows under the address and undefined behaviour sanitizers, short windows."""
    work = tmp_path_factory.mktemp("sanitized")
    if missing := no_sanitizers(work, 60):
        pytest.skip(missing)
    return built(work / "bundle", params=DENSE, flags=SANITIZER_FLAGS, subflows=3)


@st.composite
def hostile_to_three(draw):
    """Any calls; in many a third subflow comes in, early or late."""
    made = draw(hostile_calls())
    n = len(made.subflow)
    third = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    subflow = np.where(np.array(third, bool) & (made.subflow == 1), 2, made.subflow)
    return made._replace(subflow=subflow.astype(np.int64))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(made=st.lists(st.tuples(hostile_to_three(), st.integers(-2, 3)), min_size=1, max_size=6))
def test_hostile_calls_mean_the_same_and_break_nothing(sanitized, made):
    assert differing(sanitized, made, params=DENSE)[1] == 0


def test_made_up_connections_under_sanitizers(sanitized):
    windows, wrong, sets = differing(sanitized, made_up(21, 24, 3, DENSE), params=DENSE)
    assert windows > 250
    assert wrong == 0
    assert sets == {1, 2, 3}


def test_eight_subflows_as_a_kernel_compiles_it(tmp_path):
    feed = built(tmp_path, params=DENSE, subflows=8)
    windows, wrong, sets = differing(feed, made_up(22, 5, 8, DENSE), params=DENSE)
    assert windows > 300
    assert wrong == 0
    assert len(sets) > 3
    assert feed.stack_bytes is None or feed.stack_bytes <= 512
    text = (tmp_path / "a_model_sbd.h").read_text()
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for word in ("float", "double", "malloc", "int128", "goto"):
        assert word not in code
    assert set(re.findall(r"\S+ / \S+", code)) <= {"gap / 2,", "took / 2,", "((a) / (b))"}


@pytest.mark.parametrize(
    "features",
    [
        tuple(f for f in FEATURES if "Thpt" not in f.name),
        tuple(f for f in FEATURES if f.name in ("RTT_ED", "CState_ED")),
    ],
    ids=["no throughput", "no warping"],
)
def test_a_model_gets_the_features_that_it_uses(features, tmp_path):
    feed = built(tmp_path, features, subflows=3)
    windows, wrong, _ = differing(feed, made_up(23, 5, 3, USUAL), features)
    assert windows > 12
    assert wrong == 0


def test_two_of_many_are_the_pair_that_two_are():
    """Subflows that make no calls change nothing for the others."""
    for made, wifi in made_up(24, 12, 2, DENSE):
        two = evaluate(made, wifi, DENSE, FEATURES[:4])
        # An odd call for subflow 2 would be a third subflow's here.
        kept = made.take(np.isin(made.subflow, (0, 1)))
        many = evaluate_pairs(kept, wifi, 5, DENSE, FEATURES[:4])
        assert np.array_equal(two.window, many.window)
        assert np.array_equal(two.x, many.x)
        assert (many.pair == (0, 1)).all()


def test_for_two_subflows_nothing_is_new():
    text = bundle_files(source_of(FEATURES), ["c"], Options(), "the tests")["a_model_sbd.h"]
    assert b"SUBFLOWS" not in text
    assert b"sbd_partition" not in text
    assert b"struct sbd_flow flow[2];" in text
    source = source_of(FEATURES)
    two = stated(source, Options())
    assert "subflows" not in two
    assert stated(source, Options(subflows=3)) == two | {"subflows": 3}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("grid->heard & (grid->heard - 1)", "grid->heard & (grid->heard - 1) & 3"),
        ("joined_rtt_us[high] < s->joined_rtt_us[low]", "joined_rtt_us[high] > 0"),
        ("if (group[i] == merged)", "if (i == b)"),
    ],
)
def test_a_single_slip_would_be_found(right, wrong, tmp_path):
    subset = (FEATURES[0], FEATURES[-1])
    built(tmp_path, subset, DENSE, subflows=4)
    header = tmp_path / "a_model_sbd.h"
    assert right in header.read_text()
    header.write_text(header.read_text().replace(right, wrong))
    (tmp_path / "slip").mkdir()
    made_of = (tmp_path, "a_model", tmp_path / "slip", 120)
    feed = build_feed(*made_of, features=len(subset), subflows=4)
    assert differing(feed, made_up(25, 10, 4, DENSE), subset, DENSE)[1] > 0


@pytest.mark.skipif(not THREE.is_dir(), reason="data/raw isn't in this checkout")
def test_real_logs_with_three_subflows(tmp_path):
    from pipelines import cli

    bundle = tmp_path / "bundle"
    words = ["export", "smartsbd-dt", "-t", "c", "-t", "onnx", "--set", "subflows=3"]
    assert cli.main([*words, "--out", str(bundle)]) == 0
    logs = [THREE / f"{name}-lia-0000.klog.zst" for name in ("all-shared", "wifi-wired")]
    ingest(logs, tmp_path / "events")
    from data.store import iter_connections

    (tmp_path / "work").mkdir()
    (found,) = agreement([bundle], iter_connections(tmp_path / "events"), tmp_path / "work")
    assert found["subflows"] == 3
    assert found["windows_fixed"] >= 40
    assert found["mismatches_c_reference"] == 0
    assert found["windows_both"] >= found["windows_float"] - 3
    assert 0.3 < found["accuracy_fixed"] <= 1


def test_partitions_of_pairs_that_are_there():
    class Meant:
        window = np.array([3, 3, 5])
        pair = np.array([[0, 1], [1, 2], [0, 2]])

    window, group = partitions(Meant, np.array([1, 0, 1]), 3)
    assert window.tolist() == [3, 5]
    assert group.tolist() == [[0, 0, 2], [0, 1, 0]]


def test_a_model_that_never_says_sb_has_no_partition():
    source = source_of(FEATURES[:2])
    labels = ("no", "yes")
    other = replace(source, labels=labels, form=replace(source.form, labels=labels))
    with pytest.raises(UserError, match="one must be SB"):
        bundle_files(other, ["c"], Options(subflows=3), "the tests")
