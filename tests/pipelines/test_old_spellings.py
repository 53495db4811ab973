"""Old spellings do what they did, and say how they are spelled now."""

import json
import shlex

import pytest

from pipelines import names, train
from pipelines.cli import main
from pipelines.old_spellings import translated
from pipelines.sbd import drift as drift_command

TRAINED = {
    "": "all",
    "--events e --zoo z --offline": "all --events e --zoo z --offline",
    "--step search --events e --zoo z": "search",
    "--step=protocol --events e --json": "protocol --events e --json",
    "--step fit --zoo z --out o --family smartsbd-plus": "fit --out o --zoo z",
    "--model dt --budget ns=4,bytes=5 --out o": "budget ns=4,bytes=5 --out o --model dt",
    "--groups cc,city --out o --events e --seconds 3": "groups --by cc,city --out o",
    "--groups auto --out o --events e": "groups --conditions e --out o",
    "--groups cc --model svm-linear --out o": "groups --by cc --out o --model svm-linear",
    "--model auto --out o --seconds 3 --splits 1": "auto --out o --seconds 3",
    "--model auto --out o --step protocol --splits 1": "auto-protocol --out o --splits 1",
    "--model neural": "neural all",
    "--model neural --step fit --zoo z --seed -1": "neural fit --zoo z --seed=-1",
    "--model neural --step search --zoo z": "neural search",
    "--no-reg --feat 'my table'": "all --features 'my table' --no-register",
}
REFUSED = {
    "--groups cc --out o --zoo z": "unrecognized arguments: --zoo z",
    "--groups auto --out o": "--by --conditions is required",
    "--model auto --out o --step fit": "unrecognized arguments: --step fit",
    "--model neural --events e": "unrecognized arguments: --events e",
    "--budget ns=4 --out o": "required: --model",
    "--model dt --out o": "required: KEY=LIMIT",
    "--step fitt": "unknown training 'fitt': did you mean 'fit'?",
    "--out ''": "--out is empty",
}
"""What was refused then is refused now, in the words of the new parser."""


@pytest.mark.parametrize("old", TRAINED)
def test_a_training_is_the_same_in_the_new_words(old, capsys):
    new = shlex.split(f"train sbd {TRAINED[old]}")
    assert translated("train", ["sbd", *shlex.split(old)]) == new
    assert capsys.readouterr().err == (
        "cczoo train: the next version will not know this spelling; write: "
        f"cczoo {shlex.join(new)}\n"
    )
    parser = names.Parser()
    train.add_arguments(parser)
    parser.parse_args(new[1:])
    assert translated("train", new[1:]) == new
    assert not capsys.readouterr().err


@pytest.mark.parametrize("old", REFUSED)
def test_what_did_not_go_together_still_does_not(old, capsys):
    assert main(["train", "sbd", *shlex.split(old)]) == 2
    assert REFUSED[old] in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    ["train", "train sbdd", "train sbd --help", "evaluate sbd --model m", "evaluate cc --cc cubic"],
)
def test_other_words_are_left_alone(words, capsys):
    command, *rest = words.split()
    assert translated(command, rest) == words.split()
    assert not capsys.readouterr().err


def test_drift_is_found_in_an_evaluation(monkeypatch, capsys):
    given = []
    monkeypatch.setattr(drift_command, "run", lambda args: given.append(vars(args)) or 1)
    words = ["--model", "smartsbd-dt", "--features", "f.parquet", "--by", "cc", "--plot", "p.svg"]
    assert main(["evaluate", "sbd", "--drift", *words, "--json"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("cczoo evaluate: the next version will not know this spelling; ")
    new = shlex.split(said.partition("cczoo drift")[2])
    assert main(["drift", *new]) == 1
    assert given[0] == given[1]
    assert not capsys.readouterr().err


def test_what_is_made_tells_the_new_spelling(monkeypatch):
    """An entry keeps the command that made it, which should still be one in the next version."""
    from data.command_line import made_by

    told = []
    monkeypatch.setattr(drift_command, "run", lambda args: told.append(made_by()) or 0)
    words = ["cczoo", "evaluate", "sbd", "--drift", "--model", "smartsbd-dt", "--features", "f"]
    monkeypatch.setattr("sys.argv", words)
    assert main() == 0
    assert told == ["cczoo drift --model smartsbd-dt --features f"]


def test_results_and_exit_status_are_as_before(entries, capsys):
    words = ["--model", str(entries.make("good")), "--features", str(entries.features), "--json"]
    words += ["--reference", str(entries.features)]
    found = []
    for command in (["drift"], ["evaluate", "sbd", "--drift"]):
        status = main([*command, *words])
        found.append((status, json.loads(capsys.readouterr().out)))
    assert found[0] == found[1]
