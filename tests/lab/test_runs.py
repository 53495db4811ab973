"""Runs side by side: when they begin, in which lab, and what becomes of them after an error."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from data.lab import runs

PATIENCE_S = 120


class Runs:
    """Numbered runs; `at_once` of them are under way, none ends before `together` have begun."""

    def __init__(self, number, at_once=2, together=1):
        self.todo = list(range(number))
        self.at_once = at_once
        self.together = together
        self.times = []
        self.begun = []
        self.finished = []
        self.interruptions = 0
        self.most = 0
        self._now = 0
        self._more = threading.Condition()

    def watch(self):
        return self.at_once

    def next_run(self):
        if not self.todo:
            return None
        # Here rather than in the run, whose thread may be kept waiting.
        self.times.append(time.monotonic())
        return self.todo.pop(0)

    def do(self, run, slot):
        with self._more:
            self.begun.append((run, slot))
            self._now += 1
            self.most = max(self.most, self._now)
            self._more.notify_all()
            assert self._more.wait_for(lambda: len(self.begun) >= self.together, PATIENCE_S)
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
    work = Runs(7, together=2)
    assert runs.carry_out(work, [5, 6]) == 7
    assert sorted(run for run, _ in work.begun) == list(range(7))
    assert sorted(work.finished) == [(run, 10 * run) for run in range(7)]
    assert {slot for _, slot in work.begun} == {5, 6}
    assert work.most == 2


def test_fewer_are_under_way_while_the_host_is_short_of_time():
    work = Runs(4, at_once=1)
    runs.carry_out(work, [1, 2, 3])
    assert work.most == 1


def test_starts_are_apart_though_others_end_meanwhile(monkeypatch):
    monkeypatch.setattr(runs, "STAGGER_S", 0.1)
    work = Runs(4, at_once=3)
    runs.carry_out(work, [1, 2, 3])
    assert len(work.times) == 4
    assert min(b - a for a, b in pairwise(work.times)) > 0.09


def test_after_an_error_nothing_is_begun_and_what_is_under_way_is_recorded(monkeypatch):
    class Failing(Runs):
        def do(self, run, slot):
            if run == 1:
                raise OSError("no disk")
            # Under way until the other one has failed.
            until = time.monotonic() + PATIENCE_S
            while len(futures) < 2 and time.monotonic() < until:
                time.sleep(0.01)
            assert futures[1].exception(PATIENCE_S)
            return super().do(run, slot)

    class Pool(ThreadPoolExecutor):
        def submit(self, *given):
            futures.append(super().submit(*given))
            return futures[-1]

    futures = []
    monkeypatch.setattr(runs, "ThreadPoolExecutor", Pool)
    work = Failing(9)
    with pytest.raises(OSError, match="no disk"):
        runs.carry_out(work, [1, 2])
    assert work.finished == [(0, 0)]
    assert [run for run, _ in work.begun] == [0]
    assert work.interruptions == 0


def test_interrupted_runs_end_and_are_recorded():
    class Interrupted(Runs):
        def watch(self):
            if len(self.begun) == 2:
                raise KeyboardInterrupt
            return super().watch()

    work = Interrupted(9, together=2)
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
