import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def decisions(tmp_path_factory):
    """A folder of decisions in two files."""
    from offline_tables import ABOUT, runs

    from data.decisions import files

    folder = tmp_path_factory.mktemp("decisions")
    made = list(runs(40))
    for name, part in (("a", made[:20]), ("b", made[20:])):
        files.write(folder / f"{name}.parquet", ABOUT, iter(part))
    return folder
