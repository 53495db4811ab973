"""What a newcomer sees who looks around before anything was trained or registered."""

import json
import os
import re
import subprocess
import sys

import pytest

from pipelines.cli import main

RUN = """
import json, sys
from pipelines import cli
code = cli.main(json.loads(sys.argv[1]))
print(json.dumps([code, "mlflow" in sys.modules]))
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("promote smartsbd-dt --log", 0),
        ("promote smartsbd-dt --log --json", 0),
        ("promote smartsbd-dtt --log", 0),
        ("promote smartsbd-dtt", 2),
        ("rollback smartsbd-dtt", 2),
        ("zoo show registry:smartsbd-dtt", 2),
        ("export registry:smartsbd-dtt -t c --out build/x", 2),
    ],
)
def test_looking_makes_no_database(words, expected, tmp_path):
    folder = tmp_path / "runs"
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(words.split())],
        capture_output=True,
        text=True,
        env={**os.environ, "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db"},
    )
    *said, last = done.stdout.splitlines()
    assert json.loads(last) == [expected, False], done.stderr
    assert not folder.exists()
    told = "\n".join(said) + done.stderr
    if "--json" in words:
        assert json.loads("\n".join(said)) == []
    elif expected:
        assert "has no model yet" in told
    else:
        assert "no moves yet: nothing is registered in sqlite:" in told
    assert ("did you mean 'smartsbd-dt'?" in told) == ("dtt" in words)


def test_a_zoo_that_is_missing_or_empty(tmp_path, capsys):
    assert main(["zoo", "list", "--zoo", str(tmp_path / "z3")]) == 2
    assert f"{tmp_path / 'z3'}: no such folder" in capsys.readouterr().err
    assert main(["zoo", "list", "--zoo", str(tmp_path)]) == 0
    assert "fill it with cczoo zoo release NAME" in capsys.readouterr().err


ACTIONS = ("list", "show", "verify", "prove", "add", "reproduced", "release", "certify", "docs")


@pytest.mark.parametrize(
    "words", [*(("zoo", action) for action in ACTIONS), ("zoo",), ("lab",)], ids=" ".join
)
def test_help_says_what_for_and_gives_an_example(words, capsys):
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert f"cczoo {words[0]}" in told.partition("example")[2]
    # Between the usage and the first list of arguments.
    assert re.search(r"\] [^\[\]]*[a-z]{3,} [a-z]+[^\[\]]* (positional arguments|options):", told)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["ingest", "logs", "--out", ""], "--out"),
        (["ingest", "", "--out", "x"], "PATH"),
        (["zoo", "list", "--zoo="], "--zoo"),
        (["verify", ""], "BUNDLE"),
    ],
)
def test_an_empty_path_is_refused(words, name, capsys):
    assert main(words) == 2
    error = capsys.readouterr().err
    assert f": {name}" in error
    assert "is empty: give a file or a folder" in error
