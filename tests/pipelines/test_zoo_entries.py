"""Functions as entries, what comes into the zoo, certificates and costs, generated tables."""

import json
import shutil
from pathlib import Path

import pytest

from models.sbd import store
from pipelines import prove, zoo_costs, zoo_docs
from pipelines.cli import main


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    zoo = tmp_path_factory.mktemp("zoo")
    assert main(["zoo", "add", "nuwa-tanh", str(store.ZOO / "smartsbd-dt"), "--zoo", str(zoo)]) == 0
    assert main(["zoo", "certify", "--zoo", str(zoo)]) == 0
    return zoo


def test_function_is_listed_and_shown(zoo, capsys):
    assert main(["zoo", "list", "--zoo", str(zoo), "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["nuwa-tanh"]["kind"] == "lut"
    assert rows["nuwa-tanh"]["targets"] == ["c", "json", "lut", "python"]
    assert main(["zoo", "show", "nuwa-tanh", "--zoo", str(zoo)]) == 0
    card = capsys.readouterr().out
    error = store.load("nuwa-tanh", zoo).meta.scaling["largest_error"]
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
    meta = model.meta.model_dump(exclude={"files", "seal"})
    store.save(tmp_path / "nuwa-tanh", meta, files)
    assert main(["zoo", "verify", "nuwa-tanh", "--zoo", str(tmp_path), "--json"]) == 1
    problems = json.loads(capsys.readouterr().out)["models"][0]["problems"]
    assert any("largest_error" in problem for problem in problems)
    assert any("certificate.json is another model's" in problem for problem in problems)


@pytest.mark.parametrize("name", ["nuwa-tanh", "smartsbd-dt"])
def test_certificate_and_costs_are_of_the_entry(zoo, name):
    model = store.load(name, zoo)
    certificate = model.read_json("certificate.json")
    assert certificate["ok"]
    assert certificate["name"] == name
    proved = {t["target"]: t for t in certificate["targets"]}
    costs = {row["target"]: row for row in model.read_json("costs.json")["rows"]}
    assert {"c", "json"} <= proved.keys() <= costs.keys()
    assert costs["c"]["ns_per_decision"] == proved["c"]["ns_per_decision"] > 0
    card = model.read("card.md").decode()
    assert card.count(zoo_costs.HEADING) == 1
    for target, row in costs.items():
        assert f"| {target} | {row['vectors']} |" in card
    if name == "smartsbd-dt":
        assert costs["onnx"]["ns_per_decision"] > costs["c"]["ns_per_decision"]


def test_certifying_again_keeps_all_else(zoo, tmp_path):
    entry = shutil.copytree(zoo / "nuwa-tanh", tmp_path / "nuwa-tanh")
    before = store.load(entry)
    zoo_costs.certify(entry, bench=tmp_path / "none.json")
    after = store.load(entry)
    changed = {n for n, digest in after.meta.files.items() if before.meta.files[n] != digest}
    assert changed <= {"card.md", "certificate.json", "costs.json"}
    assert {row["measured"] for row in after.read_json("costs.json")["rows"]} == {"here"}


def test_what_does_not_verify_is_not_added(zoo, tmp_path, capsys):
    entry = shutil.copytree(zoo / "smartsbd-dt", tmp_path / "smartsbd-dt")
    (entry / "more.txt").write_text("?")
    assert main(["zoo", "add", str(entry), "--zoo", str(tmp_path / "other")]) == 2
    assert "more.txt" in capsys.readouterr().err
    assert not (tmp_path / "other" / "smartsbd-dt").exists()


def test_a_name_is_proved_once(monkeypatch, capsys):
    proved = []
    monkeypatch.setattr(prove, "prove", lambda name, only=(): proved.append(name) or [])
    assert main(["zoo", "prove", "--json"]) == 0
    assert "nuwa-tanh" in proved
    assert len(set(proved)) == len(proved)


def test_documents_tables_are_as_the_zoo_is(capsys):
    assert main(["zoo", "docs", "--check"]) == 0, capsys.readouterr().err


def test_drift_is_refused_and_mended(zoo, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(zoo_docs, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    for document, name in zip(zoo_docs.DOCUMENTS, zoo_docs.TABLES, strict=True):
        begin = zoo_docs.BEGIN.format(name=name)
        (tmp_path / document).write_text(f"before\n{begin}\nstale\n{zoo_docs.END}\nafter\n")
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
