import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.errors import UserError
from models import parallel
from models.sbd.accumulate import decide

pytestmark = pytest.mark.xdist_group("ray")


def test_ray_gives_what_the_plain_loop_gives_in_order(tmp_path: Path) -> None:
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
        # An inner function travels with the task.
        survived = dict(parallel.stream(_dies_once(), range(6), str(tmp_path), 2))
    finally:
        parallel.stop()
    here = parallel.spread(decide, limits, state, "test", 0)
    assert np.array_equal(np.stack(on_ray), np.stack(here))
    assert len({tuple(one) for one in on_ray}) > 4
    assert told == [8] * 8
    assert (tmp_path / "killed").is_file()
    failed = survived.pop(3)
    assert survived == {0: 0, 1: 1, 2: 4, 4: 16, 5: 25}
    assert isinstance(failed, ValueError)


def _dies_once() -> Any:
    def square(folder: str, item: int) -> int:
        killed = Path(folder) / "killed"
        if item == 2 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if item == 3:
            raise ValueError("of the task's own")
        return item * item

    return square


def test_items_are_taken_as_they_are_needed() -> None:
    taken: list[int] = []

    def items() -> Iterable[int]:
        for i in range(5):
            taken.append(i)
            yield i

    stream = parallel.stream(lambda shared, item: shared // item, items(), 6, workers=0)
    number, failed = next(stream)
    assert (number, type(failed), taken) == (0, ZeroDivisionError, [0])
    assert next(stream) == (1, 6)
    assert taken == [0, 1]


def test_a_cluster_out_of_reach_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{free.getsockname()[1]}"
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=server.handle_request, daemon=True).start()
    other = f"127.0.0.1:{server.server_port}"
    for address, words in {
        nobody: "no Ray cluster to join there .Connection refused.: start one with `ray start",
        f"ray://{nobody}": "no Ray cluster to join there",
        other: "something else answers",
        "cluster": "HOST:PORT expected, as in 127.0.0.1:6379",
    }.items():
        monkeypatch.setenv("RAY_ADDRESS", address)
        with pytest.raises(UserError, match=words):
            parallel.start(2)
    server.server_close()


def test_switches_of_ray_stand_before_it_is_imported():
    # Else Ray takes a command begun by `uv run` for one to begin anew in each worker.
    code = """
import sys
from models import parallel
def start(workers):
    print("ray" in sys.modules)
    raise SystemExit
parallel.start = start
list(parallel.stream(max, [1], 0, 1))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2],
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.stdout.strip() == "False", done.stderr
