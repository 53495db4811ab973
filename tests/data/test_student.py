"""The quantile of Student's t beside the statistics library's."""

import pytest
from scipy.stats import t

from data.student import quantile

DEGREES = [*range(1, 120), 365, 999, 1000, 4998, 9999]


@pytest.mark.parametrize("coverage", [0.5, 0.68, 0.8, 0.9, 0.95, 0.99, 0.999])
def test_quantile_is_the_librarys(coverage):
    found = [quantile(coverage, degrees) for degrees in DEGREES]
    assert found == pytest.approx(t.ppf(0.5 + coverage / 2, DEGREES), rel=1e-11)


def test_quantile_of_a_table_in_every_textbook():
    assert [round(quantile(0.95, n), 3) for n in (1, 2, 9, 30)] == [12.706, 4.303, 2.262, 2.042]
