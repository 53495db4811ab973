"""Runners of their own, as Ray's actors: one that is killed is replaced, and the run goes on."""

import os
import signal
import time

import pytest

from models import parallel
from models.rl import agents, checkpoint, training

pytestmark = pytest.mark.xdist_group("ray")
PATIENCE_S = 400
SETTINGS = {
    "num_envs": 8, "runners": 2, "steps": 100_000, "learning_starts": 100, "warmup": 200,
    "report_every": 200, "batch": 32,
}  # fmt: skip


def test_a_killed_runner_is_replaced_and_the_training_resumes(tmp_path):
    params = agents.settings("matrix", SETTINGS)
    algorithm = training.start("matrix", params)
    try:
        group = algorithm.env_runner_group
        for _ in range(3):
            algorithm.train()
        before = algorithm.steps
        numbers = group.foreach_env_runner(lambda one: os.getpid(), local_env_runner=False)
        assert len(set(numbers) - {os.getpid()}) == 2
        os.kill(numbers[0], signal.SIGKILL)
        alone = False
        # A busy machine takes a minute and more to begin a process of Ray's.
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            algorithm.train()
            healthy = group.num_healthy_remote_env_runners()
            alone = alone or healthy == 1
            if alone and healthy == 2:
                break
            time.sleep(0.1)
        assert alone
        assert healthy == 2
        assert algorithm.steps > before
        # Nothing of the time in between is learned as if it had followed.
        assert algorithm.ring.arrays["over"][:8].sum() > algorithm.ring.arrays["over"][8:].sum()
        path = training.save(algorithm, "matrix", params, tmp_path)
        steps, updates = algorithm.steps, algorithm.updates
        training.go_on(algorithm, "matrix", params, path)
        algorithm.train()
        assert algorithm.steps > steps
        assert algorithm.updates > updates
        assert checkpoint.latest(tmp_path) == path
    finally:
        algorithm.stop()
        parallel.stop()
