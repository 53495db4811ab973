"""Commands called as ``python -m MODULE`` end with a line, never with a traceback."""

from __future__ import annotations

import argparse

import pytest

from data.errors import UserError
from pipelines.standalone import answer, command_parser


@pytest.mark.parametrize(
    ("error", "resumes", "status", "said"),
    [
        (UserError("no such page"), False, 2, "python -m a.b: no such page\n"),
        (KeyboardInterrupt(), False, 1, "python -m a.b: interrupted\n"),
        (KeyboardInterrupt(), True, 1, "python -m a.b: interrupted; run it again to go on\n"),
    ],
)
def test_what_ends_a_command_is_said_in_a_line(
    error: BaseException,
    resumes: bool,
    status: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(args: argparse.Namespace) -> int:
        raise error

    assert answer(command_parser("a.b", "Does it."), run, [], resumes=resumes) == status
    assert capsys.readouterr().err == said


def test_examples_stand_below_the_arguments_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    parser = command_parser("a.b", "Does it.", "examples:\n  python -m a.b --out x")
    parser.add_argument("--out")
    assert answer(parser, lambda args: int(args.out), ["--out", "7"], resumes=False) == 7
    with pytest.raises(SystemExit):
        answer(parser, lambda args: 0, ["--help"], resumes=False)
    assert "examples:\n  python -m a.b --out x" in capsys.readouterr().out
