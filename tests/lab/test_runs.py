"""Runs side by side: when they begin, in which lab, and what becomes of them after an error."""

import threading
import time
from itertools import pairwise

import pytest

from data.lab import runs


class Runs:
    """Numbered runs of a given length; `at_once` of them are under way."""

    def __init__(self, number, at_once=2, length_s=0.0):
        self.todo = list(range(number))
        self.at_once = at_once
        self.length_s = length_s
        self.begun = []
        self.finished = []
        self.interruptions = 0
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    def watch(self):
        return self.at_once

    def next_run(self):
        return self.todo.pop(0) if self.todo else None

    def do(self, run, slot):
        with self._lock:
            self.begun.append((time.monotonic(), run, slot))
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(self.length_s)
        with self._lock:
            self._now -= 1
        return 10 * run

    def finish(self, run, result):
        assert threading.current_thread() is threading.main_thread()
        self.finished.append((run, result))

    def interrupted(self):
        self.interruptions += 1


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(runs, "STAGGER_S", 0.02)


def test_every_run_is_begun_in_order_and_finished_with_its_result():
    work = Runs(7, length_s=0.05)
    assert runs.carry_out(work, [5, 6]) == 7
    assert [run for _, run, _ in work.begun] == list(range(7))
    assert sorted(work.finished) == [(run, 10 * run) for run in range(7)]
    assert {slot for _, _, slot in work.begun} == {5, 6}
    assert work.most == 2


def test_fewer_are_under_way_while_the_host_is_short_of_time():
    work = Runs(4, at_once=1, length_s=0.05)
    runs.carry_out(work, [1, 2, 3])
    assert work.most == 1


def test_starts_are_apart_though_others_end_meanwhile(monkeypatch):
    monkeypatch.setattr(runs, "STAGGER_S", 0.1)
    work = Runs(4, at_once=3)
    runs.carry_out(work, [1, 2, 3])
    times = [at for at, _, _ in work.begun]
    assert min(b - a for a, b in pairwise(times)) > 0.09


def test_after_an_error_nothing_is_begun_and_what_is_under_way_is_recorded():
    class Failing(Runs):
        def do(self, run, slot):
            if run == 1:
                raise OSError("no disk")
            return super().do(run, slot)

    work = Failing(9, at_once=3, length_s=0.15)
    with pytest.raises(OSError, match="no disk"):
        runs.carry_out(work, [1, 2, 3])
    assert work.finished == [(0, 0)]
    assert [run for _, run, _ in work.begun] == [0]
    assert work.interruptions == 0


def test_interrupted_runs_end_and_are_recorded():
    class Interrupted(Runs):
        def watch(self):
            if len(self.begun) == 2:
                raise KeyboardInterrupt
            return super().watch()

    work = Interrupted(9, length_s=0.1)
    with pytest.raises(KeyboardInterrupt):
        runs.carry_out(work, [1, 2])
    assert work.interruptions == 1
    assert sorted(work.finished) == [(0, 0), (1, 10)]


def test_log_goes_on_behind_a_killed_runs_unfinished_line(tmp_path):
    log = tmp_path / "log.jsonl"
    assert runs.resume(log) == []
    runs.append(log, {"a": 1})
    with log.open("a") as file:
        file.write('{"a"')
    assert runs.resume(log) == [{"a": 1}]
    runs.append(log, {"a": 2})
    assert runs.resume(log) == [{"a": 1}, {"a": 2}]
    assert log.read_text() == '{"a":1}\n{"a":2}\n'
