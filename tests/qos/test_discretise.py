"""Contexts as values: sums of Gaussians, in a transformer that scikit-learn accepts."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from models.qos.discretise import GaussianDiscretizer, membership


def test_scikit_learn_accepts_it() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Skipping check")
        found = check_estimator(
            GaussianDiscretizer(terms=2, samples=40), on_fail=None, on_skip=None
        )
    failed = [one["check_name"] for one in found if one["status"] == "failed"]
    assert len(found) > 30
    assert not failed


def test_two_crowds_become_two_values_with_the_border_between_them() -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(-4, 1, 3000), rng.normal(4, 1, 3000)])[:, None]
    found = GaussianDiscretizer().fit(x)
    (edge,) = found.edges_[0]
    assert edge == pytest.approx(0.0, abs=0.4)
    terms = found.memberships_[0]
    assert terms[:, 1] == pytest.approx([-4, 4], abs=0.3)
    # sigma of equation 6 has no 2 below it: a kernel's width is added in squares besides.
    assert terms[:, 2] == pytest.approx(np.sqrt(2) * 1.15, rel=0.25)
    assert found.rmse_[0][1] < 0.3 * found.rmse_[0][0]
    assert membership(terms, np.array([-4.0, 4.0])).argmax(axis=1).tolist() == [0, 1]
    assert found.transform([[-9.0], [9.0]]).ravel().tolist() == [0, 1]


def test_values_rise_with_what_they_stand_for() -> None:
    rng = np.random.default_rng(0)
    wide = np.concatenate([rng.normal(0, 0.2, 500), rng.normal(0.5, 6.0, 2500)])[:, None]
    found = GaussianDiscretizer().fit(wide)
    labels = found.transform(np.linspace(-20, 20, 500)[:, None]).ravel()
    assert (np.diff(labels) >= 0).all()


def test_a_constant_has_one_value() -> None:
    assert GaussianDiscretizer().fit_transform(np.full((20, 1), 3.0)).max() == 0
