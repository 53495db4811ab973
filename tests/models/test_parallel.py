from collections.abc import Iterable
from typing import Any

from models.sbd import parallel


def scaled(shared: dict[str, int], item: int) -> int:
    return shared["factor"] * item


def test_ray_gives_what_the_plain_loop_gives_in_order() -> None:
    told: list[int] = []

    def progress(items: Iterable[Any], what: str, total: int) -> Iterable[Any]:
        for item in items:
            told.append(total)
            yield item

    items = list(range(12))
    shared = {"factor": 3}
    try:
        on_ray = parallel.spread(scaled, items, shared, "test", 2, progress)
    finally:
        parallel.stop()
    assert on_ray == parallel.spread(scaled, items, shared, "test", 0)
    assert told == [12] * 12
