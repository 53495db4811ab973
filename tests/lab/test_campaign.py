import csv
import json
import time

import pytest
import yaml

from data.errors import UserError
from data.lab import plan, runs, schedule
from data.lab.record import RunResult

CAMPAIGN = {
    "campaign": "c",
    "groups": [
        {"name": "a", "scenario": "smartsbd-sb", "repeats": 3, "set": {"dataset": "d"}},
        {"name": "b", "scenario": "smartsbd-nsb", "repeats": 2, "set": {"dataset": "d"}},
    ],
}


class FakeLab:
    """Stands in for `run`: writes a file and answers with the reasons planned for an id."""

    def __init__(self, reasons=None):
        self.reasons = {name: list(tries) for name, tries in (reasons or {}).items()}
        self.calls = []

    def __call__(self, drawn, out_dir, slot, seed, name, probe):
        self.calls.append((name, slot, seed))
        time.sleep(0.005)
        reasons = self.reasons.get(name, []).pop(0) if self.reasons.get(name) else []
        record = {
            "id": name, "label": drawn.label, "dataset": drawn.dataset, "cc": drawn.cc,
            "valid": not reasons, "reasons": reasons, "bytes": 10, "seed": seed,
            "throughput_mbps": {"wifi": 1.0, "lte": 1.0},
            "bottleneck": {"wifi": {"busy": 1.0}, "lte": {"busy": 1.0}},
        }  # fmt: skip
        if "failed" in reasons:
            return RunResult(None, False, tuple(reasons), record | {"error": "no route"})
        out_dir.mkdir(parents=True, exist_ok=True)
        path = out_dir / f"{name}.klog.zst"
        path.write_bytes(b"x" * 10)
        return RunResult(path, not reasons, tuple(reasons), record)


@pytest.fixture
def collect(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "STAGGER_S", 0.01)
    monkeypatch.setattr(schedule.probes, "choose", lambda probe: probe or "bpf")

    def go(lab, values=CAMPAIGN, **options):
        path = tmp_path / "c.yaml"
        path.write_text(yaml.safe_dump(values))
        monkeypatch.setattr(schedule, "run", lab)
        return schedule.collect(plan.load(path), tmp_path / "out", 2, **options)

    go.out = tmp_path / "out"
    return go


def _sources(out):
    with (out / "labels.csv").open() as file:
        return {row["source"]: row for row in csv.DictReader(file)}


def test_a_campaign_is_collected_labelled_and_then_done(collect):
    lab = FakeLab()
    result = collect(lab)
    assert result["valid"] == result["target"] == 5
    rows = _sources(collect.out)
    assert set(rows) == {f"d/{n}.klog.zst" for n in ("a-0000", "a-0001", "a-0002", "b-0000",
                                                     "b-0001")}  # fmt: skip
    assert rows["d/b-0001.klog.zst"]["label"] == "NSB"
    assert all((collect.out / source).exists() for source in rows)
    again = FakeLab()
    assert collect(again)["runs"] == 0
    assert again.calls == []


def test_a_collection_cut_short_is_balanced_and_resumes(collect):
    first = FakeLab()
    assert collect(first, limit=2)["runs"] == 2
    assert {name[0] for name, _, _ in first.calls} == {"a", "b"}
    second = FakeLab()
    assert collect(second)["valid"] == 5
    done = [name for name, _, _ in first.calls + second.calls]
    assert len(done) == len(set(done)) == 5


def test_no_run_is_begun_that_would_end_after_the_time_budget(collect):
    lab = FakeLab()
    assert collect(lab, time_budget_s=5.0)["runs"] == 0
    assert lab.calls == []
    assert collect(lab, limit=1, time_budget_s=3600.0)["runs"] == 1
    assert [name for name, _, _ in lab.calls] == ["a-0000"]


def test_a_host_fault_repeats_the_same_draw_and_a_wrong_bottleneck_another(collect):
    lab = FakeLab({"a-0000": [["lateness"]], "b-0000": [["idle:wifi"]]})
    result = collect(lab)
    seeds = [seed for name, _, seed in lab.calls if name == "a-0000"]
    assert len(seeds) == 2
    assert seeds[0] == seeds[1]
    assert [name for name, _, _ in lab.calls].count("b-0000") == 1
    assert "d/b-0000.klog.zst" not in _sources(collect.out)
    assert "d/b-0002.klog.zst" in _sources(collect.out)
    assert not (collect.out / "d/b-0000.klog.zst").exists()
    assert result["reasons"] == {"lateness": 1, "idle": 1}
    assert result["valid"] == 5


def test_a_log_lost_from_disk_is_collected_again(collect):
    collect(FakeLab())
    (collect.out / "d/a-0001.klog.zst").unlink()
    lab = FakeLab()
    collect(lab)
    assert [name for name, _, _ in lab.calls] == ["a-0001"]


def test_an_unfinished_line_of_a_killed_run_is_ignored(collect):
    collect(FakeLab(), limit=3)
    with (collect.out / "campaign.jsonl").open("a") as log:
        log.write('{"id": "a-00')
    assert collect(FakeLab())["valid"] == 5
    for line in (collect.out / "campaign.jsonl").read_text().splitlines():
        json.loads(line)


def test_a_group_that_never_becomes_valid_ends(collect):
    lab = FakeLab({f"b-{i:04d}": [["no-window"]] for i in range(50)})
    result = collect(lab)
    assert result["groups"]["b"]["valid"] == 0
    assert result["groups"]["a"]["valid"] == 3
    assert len(lab.calls) < 20


def test_failing_runs_end_the_collection_with_the_reason(collect):
    lab = FakeLab({f"{g}-{i:04d}": [["failed"]] * 9 for g in "ab" for i in range(20)})
    with pytest.raises(UserError, match=r"no route.*doctor"):
        collect(lab)


def test_of_logs_that_are_not_kept_the_records_stay(collect):
    values = json.loads(json.dumps(CAMPAIGN))
    values["groups"][0]["logs"] = 1
    result = collect(FakeLab(), values)
    assert result["valid"] == 5
    kept = sorted(path.name.split(".")[0] for path in collect.out.glob("d/*"))
    assert kept == ["a-0000", "b-0000", "b-0001"]
    with (collect.out / "labels.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 3
    again = FakeLab()
    assert collect(again, values)["valid"] == 5
    assert again.calls == []


def test_an_override_of_what_is_not_there_is_refused(collect):
    values = json.loads(json.dumps(CAMPAIGN))
    values["groups"][0]["set"] = {"stages.wify.delay_ms": 3}
    with pytest.raises(UserError, match="no 'wify'"):
        collect(FakeLab(), values)


def test_two_collections_do_not_share_a_folder(collect):
    import fcntl

    collect.out.mkdir()
    with (collect.out / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="another collection"):
            collect(FakeLab())


def test_the_lock_of_a_folder_is_one_file_for_good(collect):
    # Taken away after its release, it may be what another collection holds by then.
    collect(FakeLab())
    before = (collect.out / ".lock").stat().st_ino
    collect(FakeLab())
    assert (collect.out / ".lock").stat().st_ino == before
