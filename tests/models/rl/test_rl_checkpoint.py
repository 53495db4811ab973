"""A checkpoint is there whole or not at all, and reading one runs no code."""

import numpy as np
import pytest

from data.errors import UserError
from models.rl import checkpoint

TREE = {
    "network": {"a.weight": np.arange(6, dtype=np.float32).reshape(2, 3)},
    "optimiser": {"0": {"step": np.array(3, np.float32)}},
    "best": {},
    "run": {
        "ring": {"over": np.array([True, False]), "whole": np.arange(24).reshape(4, 6)[:, ::2]},
        "rng": {"state": 2**127 + 5, "pos": 3},
        "curve": [{"return": 0.5}, {"return": float("nan")}],
        "raw": b"\x00\xff",
        "empty": np.zeros((0, 3)),
        "scalar": np.float64(2.5),
        7: "seven",
        "records": np.array([(1, [2.0, 3.0]), (4, [5.0, 6.0])], [("a", "i8"), ("b", "f4", (2,))]),
    },
}


def test_what_is_written_is_read(tmp_path):
    path = checkpoint.write(tmp_path, 10, TREE)
    found = checkpoint.read(path)
    assert (found["network"]["a.weight"] == TREE["network"]["a.weight"]).all()
    assert found["optimiser"]["0"]["step"].shape == ()
    run = found["run"]
    assert run["ring"]["over"].tolist() == [True, False]
    assert (run["ring"]["whole"] == TREE["run"]["ring"]["whole"]).all()
    assert run["rng"] == {"state": 2**127 + 5, "pos": 3}
    assert run["curve"][0] == {"return": 0.5}
    assert np.isnan(run["curve"][1]["return"])
    assert (run["raw"], run["scalar"], run[7]) == (b"\x00\xff", 2.5, "seven")
    assert run["empty"].shape == (0, 3)
    assert run["records"].dtype == TREE["run"]["records"].dtype
    assert (run["records"] == TREE["run"]["records"]).all()
    run["ring"]["whole"][0] = 1  # its arrays can be written


def test_only_the_newest_is_kept_with_what_else_is_in_the_folder(tmp_path):
    (tmp_path / "curve.json").write_text("[]")
    (tmp_path / ".checkpoint-000000000001.77").mkdir()
    for steps in (5, 20):
        checkpoint.write(tmp_path, steps, TREE)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["checkpoint-000000000020", "curve.json"]


@pytest.mark.parametrize("stage", ["save_file", "_to_disk"])
def test_a_write_that_fails_leaves_the_last_one(tmp_path, monkeypatch, stage):
    first = checkpoint.write(tmp_path, 5, TREE)

    def full(*_):
        raise OSError(28, "no space left")

    monkeypatch.setattr(checkpoint, stage, full)
    with pytest.raises(OSError, match="no space"):
        checkpoint.write(tmp_path, 20, TREE)
    assert [path.name for path in tmp_path.iterdir()] == [first.name]
    checkpoint.read(first)


@pytest.mark.parametrize("name", ["state.msgpack", "arrays.zst", "networks.safetensors"])
@pytest.mark.parametrize("damage", ["cut", "flip", "gone"])
def test_a_damaged_one_is_refused_in_one_line(tmp_path, name, damage):
    path = checkpoint.write(tmp_path, 5, TREE)
    raw = bytearray((path / name).read_bytes())
    if damage == "flip":
        raw[0] ^= 0xFF
    (path / name).write_bytes(bytes(raw[: len(raw) // 2] if damage == "cut" else raw))
    if damage == "gone":
        (path / name).unlink()
    with pytest.raises(UserError, match="no checkpoint of this version"):
        checkpoint.read(path)


def test_objects_are_neither_written_nor_made(tmp_path):
    with pytest.raises(TypeError, match="an array of object"):
        checkpoint.write(tmp_path, 5, {**TREE, "bad": np.array([print], object)})
    path = checkpoint.write(tmp_path, 5, TREE)
    raw = (path / "state.msgpack").read_bytes()
    (path / "state.msgpack").write_bytes(raw.replace(b"'|b1'", b"'|O8'"))
    with pytest.raises(UserError, match="no checkpoint of this version"):
        checkpoint.read(path)


def test_a_checkpoint_without_arrays_is_read(tmp_path):
    """Networks learned from logs have no ring, no moments and no generators beside them."""
    plain = TREE | {"run": {"steps": 3}}
    assert checkpoint.read(checkpoint.write(tmp_path, 1, plain))["run"] == {"steps": 3}
