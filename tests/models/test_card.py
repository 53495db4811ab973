"""One writer of cards: every layout of it, letter by letter."""

import dataclasses

import pytest

from models import store
from models.card import Card, Made, Table, facts, interval, render
from models.origin import Origin
from pipelines.zoo import functions

ORIGIN = Origin("tcco", "cczoo train tcco", {"window": 50, "weight": 0.125}, "d" * 4)
MADE = Made(
    "decision tree",
    ("rtt", "rate"),
    2,
    "3 episodes of 8 flows",
    "a" * 4,
    ORIGIN,
    {"depth": 3},
)
CONTROLLER = Card(
    title="tcco",
    summary="Chooses the next window.",
    facts=facts(MADE),
    purpose="Two flows\nover one link.",
    figures=(
        Table(
            (("steady", interval({"mean": 1.5, "low": 1.25, "high": 1.75})), ("bursts", "–")),
            ("traffic", "return"),
            before="Returns of unseen episodes.",
        ),
        Table((("fairness", "0.990"),), after="The paper gives none."),
    ),
    limits=("Simulated links alone.", "No\n  radio."),
)
WRITTEN = """\
# tcco

Chooses the next window.

| | |
| --- | --- |
| Kind | decision tree, depth 3 |
| Features (2) | rtt, rate |
| Trained on | 3 episodes of 8 flows |
| Computed with | window 50, weight 0.125 |
| Feature schema | `aaaa` |
| Training table | `dddd` |
| Made by | `cczoo train tcco` |

## What it is for

Two flows
over one link.

## How well

Returns of unseen episodes.

| traffic | return |
| --- | --- |
| steady | 1.500 [1.250, 1.750] |
| bursts | – |

| | |
| --- | --- |
| fairness | 0.990 |

The paper gives none.

## Limits

- Simulated links alone.
- No
  radio.
"""


def test_a_controller_without_accuracies_has_a_card():
    assert render(CONTROLLER) == WRITTEN
    tight = render(dataclasses.replace(CONTROLLER, spaced=False))
    lines = WRITTEN.split("\n")
    under = {i + 1 for i, line in enumerate(lines) if line.startswith("## ")}
    assert tight.split("\n") == [line for i, line in enumerate(lines) if i not in under]


def test_a_short_card_lists_its_facts():
    short = Card("a", "An a.", {"Costs": "ns 3", "Features": "x | y"}, listed=True)
    assert render(short) == "# a\n\nAn a.\n\n- Costs: ns 3\n- Features: x | y\n"
    settings = dataclasses.replace(short, settings={"C": 0.5, "kernel": "<rbf>"})
    assert render(settings) == render(short) + "\n## Settings\n\n- C: 0.5\n- kernel: <rbf>\n"


def test_a_table_without_rows_says_nothing():
    empty = Table((), ("traffic", "return"), "Returns.", "None of them measured.")
    shown = render(dataclasses.replace(CONTROLLER, figures=(empty, *CONTROLLER.figures)))
    assert shown == WRITTEN.replace("Returns of unseen", "\nReturns of unseen")


def test_facts_that_there_are_not_are_left_out():
    bare = dataclasses.replace(MADE, origin=Origin("nuwa", "cczoo zoo release"), settings={})
    found = facts(bare)
    assert list(found) == ["Kind", "Features (2)", "Trained on", "Feature schema", "Made by"]
    assert found["Kind"] == "decision tree"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        ({"mean": None, "low": None, "high": None}, "–"),
        ({"mean": 0.5, "low": None, "high": None}, "0.500"),
        ({"mean": 0.5, "low": 0.4321, "high": 0.6}, "0.500 [0.432, 0.600]"),
    ],
)
def test_intervals(value, shown):
    assert interval(value) == shown


def test_the_functions_card_is_the_released_one(tmp_path):
    made = functions.write("nuwa-tanh", tmp_path)
    assert (made / "card.md").read_text() == store.load("nuwa-tanh").read("card.md").decode()
