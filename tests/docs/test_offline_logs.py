"""Commands that make decisions of logs, of docs/decisions.md and docs/offline.md, one by one."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from data.decisions import files
from pipelines.cli import main

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("page", "heading"), [("decisions", "From logs"), ("offline", "1. ")])
def test_every_command_on_logs(
    page: str, heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs").mkdir()
    campaign = ROOT / "data" / "raw" / "smartsbd-random"
    for source in sorted((campaign / "random").glob("*"))[:2]:
        shutil.copy(source, tmp_path / "logs")
    names = {path.name for path in (tmp_path / "logs").iterdir()}
    head, *rows = (campaign / "labels.csv").read_text().splitlines()
    mine = [row for row in rows if any(name in row for name in names)]
    (tmp_path / "logs" / "labels.csv").write_text("\n".join([head, *mine]) + "\n")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", text, flags=re.M)
    [part] = [one for one in section if one.startswith(heading)]
    commands = [
        shlex.split(line)
        for block in re.findall(r"^```sh\n(.*?)^```$", part, re.M | re.S)
        for line in block.strip().splitlines()
    ]
    for words in commands:
        if words[0] == "cczoo":
            assert main(words[1:]) == 0, words
        else:
            subprocess.run([sys.executable, *words[1:]], check=True)
    assert len(commands) >= 2
    out = tmp_path / "build" / "decisions.parquet"
    assert files.about(out).agent == "tcco"
    assert pl.read_parquet(out)["run"].n_unique() == 2
