"""Command lines that documents and stages show are ones that `cczoo` takes, in today's words."""

import importlib
import re
import shlex
from pathlib import Path

import pytest

from data import yaml_text
from pipelines import names, old_spellings
from pipelines.cli import SUBCOMMANDS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
LEFT_OUT = re.compile(r"\.\.\.|…|\[|<")
"""What a line has that shows a form and is no command itself."""


def shown() -> list[str]:
    """Commands at the beginning of a line of a page's blocks, and of the stages."""
    found = []
    for page in PAGES:
        for block in re.findall(
            r"^```\w*\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S
        ):
            found += re.findall(r"^(?:\S*\$ )?(cczoo .*)$", block.replace("\\\n", " "), re.M)
    stages = yaml_text.read(ROOT / "dvc.yaml")["stages"]
    found += [stage["cmd"] for stage in stages.values()]
    return sorted({one for line in found if not LEFT_OUT.search(line) for one in parts(line)})


def parts(line: str) -> list[str]:
    """The commands of a line of shell, without what comes of their output."""
    lexed = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexed.whitespace_split = True
    found: list[list[str]] = [[]]
    redirected = False
    for word in lexed:
        if word in ("&&", ";", "|", "||"):
            found.append([])
        elif word in (">", "2>"):
            redirected = True
        elif redirected:
            redirected = False
        else:
            found[-1].append(word)
    return [shlex.join(words) for words in found if words[:1] == ["cczoo"]]


COMMANDS = shown()


def test_there_are_many():
    assert len(COMMANDS) > 60
    assert len([one for one in COMMANDS if one.startswith("cczoo train sbd")]) > 10


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_is_taken(line, capsys):
    _, name, *words = shlex.split(line)
    if name in ("train", "evaluate"):
        assert old_spellings.translated(name, words) == [name, *words]
        assert not capsys.readouterr().err
    parser = names.Parser(prog=f"cczoo {name}")
    importlib.import_module(SUBCOMMANDS[name][0]).add_arguments(parser)
    parser.parse_args(words)
