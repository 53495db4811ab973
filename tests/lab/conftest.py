"""Fixtures of the kernel tests.

Their namespaces are called ``czn_t<pid>_<number><role>``: no lab and no `cczoo lab clean` takes
them for its own, and the probe sees its own namespace alone, so a collection may run beside them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from native_lab import Lab, MakeLab, shell, start_klink, why_no_mptcp, why_not

from data.lab.build import build


def _need(reason: str | None) -> None:
    if reason:
        print(f"kernel tests of the lab not run: {reason}")
        pytest.skip(reason)


@pytest.fixture(scope="session")
def programs() -> dict[str, Path]:
    _need(why_not())
    return build()


@pytest.fixture(scope="session")
def mptcp() -> None:
    _need(why_no_mptcp())


@pytest.fixture(scope="module")
def make_lab(
    programs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MakeLab]:
    made: list[Lab] = []
    names: list[str] = []

    def make(stages_and_paths: str) -> Lab:
        folder = tmp_path_factory.mktemp("lab")
        netns = [f"czn_t{os.getpid()}_{len(made)}{role}" for role in "cs"]
        for name in netns:
            shell("ip", "netns", "add", name)
            names.append(name)
            shell("ip", "-n", name, "link", "set", "lo", "up")
        config = f"netns c /run/netns/{netns[0]}\nnetns s /run/netns/{netns[1]}\n"
        config += "tun wifi c\ntun lte c\ntun srv s\n" + stages_and_paths
        lab = Lab(folder, *netns, start_klink(folder, programs, config))
        made.append(lab)
        return lab

    yield make
    for lab in made:
        if lab.klink.poll() is None:
            lab.klink.kill()
            lab.klink.wait()
    for name in names:
        shell("ip", "netns", "del", name)
