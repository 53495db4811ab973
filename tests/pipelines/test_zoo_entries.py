"""Functions as entries, what comes into the zoo, certificates and costs, generated tables."""

import json
from pathlib import Path

import pytest

from models import store
from pipelines.cli import main
from pipelines.zoo import docs, prove


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    zoo = tmp_path_factory.mktemp("zoo")
    made = ["nuwa-tanh", str(store.ZOO / "smartsbd-dt")]
    assert release(zoo, *made) == 0
    return zoo


SETTINGS = "promotion: {gates: {test-set: {}, certificate: {targets: [json]}}}"


def release(zoo: Path, *more: str) -> int:
    settings = zoo.with_name("release.yaml")
    settings.write_text(SETTINGS)
    # Without a table the stored samples are the test set.
    given = ["--params", str(settings), "--features", f"{zoo}/none"]
    return main(["zoo", "release", *more, "--zoo", str(zoo), *given])


def test_function_is_listed_and_shown(zoo, capsys):
    assert main(["zoo", "list", "--zoo", str(zoo), "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["nuwa-tanh"]["kind"] == "lut"
    assert rows["nuwa-tanh"]["targets"] == ["bpf", "c", "json", "lut", "onnx", "python"]
    assert main(["zoo", "show", "nuwa-tanh", "--zoo", str(zoo)]) == 0
    card = capsys.readouterr().out
    error = store.load("nuwa-tanh", zoo).meta.quantization_error["largest_error"]
    assert f"{error:.2e}" in card
    assert "nuwa.txt section IV.B" in card


def test_verify_tries_every_input(zoo, capsys):
    assert main(["zoo", "verify", "nuwa-tanh", "--zoo", str(zoo), "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)["models"]
    assert report["error"]["every_input_tried"]
    assert report["vectors"] == report["error"]["inputs_tried"] > 30_000
    assert report["error"]["largest_error"] <= report["error"]["error_bound"]


def test_an_altered_table_is_found_even_if_it_was_sealed_again(zoo, tmp_path, capsys):
    model = store.load("nuwa-tanh", zoo)
    files = {name: model.read(name) for name in model.meta.files}
    form = json.loads(files["model.json"])
    entries = form["curve"]["entries"]
    entries[1000:1020] = [entries[1020]] * 20
    files["model.json"] = json.dumps(form).encode()
    files["certificate.json"] = model.beside("certificate.json")
    meta = model.meta.model_dump(exclude={"files", "checksum"})
    store.save(tmp_path / "nuwa-tanh", meta, files)
    assert main(["zoo", "verify", "nuwa-tanh", "--zoo", str(tmp_path), "--json"]) == 1
    problems = json.loads(capsys.readouterr().out)["models"][0]["problems"]
    assert any("largest_error" in problem for problem in problems)
    assert any("certificate.json is another model's" in problem for problem in problems)


@pytest.mark.parametrize("name", ["nuwa-tanh", "smartsbd-dt"])
def test_certificate_and_costs_are_of_the_entry(zoo, name):
    model = store.load(name, zoo)
    certificate = json.loads(model.beside("certificate.json"))
    assert certificate["ok"]
    assert certificate["name"] == name
    proved = {t["target"]: t for t in certificate["targets"]}
    costs = {row["target"]: row for row in json.loads(model.beside("costs.json"))["rows"]}
    assert {"c", "json"} <= proved.keys() <= costs.keys()
    assert costs["c"]["ns_per_decision"] == proved["c"]["ns_per_decision"] > 0
    told = model.beside("costs.md").decode()
    for target, row in costs.items():
        assert f"| {target} | {row['vectors']} |" in told
    assert not set(store.BESIDE) & set(model.meta.files)
    if name == "smartsbd-dt":
        assert costs["onnx"]["ns_per_decision"] > costs["c"]["ns_per_decision"]


def test_the_old_commands_name_the_new_one(zoo, tmp_path, capsys):
    for command in (["add", "nuwa-tanh"], ["add", "nuwa-tanh", "--zoo", str(store.ZOO)]):
        assert main(["zoo", *command]) == 2
        assert "cczoo zoo release NAME" in capsys.readouterr().err
    assert main(["zoo", "certify"]) == 2
    assert "cczoo zoo release NAME" in capsys.readouterr().err
    assert main(["zoo", "add", str(zoo / "nuwa-tanh"), "--zoo", str(tmp_path)]) == 0
    assert store.load("nuwa-tanh", tmp_path).beside("costs.json")


def test_a_name_is_proved_once(monkeypatch, capsys):
    proved = []
    monkeypatch.setattr(prove, "prove", lambda name, only=(): proved.append(name) or [])
    assert main(["zoo", "prove", "--json"]) == 0
    assert "nuwa-tanh" in proved
    assert len(set(proved)) == len(proved)


def test_documents_tables_are_as_the_zoo_is(capsys):
    assert main(["zoo", "docs", "--check"]) == 0, capsys.readouterr().err


def test_drift_is_refused_and_mended(zoo, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    for document, name in zip(docs.DOCUMENTS, docs.TABLES, strict=True):
        begin = docs.BEGIN.format(name=name)
        (tmp_path / document).write_text(f"before\n{begin}\nstale\n{docs.END}\nafter\n")
    check = ["zoo", "docs", "--zoo", str(zoo)]
    assert main([*check, "--check"]) == 1
    assert "run `cczoo zoo docs`" in capsys.readouterr().err
    assert main(check) == 0
    assert main([*check, "--check"]) == 0
    page = (tmp_path / "docs" / "zoo.md").read_text()
    assert page.startswith("before\n")
    assert page.endswith("after\n")
    assert "stale" not in page
    mean = store.load("smartsbd-dt", zoo).read_json("metrics.json")["within"]["window"]["mean"]
    assert f"{mean:.3f}" in page
    (tmp_path / "README.md").write_text("no marker\n")
    assert main(check) == 2
    assert "put it back" in capsys.readouterr().err


def test_whatever_is_released_reaches_a_kernel(capsys):
    assert main(["zoo", "list", "--json"]) == 0
    rows = {row["name"]: row["targets"] for row in json.loads(capsys.readouterr().out)}
    assert {name for name, targets in rows.items() if not {"c", "bpf", "onnx"} <= set(targets)} == (
        set()
    )
    # What remembers is in no table.
    assert rows["tcco"] == rows["nuwa-rl"] == ["bpf", "c", "json", "onnx"]
    assert main(["export", "tcco", "-t", "lut", "--out", "unused"]) == 2
    assert capsys.readouterr().err.endswith("makes a small tree of it): try bpf, c, json, onnx\n")


def test_a_policys_network_is_proved_in_c_beside_its_onnx(tmp_path, capsys):
    out = str(tmp_path / "macc-aqm")
    assert main(["export", "macc-aqm", "-t", "c", "-t", "onnx", "--out", out]) == 0
    capsys.readouterr()
    assert main(["verify", out, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    rows = {row["target"]: row for row in report["targets"]}
    assert rows["c"]["vectors"] > 5000
    assert rows["onnx"]["vectors"] >= 2048
    assert rows["c"]["mismatches"] == rows["onnx"]["mismatches"] == 0
    assert rows["onnx"]["integer_form"]["disagreements"] <= 20
