"""MP-CDG in whole numbers computes what the simulator's does."""

from __future__ import annotations

import ctypes
import math
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from data.lab.build import NATIVE
from data.lab.coupled import COUPLED
from data.lab.traffic import KERNEL_NAME
from data.netsim.cc import cdg, mpcdg

BASE_US = 20_000
SOURCE = """
#include <stdint.h>
typedef uint32_t __u32; typedef int32_t __s32; typedef uint64_t __u64; typedef int64_t __s64;
#include "mpcdg.h"
struct mpcdg m;
void begin(__u32 cwnd) { mpcdg_start(&m, cwnd, 0); }
void rtt(__s32 us) { mpcdg_measure(&m, us); }
int round_(__u32 base, __u32 chance) { return mpcdg_round(&m, base, 0, chance); }
__u32 backed_off(__u32 cwnd) { return mpcdg_backed_off(&m, cwnd); }
__u32 after_loss(__u32 base, __u32 cwnd) { return mpcdg_after_loss(&m, base, cwnd); }
void not_full(__u32 cwnd) { if (m.shadow > cwnd) m.shadow = cwnd; }
__u32 stays(__u32 gradient) { return mpcdg_stays(gradient); }
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("mpcdg")
    (folder / "m.c").write_text(SOURCE)
    words = ["cc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", f"-I{NATIVE}"]
    subprocess.run([*words, "-o", "m.so", "m.c"], check=True, cwd=folder)
    return ctypes.CDLL(str(folder / "m.so"))


def test_the_chance_to_stay_is_the_exponential(whole: ctypes.CDLL) -> None:
    for gradient_us in (0, 1, 40, 900, 3000, 7777, 21_000, 500_000):
        expected = math.exp(-gradient_us / 3000)
        assert whole.stays(8 * gradient_us) / 65536 == pytest.approx(expected, rel=4e-3, abs=2e-5)


def test_rounds_are_judged_as_in_the_simulator(
    whole: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its functions are interpreted; windows aren't full, so that only delays and losses count."""
    for module, name in ((mpcdg, "_load"), (cdg, "gradient_ms"), (cdg, "backs_off")):
        monkeypatch.setattr(module, name, plain(getattr(module, name)))
    monkeypatch.setattr(mpcdg, "limited", lambda s: False)
    rng = np.random.default_rng(8)
    s = SimpleNamespace(cwnd=40, min_rtt=1000 * BASE_US, snd_una=1, snd_nxt=0, mc_low=0, random=0,
                        cg_max=0, cg_old_max=0, cg_smooth_min=0.0, cg_smooth_max=0.0,
                        cg_backoffs=0)  # fmt: skip
    plain(cdg.start)(None, None, s, 0)
    whole.begin(40)
    backed_off = counted = 0
    for number in range(3000):
        swing_us = 6_000 * (1 + math.sin(number / 9)) + 200 * rng.random(3)
        for rtt_us in (BASE_US + swing_us).astype(int).tolist():
            plain(cdg.acked)(None, None, s, 1, 1000 * rtt_us, 0, 0)
            whole.rtt(rtt_us)
        while near_tie(s):
            s.random += 1
        chance = following(s) >> 15
        before = s.cwnd
        plain(mpcdg.avoid)(None, None, s, 1, 0)
        found = whole.round_(BASE_US, chance)
        assert found == (s.cwnd < before), number
        if found:
            backed_off += 1
            assert whole.backed_off(before) == s.cwnd
        elif number % 50 == 49:
            whole.not_full(s.cwnd)
            window = plain(mpcdg.ssthresh)(None, None, s, 0)
            assert whole.after_loss(BASE_US, s.cwnd) == window
            counted += window < s.cwnd
            s.cwnd = window + 30
    assert backed_off > 25
    assert 10 < counted < 60


def plain(function: Any) -> Any:
    """The Python function that a compiled one was made of."""
    return getattr(function, "py_func", function)


def following(s: SimpleNamespace) -> int:
    """The simulator's next random number."""
    return int((1103515245 * s.random + 12345) % 2147483648)


def near_tie(s: SimpleNamespace) -> bool:
    """Whether rounding may decide on a back-off in this round."""
    if s.cg_old_min < 0:
        return False
    after = SimpleNamespace(**vars(s))
    stays = math.exp(-max(0.0, plain(cdg.gradient_ms)(after)) / cdg._G_MS)
    return abs(following(s) / 2147483648 - stays) < 0.01


def test_the_traffic_script_knows_the_kernels_names() -> None:
    assert KERNEL_NAME == COUPLED
    for control, name in COUPLED.items():
        source = Path(NATIVE / f"{control}.bpf.c").read_text()
        assert f'.name = "{name}"' in source
