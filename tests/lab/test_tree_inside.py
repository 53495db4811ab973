"""Distilled trees inside the control: what they observe there, and what is refused."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import measured
import numpy as np
import pytest
from export_trees import written
from measured import Measured
from native_lab import MakeLab
from sklearn.tree import DecisionTreeClassifier
from uploads import HELD, decided_inside

from data.errors import UserError
from data.lab import follow
from data.lab.reports import DRIVEN
from export.fitted import source_of_fitted
from export.params import Options
from export.source import Source
from features import tcco
from features.derived import ONE, features
from pipelines.drive import trees
from pipelines.drive.inside import inside_policy
from pipelines.sources import open_source

pytestmark = pytest.mark.kernel

NAME = f"cczoo_i{os.getpid() % 1_000_000}"
RNG = np.random.default_rng(7)
ENOUGH = 1.25
"""The tree by hand keeps its window between this and half as much again of what the path holds."""


def tcco_by_hand() -> Source:
    """A tree over all that a tree of TCCO's sees, fitted to a rule."""
    columns = features("tcco", 0, tcco.FEATURES)
    names = [column.name for column in columns]
    rows = np.zeros((4000, len(columns)))
    rows[:, names.index("cwnd_over_held")] = RNG.integers(0, 4 * ONE, 4000)
    rows[:, names.index("rtt_over_base")] = RNG.integers(ONE, 4 * ONE, 4000)
    window = rows[:, names.index("cwnd_over_held")] / ONE
    chosen = np.select([window < 0.8, window < ENOUGH, window < 1.5 * ENOUGH], [4, 3, 2], 1)
    chosen[window > 3.9] = 0
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(rows, chosen)
    labels = ("-2", "-1", "+0", "+1", "+2")
    meta = {"family": "tcco", "labels": labels, "output": {"kind": "action"}}
    return source_of_fitted("by-hand-tree", tree, columns, meta, rows[:200], None)


@pytest.fixture(scope="module")
def of_paths(make_lab: MakeLab, tmp_path_factory: pytest.TempPathFactory) -> Measured[Any]:
    folder = tmp_path_factory.mktemp("paths")
    return Measured(lambda: decided(make_lab, folder, tcco_by_hand(), 2.0))


@pytest.fixture(scope="module")
def of_senders(make_lab: MakeLab, tmp_path_factory: pytest.TempPathFactory) -> Measured[Any]:
    folder = tmp_path_factory.mktemp("senders")
    source = open_source("macc-tcp-tree", Options())
    # Its own step takes 200 ms and its window begins at 200 segments, more than fit this path.
    return Measured(
        lambda: decided(make_lab, folder, source, 2.0, interval_us=40_000, start_cwnd=30)
    )


def decided(
    make_lab: MakeLab, folder: Path, source: Source, last_s: float, **changed: Any
) -> dict[str, Any]:
    work = Path(mkdtemp(dir=folder))  # what a busy machine has spoilt is measured again
    settings, header = inside_policy(str(written(source, work / "bundle")), work)
    return decided_inside(make_lab, work, replace(settings, **changed), header, NAME, last_s)


@measured.of("of_paths")
def test_tree_of_paths_needs_no_user_space(of_paths: dict[str, Any]) -> None:
    flow, seen = of_paths["flow"], of_paths["decisions"]
    assert flow["phase"] == DRIVEN
    assert flow["fallbacks"] == 0
    assert seen["decisions"] >= flow["decisions"] > 40
    assert 4 <= flow["target"] <= flow["most"]
    # Where two processes move the bytes by hand, a busy machine has a say in how much a path holds.
    assert 0.5 * HELD < flow["target"] < 4 * HELD
    assert of_paths["tree"]["count"] >= flow["decisions"]


@measured.of("of_senders")
def test_tree_of_senders_sees_its_acknowledged_data(of_senders: dict[str, Any]) -> None:
    flow, memory = of_senders["flow"], of_senders["tree"]
    assert flow["phase"] == DRIVEN
    assert memory["count"] >= flow["decisions"] > 20
    # What the ring keeps: RTT over its least, acknowledged bytes, bytes in flight.
    ratios, acked, flight = np.array(memory["ring"][: min(32, memory["count"])]).T
    assert (ratios >= ONE).all()
    # 8 Mbit/s are 40 kB in 40 ms; the least RTT is of 20 ms and its means are above.
    assert 10_000 < np.median(acked) < 60_000
    assert memory["extreme"][0] >= 20_000
    assert memory["extreme"][1] >= acked.max()
    assert 0 < flight.max() <= (flow["target"] + 20) * 1448
    # Actions are of ten segments each, from the window that slow start left.
    assert flow["unit"] == 10
    assert 2 <= flow["target"] <= 4096


def test_tree_of_another_schema_is_refused_at_load(
    programs: dict[str, Path], tmp_path: Path
) -> None:
    bundle = written(tcco_by_hand(), tmp_path / "bundle")
    settings, header = inside_policy(str(bundle), tmp_path)
    assert settings.schema == trees.opened(str(bundle), "control").manifest["schema_hash"]
    with pytest.raises(UserError, match="schema hash differs"):
        follow.compiled(replace(settings, schema="5d" * 32), tmp_path, NAME, header)


def test_what_no_control_observes_is_refused(tmp_path: Path) -> None:
    other = written(open_source("smartsbd-dt", Options()), tmp_path / "sbd")
    with pytest.raises(UserError, match="no control here observes"):
        inside_policy(str(other), tmp_path)
    queue = written(open_source("macc-aqm-tree", Options()), tmp_path / "aqm")
    with pytest.raises(UserError, match="sets no windows"):
        inside_policy(str(queue), tmp_path)
    with pytest.raises(UserError, match="cczoo export"):
        inside_policy("macc-tcp-tree", tmp_path)
    (queue / "macc_aqm_tree.bpf.h").write_text("/* another */")
    with pytest.raises(UserError, match=r"macc_aqm_tree\.bpf\.h"):
        inside_policy(str(queue), tmp_path)
