"""Small models, a zoo of them and their bundles, shared by every export test."""

import numpy as np
import pytest
from small_models import ESTIMATORS, FEATURES


@pytest.fixture(scope="session")
def features():
    return FEATURES


@pytest.fixture(scope="session")
def table():
    """Observations [1500, 4] and their classes, noisy enough for deep trees."""
    rng = np.random.default_rng(7)
    low = np.array([f.low for f in FEATURES])
    high = np.array([f.high for f in FEATURES])
    x = rng.uniform(low, high, (1500, 4))
    x[:, 3] = np.floor(x[:, 3])
    score = x[:, 0] / 1000 + x[:, 2] * x[:, 1] / 20 + rng.normal(0, 0.3, 1500)
    return x, (score > 0.5).astype(int)


@pytest.fixture(scope="session")
def zoo(tmp_path_factory, table):
    """A zoo with one model of each kind."""
    from export.entry import write_entry

    x, y = table
    root = tmp_path_factory.mktemp("zoo")
    for name, make in ESTIMATORS.items():
        meta = {"family": "smartsbd", "created_by": "the tests"}
        estimator = make().fit(x, y)
        write_entry(name, estimator, FEATURES, meta, x, {"n": 1}, f"# {name}\n", labels=y, zoo=root)
    return root


@pytest.fixture(scope="session")
def bundles(zoo, tmp_path_factory):
    """One exported bundle per model, with every target that fits (eBPF where it can be run)."""
    from export.bpf.build import why_not
    from export.bundle.manifest import bundle_files
    from export.params import Options
    from export.source import source_of
    from export.targets import targets_of
    from models.store import load, names, replace_directory

    if no_bpf := why_not():
        print(f"bundles without eBPF: {no_bpf}")
    root = tmp_path_factory.mktemp("bundles")
    for name in names(zoo):
        model = load(name, zoo)
        targets = [t for t in targets_of(model) if t != "bpf" or no_bpf is None]
        files = bundle_files(source_of(model), targets, Options(), "the tests")
        replace_directory(root / name, files)
    return root


@pytest.fixture(scope="module")
def no_kernel_headers():
    """A machine without kernel headers: tests of other things don't compile the kernel module.

    That it compiles is tested in test_table.py, of the zoo's models in pipelines/test_prove.py.
    """
    from export.toolchain import kernel_module

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_module, "headers", lambda: None)
        yield
