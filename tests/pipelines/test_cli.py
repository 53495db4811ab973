"""The command's manners: quick help, exit codes, one-line errors."""

import subprocess
import sys

import pytest

from pipelines.cli import SUBCOMMANDS, main


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
