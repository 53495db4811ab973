"""``export`` in params.yaml is what export and verify do; flags win; moved settings are named."""

import json

import pytest

from pipelines.cli import main
from pipelines.params import load

MODEL = "smartsbd-dt"


@pytest.fixture
def params(tmp_path):
    def write(text):
        path = tmp_path / "params.yaml"
        path.write_text(text)
        return str(path)

    return write


def test_export_takes_its_options_from_the_file(params, tmp_path):
    file = params("export: {options: {layout: array, subflows: 3}}")
    words = ["export", MODEL, "-t", "c", "--params", file, "--out", f"{tmp_path}/b"]
    assert main(words) == 0
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    assert manifest["targets"]["c"]["layout"] == "array"
    assert manifest["targets"]["c"]["companion"]["subflows"] == 3
    assert main([*words, "--layout", "if-else", "--set", "subflows=4"]) == 0
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    assert manifest["targets"]["c"]["layout"] == "if-else"
    assert manifest["targets"]["c"]["companion"]["subflows"] == 4


def test_verify_takes_its_settings_from_the_file(params, tmp_path, capsys):
    assert main(["export", MODEL, "-t", "json", "--out", f"{tmp_path}/b"]) == 0
    words = ["verify", f"{tmp_path}/b", "--json"]
    found = []
    for more in ([], ["--random", "9"]):
        file = params("export: {verify: {random: 7}}")
        capsys.readouterr()
        assert main([*words, "--params", file, *more]) == 0
        found.append(json.loads(capsys.readouterr().out)["targets"][0]["vectors"])
    # Within the ranges, and as many over all of 32 bits.
    assert found[1] - found[0] == 2 * (9 - 7)
    assert main([*words, "--params", params("export: {verify: {randm: 7}}")]) == 2
    assert "did you mean 'random'" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["window_factor=50", "sbd={window_factor: 50}"])
def test_windows_are_no_option_of_an_export(key, tmp_path, capsys):
    assert main(["export", MODEL, "-t", "c", "--set", key, "--out", f"{tmp_path}/b"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "windows are the model's own" in line


def test_the_old_place_of_the_neural_settings_is_refused(params, capsys):
    file = params("models: {neural: {width: 8}}")
    words = ["train", "sbd", "all", "--features", "none.parquet", "--params", file]
    assert main(words) == 2
    assert "models.sbd.neural" in capsys.readouterr().err


def test_the_repositorys_own_file_has_both(request):
    found = load(request.config.rootpath / "params.yaml")
    assert found.models.sbd.neural.epochs == 8
    assert found.export.verify.random == 2000
