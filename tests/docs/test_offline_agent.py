"""docs/offline.md from decisions to the registry, command by command, with small sizes."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from pipelines.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "offline.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^```sh ?(\w*)\n(.*?)^```$", PAGE, re.M | re.S)
NETWORK = {"updates": 6, "width": 16, "subflow_width": 8, "heads": 2, "context": 2, "batch": 16}
SMALLER = {
    "train": [*(f"--set={key}={value}" for key, value in NETWORK.items()), "--no-track"],
    "estimate": [f"--set={one}" for one in ("updates=6", "fits=1", "resamples=100")],
    "zoo": ["--seeds", "0"],
}
"""What is given besides, so that the commands are quick."""

LOGS = ("20m-100ms-one-rival-cubic", "8m-40ms-one-rival-cubic", "8m-40ms-one-cubic",
        "8m-40ms-one-reno")  # fmt: skip
"""Connections, of which the first two are set aside by their names."""

pytestmark = pytest.mark.xdist_group("registry")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_store: Path) -> Path:
    """A reader's folder: a few kernel logs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    (tmp_path / "logs").mkdir()
    logs = ROOT / "data" / "reference" / "linux"
    for name in LOGS:
        shutil.copy(logs / "linux" / f"{name}-0000.klog.zst", tmp_path / "logs")
    labels = (logs / "labels.csv").read_text().replace("linux/", "", 1).replace("\nlinux/", "\n")
    head, *rows = labels.splitlines()
    mine = [row for row in rows if (tmp_path / "logs" / row.partition(",")[0]).is_file()]
    (tmp_path / "logs" / "labels.csv").write_text("\n".join([head, *mine]) + "\n")
    return tmp_path


def smaller(words: list[str]) -> list[str]:
    """A command's words, with what makes it quick."""
    return [*words, *next((more for key, more in SMALLER.items() if key in words[:2]), [])]


def test_every_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    codes = {}
    for mark, block in COMMANDS:
        for line in block.strip().splitlines():
            words = shlex.split(line)
            if words[0] != "cczoo" or mark == "register":
                continue
            codes[line] = main(smaller(words[1:]))
            if mark == "refused":
                last = capsys.readouterr().err.strip().splitlines()[-1]
                assert codes.pop(line) == 1
                assert f"`{last}`" in PAGE
    estimates = [codes.pop(line) for line in [*codes] if "estimate" in line]
    # Six updates may well leave nothing that could be estimated.
    assert len(estimates) == 2
    assert set(estimates) <= {0, 1}
    assert set(codes.values()) == {0}, codes
    assert "decisions" in (folder / "build" / "coverage.svg").read_text()
    registers(folder, capsys)


def registers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only figures that are of this network and above 0 make a version."""
    [line] = [block for mark, block in COMMANDS if mark == "register"]
    words = smaller(shlex.split(line)[1:])
    path = folder / "build" / "estimate.json"
    found = json.loads(path.read_text())
    found["verdict"] = {"beats": False, "reason": "its interval isn't above 0"}
    path.write_text(json.dumps(found))
    capsys.readouterr()
    assert main(words) == 1
    told = capsys.readouterr().err.strip()
    assert told == (
        "refused: build/agent/seed-7 doesn't beat what was logged: its interval isn't above 0"
    )
    found["fqe_gain"] = {"mean": 0.2, "low": 0.1, "high": 0.3}
    found["verdict"] = {"beats": True, "reason": "its gain is 0.2"}
    path.write_text(json.dumps({**found, "weights": "0" * 64}))
    assert main(words) == 2
    assert "of another training" in capsys.readouterr().err
    path.write_text(json.dumps(found))
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["registered"] == {"tcco-iql": "1"}
    from pipelines import tracking

    tags = tracking.client().get_model_version("tcco-iql", "1").tags
    assert (tags["estimate.gain.low"], tags["estimate.decisions"]) == ("0.1", found["decisions"])
