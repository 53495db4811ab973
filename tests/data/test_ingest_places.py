"""Where a result goes: what is there already, full and closed disks, runs that were killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from data.errors import UserError
from data.formats import FORMATS
from data.ingest import ingest
from data.place import building, part_of, scratch, sweep
from data.store import RECORD, read_connections

GOLDEN = Path(__file__).parents[1] / "golden"
KLOG = next(GOLDEN.glob("klog.*")).read_bytes()
PATIENCE_S = 600
CCZOO = [sys.executable, "-m", "pipelines.cli"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "logs" / "a.klog"
    path.parent.mkdir()
    path.write_bytes(KLOG)
    return path


def test_record_lists_every_file_and_lets_them_be_replaced(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ingest([log], out)
    files = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert set(json.loads((out / RECORD).read_text())["files"]) == files
    (log.parent / "b.klog").write_bytes(KLOG)
    assert ingest([log.parent], out)["sources"] == 2
    assert names(tmp_path) == ["logs", "out"]


@pytest.mark.parametrize("foreign", ["thesis.tex", "events/notes.txt", "mine/", "events/a/b.txt"])
def test_anything_else_is_refused_by_name(foreign: str, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ingest([log], out)
    before = (out / RECORD).read_bytes()
    if foreign.endswith("/"):
        (out / foreign).mkdir()
    else:
        (out / foreign).parent.mkdir(exist_ok=True)
        (out / foreign).write_text("precious")
    told = "events/a/" if foreign == "events/a/b.txt" else foreign
    with pytest.raises(UserError, match=f"holds {told}, which cczoo ingest didn't write"):
        ingest([log], out)
    assert (out / foreign).exists()
    assert (out / RECORD).read_bytes() == before


def test_a_forged_record_gives_no_right_to_other_files(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ingest([log], out)
    (out / "thesis.tex").write_text("precious")
    record = json.loads((out / RECORD).read_text())
    record["files"].append("thesis.tex")
    (out / RECORD).write_text(json.dumps(record))
    with pytest.raises(UserError, match=r"holds thesis\.tex, which"):
        ingest([log], out)
    assert (out / "thesis.tex").exists()


def test_directory_of_ingested_directories_is_refused(log: Path, tmp_path: Path) -> None:
    interim = tmp_path / "interim"
    for name in ("mine", "events"):
        ingest([log], interim / name)
    with pytest.raises(UserError, match="holds events/, mine/, which"):
        ingest([log], interim)
    # A record beside them lists neither.
    shutil.copy(interim / "mine" / RECORD, interim / RECORD)
    with pytest.raises(UserError, match=r"holds events/connections\.parquet, events/events/"):
        ingest([log], interim)
    assert len(read_connections(interim / "mine")) == 1
    ingest([log], interim / "mine")


def test_what_comes_while_the_work_goes_on_is_kept(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def build() -> None:
        with building(out, lambda _: (), "a test") as fresh:
            (fresh / "new").write_text("new")
            out.mkdir()
            (out / "late.txt").write_text("precious")

    with pytest.raises(UserError, match=r"holds late\.txt"):
        build()
    assert names(tmp_path) == ["logs", "out"]
    assert names(out) == ["late.txt"]


def test_output_inside_the_input_is_refused(log: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"lies inside .*logs, where the logs are"):
        ingest([log.parent], log.parent / "out")
    assert names(log.parent) == ["a.klog"]


def test_export_refuses_what_its_manifest_does_not_list(tmp_path: Path) -> None:
    from pipelines.cli import main

    out = tmp_path / "bundle"
    command = ["export", "smartsbd-dt", "-t", "python", "--out", str(out)]
    assert main(command) == 0
    assert main(command) == 0
    (out / "thesis.tex").write_text("precious")
    before = names(out)
    assert main(command) == 2
    assert names(out) == before


def test_model_directory_with_something_else_is_not_replaced(tmp_path: Path) -> None:
    from models import store

    model = store.load("smartsbd-dt")
    files = {name: model.read(name) for name in (*model.meta.files, "meta.json")}
    store.replace_directory(tmp_path / "model", files)
    store.replace_directory(tmp_path / "model", files)
    (tmp_path / "model/thesis.tex").write_text("precious")
    with pytest.raises(UserError, match=r"model: holds thesis\.tex, which cczoo didn't write"):
        store.replace_directory(tmp_path / "model", files)
    assert store.load(tmp_path / "model").meta.name == "smartsbd-dt"


def test_a_forged_or_altered_bundle_and_entry_keep_their_files(tmp_path: Path) -> None:
    from export.bundle.manifest import MANIFEST, _sha256, own_files
    from export.document import canonical
    from models import store
    from pipelines.cli import main

    out = tmp_path / "bundle"
    command = ["export", "nuwa-tanh", "-t", "json", "--out", str(out)]
    assert main(command) == 0
    (out / "model.json").write_text("edited by hand")
    assert main(command) == 2
    assert (out / "model.json").read_text() == "edited by hand"
    (out / "thesis.tex").write_text("precious")
    manifest = json.loads((out / MANIFEST).read_bytes())
    manifest["files"]["thesis.tex"] = "0" * 64
    del manifest["manifest_hash"]
    manifest["manifest_hash"] = _sha256(canonical(manifest).encode())
    (out / MANIFEST).write_text(canonical(manifest))
    assert MANIFEST in own_files(out)
    assert not {"thesis.tex", "model.json"} & own_files(out)
    (out / MANIFEST).write_text(json.dumps(manifest | {"name": "forged"}))
    assert own_files(out) == set()

    model = store.load("smartsbd-dt")
    files = {name: model.read(name) for name in (*model.meta.files, "meta.json")}
    entry = tmp_path / "model"
    store.replace_directory(entry, files)
    (entry / "card.md").write_text("edited by hand")
    with pytest.raises(UserError, match=r"holds card\.md, which"):
        store.replace_directory(entry, files)
    meta = json.loads(files["meta.json"]) | {"created_by": "forged"}
    (entry / "meta.json").write_text(json.dumps(meta))
    assert store.own_files(entry) == set()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 kB of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(place)]
    made = os.geteuid() == 0 and subprocess.run(mount, capture_output=True).returncode == 0
    if not made:
        pytest.skip("a small file system can be mounted only as root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def cczoo(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*CCZOO, *map(str, arguments)], capture_output=True, text=True)


def many_events(path: Path) -> None:
    head = KLOG.split(b"\n#columns")[0]
    rows = [f"{i % 977 + 1},{i % 2},{i * 7919 % 5000},{i % 13 - 6},0,0" for i in range(200_000)]
    columns = b"\n#columns dt_us,sf,ack,rtt_us,cwnd,srtt_us\n"
    path.write_bytes(head + columns + "\n".join(rows).encode() + b"\n")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_full_disk_is_one_line_and_nothing_half_written(
    jobs: str, small_disk: Path, tmp_path: Path, log: Path
) -> None:
    for name in "abc":
        many_events(log.with_name(f"{name}.klog"))
    told = cczoo("ingest", log.parent, "--out", small_disk / "out", "--jobs", jobs)
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.count("\n") == 1
    assert f"{small_disk}/out: no space left on device: free some space" in told.stderr
    assert names(small_disk) == []


def test_full_disk_of_features_and_bundles(small_disk: Path, log: Path, tmp_path: Path) -> None:
    ingest([log], tmp_path / "events")
    (small_disk / "filler").write_bytes(b"x" * (252 << 10))
    for command in (
        ("features", "sbd", "--events", tmp_path / "events", "--out", small_disk / "t.parquet"),
        ("export", "smartsbd-plus", "-t", "c", "--out", small_disk / "bundle"),
    ):  # fmt: skip
        told = cczoo(*command)
        assert told.returncode == 2, told.stderr
        assert "no space left on device" in told.stderr
        assert told.stderr.count("\n") == 1
    assert names(small_disk) == ["filler"]


def test_read_only_place_is_refused_before_any_work(
    small_disk: Path, log: Path, tmp_path: Path
) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for command in (
        ("ingest", log, "--out", small_disk / "a/b"),
        ("features", "sbd", "--events", log.parent, "--out", small_disk / "t.parquet"),
        ("export", "smartsbd-dt", "-t", "c", "--out", small_disk / "bundle"),
        ("train", "sbd", "all", "--features", tmp_path / "none.parquet", "--out", small_disk / "r"),
        ("report", "--out", small_disk / "index.html"),
        ("conditions", "--events", log.parent, "--out", small_disk / "c"),
    ):
        told = cczoo(*command)
        assert told.returncode == 2, told.stderr
        assert "is not writable: choose another place to write" in told.stderr
        assert told.stderr.count("\n") == 1


def start(log: Path, out: Path) -> tuple[subprocess.Popen[str], Path]:
    """An ingestion that is at work on a log of many lines, and where it writes."""
    process = subprocess.Popen(
        [*CCZOO, "ingest", str(log.parent), "--out", str(out), "--jobs", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # A shell's background jobs begin deaf to Ctrl-C, and so would all that they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and process.poll() is None:
        # Parts are written by the processes that read: they are at work.
        if parts := list(out.parent.glob(f".{out.name}.*.part/new/events/part-*")):
            return process, parts[0].parents[2]
        time.sleep(0.02)
    pytest.fail(f"the ingestion did not begin: {process.communicate()}")


@pytest.fixture
def long_logs(log: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enough logs for an ingestion of many seconds in two processes."""
    many_events(log)
    for i in range(40):
        os.link(log, log.with_name(f"{i}.klog"))
    return log


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ended_run_leaves_nothing(number: int, long_logs: Path, tmp_path: Path) -> None:
    process, _ = start(long_logs, tmp_path / "out")
    working = children(process.pid)
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == (143 if number == signal.SIGTERM else 1)
    assert names(tmp_path) == ["logs"]
    assert "Traceback" not in said
    assert all(gone(pid) for pid in working)


