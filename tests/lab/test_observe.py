"""What the control in the kernel observes is what `features.tcco` defines, in whole numbers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from data.lab.build import NATIVE
from features.tcco import SubflowObserver, TccoObservation

PARAMS = TccoObservation(lifetime_us=400_000)  # 20 intervals, so that estimates die
MSS, INTERVALS = 1000, 300
PROGRAM = """\
#include <stdint.h>
#include <stdio.h>
#include <string.h>
typedef uint8_t __u8;
typedef uint32_t __u32;
typedef uint64_t __u64;
#define __always_inline inline
static long bpf_loop(__u32 count, void *call, void *context, __u64 flags)
{
	(void)flags;
	for (__u32 i = 0; i < count; i++)
		((long (*)(__u32, void *))call)(i, context);
	return count;
}
#include "observe.h"
static struct observed o;
int main(void)
{
	unsigned count, rtt, delivered, window;

	observe_begin(&o, 0);
	while (scanf("%u", &count) == 1) {
		for (; count; count--) {
			if (scanf("%u %u %u", &rtt, &delivered, &window) != 3)
				return 1;
			observe_ack(&o, rtt, delivered, window);
		}
		observe_interval(&o, 20000, 1000, 20, 5, 6);
		for (int i = 0; i < OBSERVE_FEATURES; i++)
			printf("%llu ", (unsigned long long)o.now[i]);
		printf("\\n");
	}
	return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("observe")
    (folder / "observe.c").write_text(PROGRAM)
    command = ["gcc", "-O1", "-w", f"-I{NATIVE}", str(folder / "observe.c")]
    subprocess.run([*command, "-o", str(folder / "observe")], check=True)
    return folder / "observe"


def test_kernel_observes_what_training_did(program: Path) -> None:
    rng = np.random.default_rng(4)
    observer, delivered, window = SubflowObserver(PARAMS), 0, 10
    fed, expected = [], []
    for number in range(INTERVALS):
        # A path whose rate and delay move, with pauses, and a window that stands still at times.
        count = 0 if rng.random() < 0.1 else int(rng.integers(1, 12))
        rtts = rng.integers(10_000, 60_000 if number // 40 % 2 else 30_000, count)
        window = max(2, window + int(rng.integers(-3, 4))) if number % 50 < 30 else window
        acks = []
        for rtt in rtts:
            delivered += int(rng.integers(0, 5))
            acks.append((int(rtt), delivered, window))
        fed.append(f"{count} " + " ".join(f"{r} {d} {w}" for r, d, w in acks))
        at = np.arange(count, dtype=np.int64)
        batch = {
            "rtt_us": (at, np.array([r for r, _, _ in acks], np.int64)),
            "delivered_bytes": (at, MSS * np.array([d for _, d, _ in acks], np.int64)),
            "snd_cwnd": (at, np.array([w for _, _, w in acks], np.int64)),
        }
        expected.append(observer.update(batch if count else {}))
    out = subprocess.run(
        [str(program)], input="\n".join(fed), check=True, capture_output=True, text=True
    ).stdout
    found = np.array([line.split() for line in out.splitlines()], np.float64)
    wanted = np.array(expected)
    assert found.shape == wanted.shape
    # Whole numbers: rates and means are rounded down, each division once.
    assert np.all(found <= wanted + 1e-6)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1.5)
    # The estimates did die: else this would show nothing of it.
    assert len(np.unique(wanted[:, 3])) > 10
    assert np.any(np.diff(wanted[:, 4]) > 0)
