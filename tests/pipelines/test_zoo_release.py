"""Nothing but a release changes the zoo, and a training is compared with what was released."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from models import store
from pipelines.cli import main
from pipelines.zoo import certify

SETTINGS = "promotion: {gates: {test-set: {margin: 0.05}, certificate: {targets: [json]}}}"


@pytest.fixture
def place(entries, tmp_path, monkeypatch):
    """A folder of trained models (`small`) and an empty zoo."""
    shutil.copytree(entries.make("good"), tmp_path / "trained" / "small")
    (tmp_path / "params.yaml").write_text(SETTINGS)
    # Building and timing is test_zoo_entries.py's.
    monkeypatch.setattr(certify, "TARGETS", ("json",))
    return tmp_path


def release(place: Path, *more: str) -> int:
    given = ["--zoo", f"{place}/zoo", "--from", f"{place}/trained", "--features", f"{place}/none"]
    return main(
        ["zoo", "release", *(more or ["small"]), *given, "--params", f"{place}/params.yaml"]
    )


def reproduced(place: Path, capsys) -> tuple[int, dict]:
    capsys.readouterr()
    folders = ["--zoo", f"{place}/zoo", "--trained", f"{place}/trained"]
    status = main(["zoo", "reproduced", *folders, "--json"])
    return status, json.loads(capsys.readouterr().out)["models"][0]


def trained(place: Path, entry: Path) -> None:
    shutil.rmtree(place / "trained" / "small")
    shutil.copytree(entry, place / "trained" / "small")


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_release_is_proved_and_the_same_is_not_released_again(place, capsys):
    assert release(place) == 0
    model = store.load("small", place / "zoo")
    assert model.meta.version == "1"
    assert json.loads(model.beside("certificate.json"))["ok"]
    record = json.loads(model.beside("release.json"))
    assert record["gates"]["certificate"]["passed"]
    assert main(["zoo", "verify", "--zoo", f"{place}/zoo"]) == 0
    before = snapshot(place / "zoo")
    capsys.readouterr()
    assert release(place) == 1
    assert "nothing to release" in capsys.readouterr().err
    assert snapshot(place / "zoo") == before


def test_the_next_version_passes_the_gates_or_says_why_it_was_let_in(place, entries, capsys):
    assert release(place) == 0
    before = snapshot(place / "zoo")
    trained(place, entries.make("bad"))
    assert release(place) == 1
    assert "test-set" in capsys.readouterr().err
    trained(place, entries.make("good", depth=5))
    assert release(place, "small", "--dry-run") == 0
    assert snapshot(place / "zoo") == before
    assert release(place) == 0
    assert store.load("small", place / "zoo").meta.version == "2"
    trained(place, entries.make("bad"))
    assert release(place, "small", "--force", "reversed on purpose") == 0
    model = store.load("small", place / "zoo")
    assert model.meta.version == "3"
    assert json.loads(model.beside("release.json"))["forced"] == "reversed on purpose"


def test_an_interrupted_release_leaves_the_released_entry(place, entries, monkeypatch):
    assert release(place) == 0
    before = snapshot(place / "zoo")
    trained(place, entries.make("good", depth=5))

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(certify, "measured", killed)
    assert release(place) == 1
    assert snapshot(place / "zoo") == before


def test_mistakes_are_told(place, capsys):
    assert release(place, "smal") == 2
    assert "did you mean 'small'" in capsys.readouterr().err
    with (place / "trained" / "small" / "card.md").open("a") as card:
        card.write("x")
    assert release(place) == 2
    assert "card.md: altered" in capsys.readouterr().err
    assert not (place / "zoo").exists()


def test_an_entry_that_cannot_be_read_any_more_needs_a_reason(place, capsys):
    assert release(place) == 0
    path = place / "zoo" / "small" / "meta.json"
    path.write_text(path.read_text().replace('"family"', '"famly"'))
    assert release(place) == 1
    assert "--force REASON" in capsys.readouterr().err
    assert release(place, "small", "--force", "older format") == 0
    assert store.load("small", place / "zoo").meta.version == "2"


def test_the_same_training_is_identical_whatever_was_measured(place, capsys):
    assert release(place) == 0
    (place / "zoo" / "small" / "costs.json").write_text('{"rows": []}')
    status, found = reproduced(place, capsys)
    assert (status, found["verdict"], found["files"]) == (0, "identical", [])


def test_a_command_that_is_spelled_anew_trains_the_same_model(place, capsys):
    """The command stands in ``meta.json`` and in the card, both of them sealed."""
    entry = place / "trained" / "small"
    for command in ("cczoo train sbd --step fit", "cczoo train sbd fit"):
        model = store.load(entry)
        files = {name: model.read(name) for name in model.meta.files}
        files["card.md"] = f"# small\n\n| Made by | `{command}` |\n".encode()
        meta = model.meta.model_dump(exclude={"files", "checksum"}) | {"created_by": command}
        store.save(entry, meta, files)
        if "--step" in command:
            assert release(place) == 0
    status, found = reproduced(place, capsys)
    assert (status, found["verdict"], found["files"]) == (0, "identical", [])
    assert release(place) == 1
    assert "nothing to release: version 1 is the same model" in capsys.readouterr().err
    model = store.load(entry)
    card = model.read("card.md") + b"Another figure.\n"
    saved(place, card_md=card)
    assert reproduced(place, capsys)[1]["files"] == ["card.md"]


def saved(place: Path, **files: bytes) -> None:
    """Change files of the trained entry as another machine's training would have written them."""
    entry = place / "trained" / "small"
    model = store.load(entry)
    content = {name: model.read(name) for name in model.meta.files}
    named = {name.replace("_", "."): value for name, value in files.items()}
    store.save(entry, model.meta.model_dump(exclude={"files", "checksum"}), {**content, **named})


