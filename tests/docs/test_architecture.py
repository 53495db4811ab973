"""The page about the house names files and registries that there are."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
LAYERS = "pipelines|export|models|features|data"
FILES = sorted(set(re.findall(rf"`((?:{LAYERS})/[\w/.]+\.(?:py|j2))`", PAGE)))
REGISTRIES = sorted(set(re.findall(rf"`((?:{LAYERS})[\w.]*\.[A-Z]+)`", PAGE)))


def test_the_page_names_many():
    assert len(FILES) > 50
    assert len(REGISTRIES) > 10


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_there(name):
    assert (ROOT / name).is_file()


@pytest.mark.parametrize("name", REGISTRIES)
def test_a_registry_is_there(name):
    module, _, registry = name.rpartition(".")
    assert getattr(importlib.import_module(module), registry)
