"""Labels and settings that a user names: whatever is there, they are read or refused soon."""

import os
import threading
from pathlib import Path

import pytest

from data import yaml_text
from data.errors import UserError
from data.labels import read_labels


@pytest.mark.parametrize("read", [yaml_text.read, read_labels])
def test_what_has_no_end_is_refused(read, tmp_path, monkeypatch):
    with pytest.raises(UserError, match=r"/dev/zero: not a file: give a readable"):
        read(Path("/dev/zero"))
    monkeypatch.setattr("data.given.WRITER_PATIENCE_S", 0.2)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match=r"pipe: a pipe that nobody writes to"):
        read(tmp_path / "pipe")


def test_a_large_yaml_is_refused_by_its_size(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_bytes(b"#" * (yaml_text.MOST_BYTES + 1))
    with pytest.raises(UserError, match=r"x.yaml: too large: a YAML file has 16 MiB at most"):
        yaml_text.read(path)


def test_a_pipe_with_a_writer_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("data.given.WRITER_PATIENCE_S", 120)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("seed: 3\n",))
    writer.start()
    assert yaml_text.read(path) == {"seed": 3}
    writer.join()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_is_believed(encoding, tmp_path):
    path = tmp_path / "x"
    path.write_text("name: Zoë\n", encoding=encoding)
    assert yaml_text.read(path) == {"name": "Zoë"}
    path.write_text("source,label\r\nZoë,sb\r\n", encoding=encoding)
    assert read_labels(path).rows == [{"source": "Zoë", "label": "SB"}]
    path.write_bytes(b"source\n\xff\n")
    with pytest.raises(UserError, match=r"not a CSV in UTF-8: byte 7: save it as UTF-8"):
        read_labels(path)