def test_other_last_digits_are_equal(place, capsys):
    import onnx

    assert release(place) == 0
    model = onnx.load(place / "trained" / "small" / "model.onnx")
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "nodes_values":
                moved = np.nextafter(np.float32(attribute.floats), np.float32(np.inf))
                del attribute.floats[:]
                attribute.floats.extend(moved.tolist())
    content = model.SerializeToString()
    assert content != (place / "trained" / "small" / "model.onnx").read_bytes()
    saved(place, model_onnx=content)
    status, found = reproduced(place, capsys)
    assert (status, found["verdict"], found["files"]) == (0, "equal", ["model.onnx"])
    assert found["form"] == "same"
    assert found["differing"] == 0
    assert "equal within integer form identical" in found["text"]


def test_another_model_differs_and_its_file_is_written_all_the_same(place, entries, capsys):
    assert release(place) == 0
    trained(place, entries.make("bad"))
    status, found = reproduced(place, capsys)
    assert (status, found["verdict"]) == (1, "differs")
    assert f"{found['differing']} of {found['answers']} verdicts" in found["text"]
    folders = ["--zoo", f"{place}/zoo", "--trained", f"{place}/trained"]
    out = place / "reports" / "reproduction.json"
    assert main(["zoo", "reproduced", *folders, "--out", str(out)]) == 0
    assert json.loads(out.read_text())["models"][0] == found
    assert main(["zoo", "reproduced", *folders]) == 1
    assert "cczoo zoo release small" in capsys.readouterr().out


def test_what_was_not_trained_or_of_other_settings_is_told(place, entries, capsys):
    assert release(place) == 0
    model = store.load(place / "trained" / "small")
    files = {name: model.read(name) for name in model.meta.files}
    meta = model.meta.model_dump(exclude={"files", "checksum"}) | {"data_hash": "e" * 64}
    store.save(place / "trained" / "small", meta, files)
    assert reproduced(place, capsys)[1]["text"] == "differs: other data_hash"
    shutil.rmtree(place / "trained" / "small")
    status, found = reproduced(place, capsys)
    assert (status, found["verdict"]) == (1, "missing")
