"""Every way to a DTW distance gives tslearn's number."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tslearn.metrics import dtw as reference

from features.dtw import dtw, dtw_many, dtw_stacked

NARROW = """
import json, sys
import llvmlite.binding as llvm
llvm.get_host_cpu_features = lambda: {}
import numpy as np
from features.dtw import dtw_many
from features.dtw_simd import LANES
assert LANES == 2, LANES
pairs = [(np.array(a), np.array(b)) for a, b in json.load(sys.stdin)]
print(json.dumps(dtw_many(pairs).tolist()))
"""


@st.composite
def _pairs(draw):
    dims = draw(st.integers(1, 4))
    count = draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = 10.0 ** draw(st.integers(-6, 6))
    lengths = rng.integers(1, 30, (count, 2))
    if draw(st.booleans()):
        lengths[:] = lengths[0, 0]
    shape = [((n, dims), (m, dims)) for n, m in lengths]
    return [(rng.normal(size=a) * scale, rng.normal(size=b).cumsum(0) * scale) for a, b in shape]


@settings(deadline=None, max_examples=60)
@given(_pairs())
def test_batch_equals_tslearn_for_unlike_lengths_and_dimensions(pairs):
    expected = np.array([reference(a, b) for a, b in pairs])
    np.testing.assert_allclose(dtw_many(pairs), expected, rtol=1e-9, atol=1e-9)


@settings(deadline=None, max_examples=30)
@given(_pairs())
def test_batch_equals_single_to_the_last_bit(pairs):
    assert dtw_many(pairs).tolist() == [dtw(a, b) for a, b in pairs]


@pytest.mark.parametrize("length", [50, 97, 100, 300])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_stacks_of_the_papers_shapes(length, dims):
    rng = np.random.default_rng(length + dims)
    a, b = rng.normal(size=(2, 11, length, dims)).cumsum(axis=2)
    expected = [reference(x, y) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(dtw_stacked(a, b), expected, rtol=0, atol=1e-9)


def test_narrow_vectors_give_the_same(tmp_path):
    """A CPU without AVX, as LLVM sees it: code for generic x86-64 (or whatever this is)."""
    env = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(tmp_path)}
    rng = np.random.default_rng(5)
    pairs = [(rng.normal(size=(n, 2)), rng.normal(size=(n + 3, 2))) for n in range(1, 12)]
    given = json.dumps([[a.tolist(), b.tolist()] for a, b in pairs])
    done = subprocess.run(
        [sys.executable, "-c", NARROW],
        input=given, stdout=subprocess.PIPE, text=True, check=True, env=env,
    )  # fmt: skip
    found = np.array(json.loads(done.stdout))
    assert np.allclose(found, [reference(a, b) for a, b in pairs], rtol=0, atol=1e-9)


def test_the_minimum_is_vectorised():
    import llvmlite.binding as llvm

    from features.dtw_simd import LANES, squared_distances

    if not llvm.get_host_cpu_features().get("avx2"):
        pytest.skip("the assembly is only known for x86 with AVX")
    register = {8: "zmm", 4: "ymm"}[LANES]
    from numba import njit

    fresh = njit(nogil=True)(squared_distances.py_func)
    ints = np.zeros(1, np.int64)
    fresh(np.zeros((1, 1)), ints, ints + 1, np.ones((1, 1)), ints, ints + 1, ints)
    assembly = "\n".join(fresh.inspect_asm().values())
    found = [x for x in assembly.splitlines() if "vminpd" in x and register in x]
    assert len(found) >= 3 * 2 * 4  # three dimensions, two minima, four rows


def _banded(a, b, band):
    """The definition, cell by cell, on the whole matrix."""
    n, m = len(a), len(b)
    cost = np.full((n + 1, m + 1), np.inf)
    cost[0, 0] = 0
    for i in range(n):
        for j in range(m):
            if abs(j - ((i + 0.5) * m / n - 0.5)) <= max(band, m / n):
                best = min(cost[i, j], cost[i, j + 1], cost[i + 1, j])
                cost[i + 1, j + 1] = best + (a[i] - b[j]) ** 2
    return np.sqrt(cost[n, m])


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 25), st.integers(1, 25), st.integers(1, 25))
def test_band_closes_what_lies_outside(seed, n, m, band):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n), rng.normal(size=m)
    assert dtw(a, b, band) == pytest.approx(_banded(a, b, band), abs=1e-12)
    assert dtw(a, b, band) >= dtw(a, b) - 1e-12


def test_simple_facts():
    a = np.array([0.0, 1.0, 2.0])
    assert dtw(a, a) == 0
    assert dtw(np.array([0.0]), np.array([3.0, 4.0])) == 5.0
    assert dtw(a, np.repeat(a, 3)) == 0  # dilation costs nothing
    assert dtw_many([]).size == 0


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.empty(0), np.ones(3)),
        (np.array([np.nan]), np.ones(3)),
        (np.array([np.inf]), np.ones(3)),
        (np.ones((3, 2)), np.ones((3, 1))),
    ],
)
def test_bad_series_are_refused(a, b):
    with pytest.raises(ValueError, match=r"series|finite"):
        dtw(a, b)
    with pytest.raises(ValueError, match=r"series|finite"):
        dtw_many([(np.ones(2), np.ones(2)), (a, b)])


def test_values_near_the_padding_are_refused():
    with pytest.raises(ValueError, match="1e140"):
        dtw_many([(np.array([1e145]), np.ones(3))])
