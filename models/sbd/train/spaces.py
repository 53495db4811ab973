"""Hyperparameters to try: the paper's grids, and what fits into a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

DEPTHS = tuple(range(1, 16))
"""Table 4: depths 1 to 15 of trees and forests."""
C_GRID = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""Fig. 6(d) prints no tick values: a decade grid around the 100 that the paper selected."""
GAMMA_GRID = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Table 4."""

SPACES: dict[str, dict[str, Sequence[Any]]] = {
    "dt": {"depth": (2, 3, 4, 5, 6, 8, 10), "leaf": (5, 20, 60)},
    "rf": {"depth": (4, 7, 10), "trees": (5, 10, 20), "leaf": (5,)},
    "gb": {"depth": (2, 3), "trees": (10, 30, 60), "leaf": (20,)},
    "lr": {"c": (0.01, 1.0, 100.0)},
}
"""Model -> settings to try: what fits into a kernel, few enough to be measured in minutes."""
SUBSETS: dict[str, tuple[int, ...]] = {
    "dt": (1, 2, 4, 8),
    "rf": (4, 8),
    "gb": (4, 8),
    "lr": (1, 2, 4, 8),
}
"""Model -> how many of the best-ranked features."""
