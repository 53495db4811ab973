"""A few seconds of the ingest fuzzer in every test run."""

from __future__ import annotations

from tests.fuzz.ingest_fuzz import fuzz


def test_three_seconds_of_fuzzing() -> None:
    cases, failures = fuzz(3, seed=7)
    assert not failures
    assert cases > 0
