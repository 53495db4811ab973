"""What the hash of a model's features is of, and what it isn't of."""

from dataclasses import replace

import pytest

from features.params import SbdParams
from features.sbd import settings_for
from features.smartsbd import FEATURES
from features.spec import schema_hash

SETTINGS = settings_for("smartsbd", {})
HASH = schema_hash(FEATURES, SETTINGS)


def changed(**fields):
    return (replace(FEATURES[0], **fields), *FEATURES[1:])


@pytest.mark.parametrize("name", ["doc", "source"])
def test_words_for_people_leave_the_hash(name):
    assert schema_hash(changed(**{name: "a typo mended"}), SETTINGS) == HASH


@pytest.mark.parametrize(
    ("name", "value"),
    [("name", "other"), ("unit", "s"), ("low", -1.0), ("high", 1.0), ("scale", 2)],
)
def test_what_a_model_depends_on_changes_it(name, value):
    assert schema_hash(changed(**{name: value}), SETTINGS) != HASH


def test_the_order_changes_it():
    assert schema_hash(FEATURES[::-1], SETTINGS) != HASH


@pytest.mark.parametrize("name", SbdParams.model_fields)
def test_every_setting_changes_it(name):
    other = {**SETTINGS, name: SETTINGS[name] / 2}
    assert schema_hash(FEATURES, other) != HASH


def test_whole_numbers_are_the_same_in_either_spelling():
    assert schema_hash(changed(low=0, high=5), {}) == schema_hash(changed(low=0.0, high=5.0), {})


def test_families_without_windows_have_no_settings():
    assert settings_for("nuwa", {"window_factor": 25}) == {}
    assert settings_for("smartsbd-plus", {"window_factor": 25}) == {**SETTINGS, "window_factor": 25}
