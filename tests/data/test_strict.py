"""Settings refuse what they don't know and say what was meant."""

from pathlib import Path

import pytest

from data.errors import UserError
from data.netsim.scenario import Scenario
from data.strict import Strict


class Inner(Strict):
    max_depth: int = 10


class Outer(Strict):
    tree: Inner = Inner()


def test_unknown_key_names_path_and_nearest() -> None:
    with pytest.raises(UserError, match=r"x\.yaml: tree\.max_dept: .*did you mean 'max_depth'"):
        Outer.parse({"tree": {"max_dept": 3}}, "x.yaml")


def test_key_in_the_wrong_place_names_the_right_one() -> None:
    with pytest.raises(UserError, match=r"x: max_depth: .*did you mean 'tree\.max_depth'"):
        Outer.parse({"max_depth": 3}, "x")


def test_wrong_type_names_the_key() -> None:
    with pytest.raises(UserError, match=r"tree\.max_depth"):
        Outer.parse({"tree": {"max_depth": "deep"}}, "x.yaml")


@pytest.mark.parametrize("text", ["[1, 2]", "a: [", "\x00"])
def test_unreadable_file_is_a_users_mistake(tmp_path: Path, text: str) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match=r"p\.yaml"):
        Outer.load(file)


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Outer().tree = Inner()


def test_a_model_s_own_words_stay_as_they_are() -> None:
    path = {"forward": ["Up"], "back": ["cell"]}
    tree = {"links": {"cell": {"rate_mbps": 3}}, "flows": [{"name": "f", "paths": [path]}]}
    with pytest.raises(UserError) as unknown:
        Scenario.parse(tree, "my.yaml")
    assert str(unknown.value) == "my.yaml: unknown link 'Up': known: cell"
    two = {"rate_mbps": 3, "trace": "x"}
    with pytest.raises(UserError, match=r"my\.yaml: links\.cell: give one of rate_mbps, "):
        Scenario.parse({"links": {"cell": two}}, "my.yaml")
