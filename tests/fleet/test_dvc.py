"""A store is what a DVC stage depends on, in the way docs/fleet.md shows."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import yaml

from data.fleet.keep import compact
from tests.fleet.small import take, write_log

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")


def test_stages_run_when_what_they_select_has_changed(tmp_path: Path, monkeypatch: Any) -> None:
    from dvc.repo import Repo

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    labels, store = tmp_path / "labels.csv", tmp_path / "fleet" / "store"
    labels.write_text("source,isp\n0.csv,x\n1.csv,y\n2.csv,x\n3.csv,y\n")
    for number in range(4):
        write_log(tmp_path / "logs" / f"2026-11-0{1 + number}" / f"{number}.csv", number)

    def night(*numbers: int) -> None:
        paths = [f"logs/2026-11-0{1 + number}" for number in numbers]
        take(paths, store, labels=labels, root="logs", partition_by=None)

    (stages,) = re.findall(r"^```yaml\n(stages:.*?)^```$", PAGE, re.M | re.S)
    stages = yaml.safe_load(stages)
    assert stages["stages"]["groups"]["cmd"].startswith("cczoo train")
    # What depends on the store shall tell only that it ran.
    stages["stages"]["groups"]["cmd"] = "echo trained >> trained"
    Path("dvc.yaml").write_text(yaml.safe_dump(stages))
    with Repo.init(no_scm=True) as repo:

        def trained() -> int:
            repo.reproduce()
            return len(Path("trained").read_text().splitlines())

        night(0, 1)
        assert trained() == 1
        # Neither logs of another operator nor files put together are other data.
        night(2)
        compact(str(store), 0)
        assert trained() == 1
        night(3)
        assert trained() == 2
