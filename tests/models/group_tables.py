"""Features tables of groups in which other rules hold, for tests of models for each group."""

from __future__ import annotations

import numpy as np
import polars as pl

from features.sbd import features_of

NAMES = [feature.name for feature in features_of("smartsbd")]


def table(
    groups: dict[str, int],
    reversed_: tuple[str, ...] = (),
    noise: tuple[str, ...] = (),
    windows: int = 3,
    seed: int = 0,
) -> pl.DataFrame:
    """Groups (attribute ``site`` -> connections) in which four features tell the label.

    In the reversed groups they say the opposite, in those of noise nothing.

    Connections are SB and NSB in turn, and every third of a site has no ``cc``.
    """
    rng = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    for site, count in groups.items():
        for i in range(count):
            sign = (1.0 if i % 2 else -1.0) * (-1.0 if site in reversed_ else 1.0)
            sign *= site not in noise
            for window in range(windows):
                values = sign * (np.arange(len(NAMES)) < 4) + rng.normal(0, 0.8, len(NAMES))
                rows.append(
                    {
                        "source": f"{site}.klog",
                        "connection": f"{site}-{i:04d}",
                        "window": window,
                        "label": ("NSB", "SB")[i % 2],
                        "site": site,
                        "cc": None if i % 3 == 2 else ("lia", "reno")[i % 4 // 2],
                        **dict(zip(NAMES, values.tolist(), strict=True)),
                    }
                )
    return pl.DataFrame(rows)
