"""The notebooks, cell by cell, as their reader would run them."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
FIGURES = {"card.ipynb": 1, "compare.ipynb": 1, "connection.ipynb": 2}
"""Name -> plots that a reader gets to see."""


def test_every_notebook_is_listed():
    assert {path.name for path in FOLDER.glob("*.ipynb")} == FIGURES.keys()


@pytest.mark.parametrize("name", FIGURES)
def test_runs_from_top_to_bottom(name, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{FOLDER.parents[1]}:{os.environ.get('PYTHONPATH', '')}")
    notebook = nbformat.read(FOLDER / name, 4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "kept without outputs"
    place = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(notebook, timeout=3600, startup_timeout=600, resources=place).execute()
    outputs = [one for cell in notebook.cells for one in cell.get("outputs", [])]
    shown = [one for one in outputs if "image/png" in one.get("data", {})]
    assert len(shown) == FIGURES[name]
    text = "".join(one.get("text", "") for one in outputs)
    if name == "compare.ipynb":
        assert "more than chance" in text or "may be chance" in text
    if name == "connection.ipynb":
        assert "2 connections" in text
        assert "right: " in text
