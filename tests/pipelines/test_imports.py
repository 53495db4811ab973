"""What quick commands don't import: their time goes into imports above all."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models import synthetic

RUN = """
import json, sys
from pipelines import cli
code = cli.main(json.loads(sys.argv[1]))
print(json.dumps([code, sorted({name for name in sys.modules})]))
"""
NEVER = {
    "pandas", "sklearn", "torch", "mlflow", "matplotlib", "ray", "lightning", "pyarrow", "skl2onnx",
    "onnxscript", "tslearn", "IPython", "scipy.special", "scipy.signal", "scipy.stats",
    "scipy.optimize",
}  # fmt: skip
LOG = Path(__file__).parents[1] / "golden" / "klog.klog"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imports")
    synthetic.features(1, 2, 2, 1, 2).write_parquet(folder / "f.parquet")
    return folder


@pytest.mark.parametrize(
    ("words", "also"),
    [
        (
            "zoo list",
            {"numpy", "numba", "polars", "arro3", "jinja2", "onnx", "export.toolchain.harness"},
        ),
        ("ingest {log} --out {dir}/events", {"polars", "jinja2", "onnx", "onnxruntime"}),
        ("evaluate sbd --model smartsbd-dt --features {dir}/f.parquet --json", {"jinja2", "numba"}),
        ("export smartsbd-dt -t c --out {dir}/bundle", {"polars", "onnx", "numba"}),
    ],
)
def test_heavy_libraries_stay_out(words, also, files):
    given = words.format(dir=files, log=LOG).split()
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(given)], capture_output=True, text=True
    )
    code, modules = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    assert not (NEVER | also) & set(modules)
