"""The CPU time that the hypervisor takes away decides how many labs may run at once."""

from __future__ import annotations

import time

STEAL_CHECK_S = 5.0
BACK_OFF_STEAL, RECOVERED_STEAL = 0.03, 0.01


def cpu_times() -> tuple[int, int]:
    """Jiffies stolen by the hypervisor, and all, since boot."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(x) for x in file.readline().split()[1:9]]
    return fields[7], sum(fields)


def steal_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Share of CPU time stolen between two `cpu_times`."""
    return (after[0] - before[0]) / max(1, after[1] - before[1])


class Host:
    """Runs fewer labs while the hypervisor takes CPU time away, more when it stops.

    Attributes
    ----------
    allowed : int
        Labs at once, now.
    steal : float
        Share of CPU time stolen between the last two looks.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = self.allowed = jobs
        self.steal = 0.0
        self._cpu = cpu_times()
        self._cpu_at = time.monotonic()

    def watch(self) -> None:
        """Look at the CPU time again, if the last look is some seconds ago."""
        now = time.monotonic()
        if now - self._cpu_at < STEAL_CHECK_S:
            return
        cpu = cpu_times()
        self.steal = steal_share(self._cpu, cpu)
        self._cpu, self._cpu_at = cpu, now
        if self.steal > BACK_OFF_STEAL:
            self.allowed = max(1, self.allowed // 2)
        elif self.steal < RECOVERED_STEAL and self.allowed < self.jobs:
            self.allowed += 1