def gone(pid: int, within_s: float = PATIENCE_S) -> bool:
    until = time.monotonic() + within_s
    while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
        time.sleep(0.05)
    return not Path(f"/proc/{pid}").exists()


def test_killed_run_is_swept_by_the_next_and_a_living_one_is_not(
    long_logs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process, part = start(long_logs, out)
    sweep(out)
    assert part.is_dir(), "a living run's part was swept"
    working = children(process.pid)
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    # Its processes end with it.
    assert all(gone(pid) for pid in working)
    assert part.is_dir()
    small = tmp_path / "small.klog"
    small.write_bytes(KLOG)
    ingest([small], out)
    assert names(tmp_path) == ["logs", "out", "small.klog"]


def test_part_of_a_gone_process_is_swept_though_its_number_lives_again(tmp_path: Path) -> None:
    """The number is this process's own: the lock tells, not the number."""
    left = tmp_path / f".out.{os.getpid()}.abcdefgh.part"
    left.mkdir()
    old_kind = tmp_path / f".out.{os.getpid()}.part"
    old_kind.mkdir()
    other = tmp_path / ".out.2.7.part"
    other.mkdir()
    sweep(tmp_path / "out")
    assert names(tmp_path) == [other.name]


def test_a_folder_to_work_in_goes_with_its_process_or_with_the_next_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    script = (
        "import sys, time; from data.place import scratch\n"
        "with scratch('work') as held: (held / 'a').touch(); print(held, flush=True); "
        "time.sleep(6000)"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    left = Path(process.stdout.readline().strip())
    os.mkfifo(tmp_path / ".cczoo-work.1.abcdefgh.part")
    with scratch("work") as held:
        assert held.parent == tmp_path
        assert left.is_dir(), "a living process's folder was swept"
        (held / "shut").mkdir(0)
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    assert names(tmp_path) == [left.name]
    with scratch("another"):
        assert left.is_dir()
    with scratch("work"):
        assert not left.is_dir()
    assert names(tmp_path) == []


def test_part_of_a_file_goes_with_its_process_too(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    script = (
        "import sys, time; from pathlib import Path; from data.place import part_of\n"
        "with part_of(Path(sys.argv[1])) as part: part.write_text('half'); print(flush=True); "
        "time.sleep(6000)"
    )
    process = subprocess.Popen([sys.executable, "-c", script, path], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    with part_of(path) as part:
        part.write_text("whole")
        assert len(names(tmp_path)) == 2, "a living process's part was swept"
    assert path.read_text() == "whole"
    process.kill()
    process.wait()
    with part_of(path) as part:
        part.write_text("again")
    assert names(tmp_path) == ["table.parquet"]


def test_all_formats_are_ingested_into_one_directory_again_and_again(tmp_path: Path) -> None:
    samples = [next(GOLDEN.glob(f"{name}.*")) for name in FORMATS]
    for _ in range(2):
        assert ingest(samples, tmp_path / "out")["sources"] == len(samples)
