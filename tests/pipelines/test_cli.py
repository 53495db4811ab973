"""The command's manners: quick help, exit codes, one-line errors."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from models.rl.comparisons.lines import COMPARISONS
from pipelines.cli import SUBCOMMANDS, main
from pipelines.sbd.train.command import TRAININGS


def cczoo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pipelines.cli", *arguments], capture_output=True, text=True
    )


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_help_has_an_example_and_imports_nothing_heavy(name: str) -> None:
    script = (
        "import sys; from pipelines.cli import main\n"
        "try: main([sys.argv[1], '--help'])\n"
        "except SystemExit as stop: assert stop.code == 0\n"
        "heavy = {'numpy', 'polars', 'numba', 'sklearn', 'ray', 'mlflow', 'onnxruntime', 'scipy'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, name], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"cczoo {name}" in done.stdout.split("example", 1)[-1], "no example in --help"


@pytest.mark.parametrize("words", [f"train sbd {name}" for name in TRAININGS] + ["evaluate sbd"])
def test_commands_of_a_command_have_help_with_an_example_too(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([*words.split(), "--help"])
    assert f"cczoo {words}" in capsys.readouterr().out.split("example", 1)[-1]


def test_comparisons_are_trained_by_name_and_do_not_bury_the_agents(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    printed = capsys.readouterr().out
    assert "sbd|qos|tcco|nuwa|macc|offline ..." in printed
    assert "docs/training.md" in printed
    page = Path("docs/training.md").read_text(encoding="utf-8")
    for name, line in COMPARISONS.items():
        assert f"{name} " not in printed.split("examples")[0]
        assert f"| `{name}` |" in page, "the page lists all of them"
        with pytest.raises(SystemExit):
            main(["train", name, "--help"])
        assert " ".join(line.summary.split()) in " ".join(capsys.readouterr().out.split())
    assert main(["train", "macc-qmx"]) == 2
    assert "did you mean 'macc-qmix'?" in capsys.readouterr().err


def test_unknown_subcommand_names_the_nearest() -> None:
    done = cczoo("ingets")
    assert done.returncode == 2
    assert "did you mean 'ingest'?" in done.stderr
    assert "Traceback" not in done.stderr


def test_overview_lists_every_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert all(f"  {name} " in printed for name in SUBCOMMANDS)


@pytest.mark.parametrize(
    "arguments",
    [
        ["ingest", "no/such/place", "--out", "/tmp/never"],
        ["evaluate", "sbd", "--model", "smartsbd-td", "--features", "no-such.parquet"],
        ["export", "smartsbd-td", "--target", "c", "--out", "/tmp/never"],
        ["verify", "no/such/bundle"],
    ],
)
def test_a_users_mistake_is_one_line_and_status_2(arguments: list[str]) -> None:
    done = cczoo(*arguments)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().startswith("cczoo ")


@pytest.mark.parametrize(("stage", "whose"), [("fit", "copy"), ("", "repository")])
def test_a_stage_in_a_copy_of_the_repository_works_on_the_copy(
    stage: str, whose: str, tmp_path: Path
) -> None:
    """As in `dvc queue`; without a stage the installed command is the repository's."""
    root = Path(__file__).parents[2]
    for layer in ("data", "models"):
        (tmp_path / layer).mkdir()
        for file in (root / layer).glob("*.py"):
            shutil.copy(file, tmp_path / layer)
    made = shutil.ignore_patterns("__pycache__")
    for package in ("pipelines", "models/sbd", "models/stats"):
        shutil.copytree(root / package, tmp_path / package, ignore=made)
    (tmp_path / "models" / "zoo").mkdir()
    script = f"import sys; sys.path[:0] = [{str(root)!r}]; from pipelines.cli import main; "
    environment = {name: value for name, value in os.environ.items() if name != "DVC_STAGE"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", script + "sys.exit(main(['zoo', 'list', '--json']))"],
        env=environment | ({"DVC_STAGE": stage} if stage else {}),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert ("smartsbd-dt" in done.stdout) == (whose == "repository")
