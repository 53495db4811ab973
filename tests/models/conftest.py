import sys
from pathlib import Path

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import synthetic

from models.sbd.windows import Windows, windows


@pytest.fixture(scope="session")
def frame() -> pl.DataFrame:
    return synthetic.features(seed=1)


@pytest.fixture(scope="session")
def table(frame: pl.DataFrame) -> Windows:
    return windows(frame)
