"""YAML that can't be meant so is refused in one line, wherever a command reads it."""

from pathlib import Path

import pytest
import yaml

from data import yaml_text
from data.errors import UserError
from pipelines.cli import main

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
)
LADDER = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 40))
WRONG = {
    "seed: 1\nworkers: 2\nseed: 3\n": "key 'seed' is given twice, lines 1 and 3",
    "a: {b: 1, 'b': 2}\n": "key 'b' is given twice, lines 1 and 1",
    "a: " + "[" * 100_000: "nested too deeply, line 1",
    "\n".join(" " * i + "a:" for i in range(60)): "nested too deeply, line 3",
    LADDER: "nested too deeply",
    BOMB: "too large, line",
    "[" + "1," * 300_000 + "]": "too large, line 1",
    "a: &a [*a]\n": "an alias that stands within what it stands for",
    "a: [1\n": "not YAML: ",
    "a: !!python/object:os.system {}\n": "not YAML: could not determine a constructor",
    "a: 2020-13-45\n": "not YAML: month must be in 1..12",
    "a: " + "1" * 5000 + "\n": "not YAML: ",
    "a: *b\n": "not YAML: found undefined alias 'b', line 1",
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_what_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(UserError) as found:
        yaml_text.loads(text, "x.yaml")
    assert str(found.value).startswith("x.yaml: ")
    assert WRONG[text] in str(found.value)
    assert "\n" not in str(found.value)


def test_what_the_repository_has_reads_as_ever() -> None:
    root = Path(__file__).parents[2]
    files = [root / "params.yaml", *(root / "data" / "scenarios").rglob("*.yaml")]
    assert len(files) > 20
    for path in files:
        assert yaml_text.read(path) == yaml.safe_load(path.read_text(encoding="utf-8")), path


def test_aliases_and_merges_are_yaml() -> None:
    text = "a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: [*a, *a]\n"
    assert yaml_text.loads(text, "x") == yaml.safe_load(text)


@pytest.mark.parametrize("text", ["seed: 1\nseed: 2\n", "[" * 100_000, BOMB], ids=range(3))
@pytest.mark.parametrize(
    "command",
    ["train sbd all --params {f} --features none", "evaluate cc --scenario {f}",
     "lab run {f} --out {d}/o", "lab collect {f} --out {d}/o"],
)  # fmt: skip
def test_every_command_that_reads_a_users_yaml_refuses_it(command, text, tmp_path, capsys):
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    assert main(command.format(f=path, d=tmp_path).split()) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"{path}: " in error
    assert any(words in error for words in ("twice", "nested too deeply", "too large"))


@pytest.mark.parametrize("command", ["evaluate cc --scenario macc-fig4", "export smartsbd-dt -t c"])
def test_a_value_of_set_is_read_the_same_way(command, tmp_path, capsys):
    words = command.split() + (["--out", str(tmp_path / "o")] if "export" in command else [])
    assert main([*words, "--set", "a={b: 1, b: 2}"]) == 2
    assert "--set a={b: 1, b: 2}: key 'b' is given twice" in capsys.readouterr().err
