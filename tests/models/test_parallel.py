from collections.abc import Iterable
from typing import Any

import numpy as np

from models.sbd import parallel
from models.sbd.accumulate import decide


def test_ray_gives_what_the_plain_loop_gives_in_order() -> None:
    told: list[int] = []

    def progress(items: Iterable[Any], what: str, total: int) -> Iterable[Any]:
        for item in items:
            told.append(total)
            yield item

    state = np.linspace(-2, 2, 50)
    limits = [0.25 * i for i in range(8)]
    try:
        # Workers import the function by its module: one of the tests' own wouldn't be found.
        on_ray = parallel.spread(decide, limits, state, "test", 2, progress)
    finally:
        parallel.stop()
    here = parallel.spread(decide, limits, state, "test", 0)
    assert np.array_equal(np.stack(on_ray), np.stack(here))
    assert len({tuple(one) for one in on_ray}) > 4
    assert told == [8] * 8
