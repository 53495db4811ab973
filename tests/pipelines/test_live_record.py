"""What is kept of live runs, and what is made of it."""

import argparse
import contextlib
import json
from types import SimpleNamespace

import pytest

from data.errors import UserError
from data.lab import plan, topology
from data.lab import runs as lab_runs
from pipelines.live import command, figures, record, runs, summary


def arguments(**change):
    values = {
        "scenario": "live-nsb,live-sb",
        "cc": "smartsbd,lia,reno",
        "sites": None,
        "repeats": None,
        "duration": None,
    }
    return argparse.Namespace(**values | change)


def drawn(scenario, site="shanghai", seed=5):
    campaign = plan.load(scenario)
    return next(s for s in plan.sources(campaign) if s.name == site).draw(seed)


def task(scenario="live-shift", cc="smartsbd", repeat=0):
    return record.Task(scenario, "shanghai", cc, repeat, 40 + repeat, drawn(scenario))


def lab_record(seconds, mbps, rival=None, **change):
    background = [[0] * seconds, [0] * seconds]
    if rival is not None:
        background.append([int(rival * 1e6 / 8)] * seconds)
    return {
        "reasons": [],
        "seed": 40,
        "load": 1.0,
        "steal": 0.0,
        "lateness_us": {"p99": 20.0},
        "emulator_t0_s": 99.0,
        "traffic": {
            "begun_s": 100.0,
            "per_second": {"mptcp": [int(x * 1e6 / 8) for x in mbps], "background": background},
        },
        **change,
    }


def verdict_line(at_s, label, kernel=None, **change):
    return {
        "decided_ns": int((100 + at_s) * 1e9),
        "class": label,
        "kernel_class": label if kernel is None else kernel,
        "kernel_ns": int((100 + at_s) * 1e9) + 250_000,
        "features": [1, 2],
        "features_ns": 40_000,
        "classify_ns": 30,
        **change,
    }


def agent_log(folder, lines):
    path = folder / "verdicts.jsonl"
    end = {"end": True, "events": 1000, "late": 0, "lost": 0, "cpu_s": 0.01, "wall_s": 10.0,
           "state_bytes": 9}  # fmt: skip
    path.write_text("\n".join(json.dumps(line) for line in [*lines, end]) + "\n")
    return path


def test_all_controls_of_a_repeat_share_its_conditions():
    found = command.tasks(arguments())
    assert len(found) == 2 * 3 * 3 * 5
    for one in found:
        same = [t for t in found if t.key[:2] == one.key[:2] and t.repeat == one.repeat]
        assert {t.cc for t in same} == {"smartsbd", "lia", "reno"}
        assert len({t.seed for t in same}) == 1
        assert all(t.drawn == one.drawn for t in same)
    assert len({t.seed for t in found}) == 2 * 3 * 5
    assert min(t.drawn.duration_s for t in found) >= 40


def test_duration_is_not_that_of_a_moving_bottleneck():
    found = command.tasks(arguments(scenario="live-nsb,live-shift", duration=45, repeats=1))
    lengths = {t.scenario: t.drawn.duration_s for t in found}
    assert lengths == {"live-nsb": 45, "live-shift": 180}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scenario": "live-ns"}, "did you mean 'live-nsb'"),
        ({"cc": "lia,renno"}, "did you mean 'reno'"),
        ({"sites": "guangzhuo"}, "did you mean 'guangzhou'"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(change, message):
    with pytest.raises(UserError, match=message):
        command.tasks(arguments(**change))


def test_rival_meets_the_connection_at_the_server_alone(tmp_path):
    scenario = drawn("live-sb", "guangzhou")
    config = topology.emulator_config(scenario, topology.Lab(3), tmp_path, 3)
    lines = [line for line in config.splitlines() if line.startswith("path ")]
    rival = next(line for line in lines if topology.RIVAL in line and "wifi bg" in line)
    assert rival.endswith("stages=rival,server")
    assert sum("server" in line for line in lines) == 3
    # No packet of the rival's matches an earlier path, none of the others' matches its own.
    back = next(line for line in lines if f"src={topology.RIVAL}" in line)
    assert "dst=10.0.1.2" in back
    assert all("src=10.0.8.2" in x for x in lines if x.startswith("path bg") and x != back)


def test_schedule_moves_the_bottleneck_and_ends_after_the_run(tmp_path):
    scenario = drawn("live-shift")
    topology.emulator_config(scenario, topology.Lab(3), tmp_path, 3)
    rows = [line.split() for line in (tmp_path / "server.steps").read_text().splitlines()]
    times = [float(time_s) for time_s, _ in rows]
    assert times[:3] == [0, 60, 120]
    assert times[3] > 2 * scenario.duration_s
    assert rows[3][1] == rows[2][1]


def test_phases_are_labelled_by_rates_on_the_connections_clock():
    found = record.phases(drawn("live-shift"), 1.5)
    assert [p["label"] for p in found] == ["SB", "NSB", "SB"]
    assert [p["from_s"] for p in found] == [0, 58.5, 118.5]
    assert found[-1]["to_s"] == 180
    (only,) = record.phases(drawn("live-nsb"), 1.5)
    assert only == {"from_s": 0.0, "to_s": 60, "label": "NSB"}


def test_verdicts_across_a_shift_are_not_judged_and_delays_count_from_it(tmp_path):
    lines = [
        verdict_line(20, 1),
        verdict_line(50, 0),  # wrong
        verdict_line(60, 1),  # its window began before the shift at 59 s
        verdict_line(70, 0),
        verdict_line(110, 0),
        verdict_line(150, 0),  # wrong
    ]
    mbps = [4.0] * 180
    kept = record.record(task(), lab_record(180, mbps, 8.0), agent_log(tmp_path, lines), "m")
    assert kept["valid"]
    assert [right for _, right in summary.judged(kept)] == [True, False, True, True, False]
    assert [found["delay_s"] for found in summary.shift_delays_s(kept)] == [11.0, None]
    # The wrong verdict at 50 s is what the shift will have: no delay can be told.
    assert [found["already"] for found in summary.shift_delays_s(kept)] == [True, False]
    lines[1] = verdict_line(50, 1)
    good = record.record(task(), lab_record(180, mbps, 8.0), agent_log(tmp_path, lines), "m")
    assert [found["already"] for found in summary.shift_delays_s(good)] == [False, False]
    verdicts = summary.summarise([kept, good])["scenarios"]["live-shift"]["shanghai"]
    shift = verdicts["controls"]["smartsbd"]["verdicts"]["shift 1"]
    assert (shift["already"], shift["delay_s"]["n"]) == (1, 1)
    assert kept["verdicts"][0]["answered_after_us"] == pytest.approx(250)


def test_windows_of_which_a_model_does_not_know_are_told(tmp_path):
    """What held before holds on, and counts as right or wrong; the summary says how often."""
    lines = [verdict_line(10, 1), verdict_line(20, 1, verdict=-1), verdict_line(30, 1, verdict=1)]
    log = agent_log(tmp_path, lines)
    kept = record.record(task("live-sb"), lab_record(60, [4.0] * 60, 8.0), log, "m")
    assert [one["known"] for one in kept["verdicts"]] == [True, False, True]
    site = summary.summarise([kept])["scenarios"]["live-sb"]["shanghai"]
    found = site["controls"]["smartsbd"]["verdicts"]
    assert (found["right"], found["judged"], found["not_known"]) == (3, 3, 1)


def test_host_spoils_a_run_and_the_emulators_doubts_do_not():
    reasons = ["lateness", "idle:lte"]
    late = record.record(task("live-nsb"), lab_record(60, [1] * 60, reasons=reasons), None, "m")
    assert not late["valid"]
    assert late["reasons"] == ["lateness"]
    doubted = lab_record(60, [1] * 60, reasons=["idle:lte"])
    kept = record.record(task("live-nsb"), doubted, None, "m")
    assert kept["valid"]
    assert kept["doubts"] == ["idle:lte"]
    failed = record.record(task(), {"reasons": ["failed"], "error": "x"}, None, "m")
    assert not failed["valid"]


def runs_of(scenario, folder, rates):
    made = []
    for cc, (mbps, rival) in rates.items():
        for repeat in range(3):
            of = lab_record(60, [mbps + repeat] * 60, rival, seed=40 + repeat)
            log = None
            if cc == "smartsbd":
                kernel = 0 if repeat == 2 else None
                lines = [verdict_line(10, 1), verdict_line(20, 1, kernel)]
                log = agent_log(folder, lines)
            made.append(record.record(task(scenario, cc, repeat), of, log, "m"))
    return made


def test_summary_pairs_seeds_and_counts_what_the_kernel_answered_otherwise(tmp_path):
    rates = {"smartsbd": (8.0, 8.0), "lia": (4.0, 8.0)}
    runs = runs_of("live-sb", tmp_path, rates)
    bpf = {"cczoo_sbd": {"cong_avoid": {"runs": 10, "ns": 5000}, "init": {"runs": 1, "ns": 500}}}
    session = {"kind": "session", "model": "m", "runs": 6, "bpf": bpf}
    found = summary.summarise([*runs, session, session])
    site = found["scenarios"]["live-sb"]["shanghai"]
    control = site["controls"]["smartsbd"]
    assert control["mptcp_mbps"]["mean"] == pytest.approx(9.0)
    # Student's t for 3 values of standard deviation 1.
    assert control["mptcp_mbps"]["high"] == pytest.approx(9 + 4.3027 / 3**0.5, abs=1e-3)
    assert control["mptcp_share"]["mean"] == pytest.approx(
        (8 / 16 + 9 / 17 + 10 / 18) / 3, abs=1e-4
    )
    ratio = site["relative_to_smartsbd"]["lia"]["mean"]
    assert ratio == pytest.approx((4 / 8 + 5 / 9 + 6 / 10) / 3, abs=1e-4)
    assert control["verdicts"]["right"] == control["verdicts"]["judged"] == 6
    assert found["verdicts"]["verdicts"] == 6
    assert found["verdicts"]["mismatches"] == 1
    assert found["cost"]["bpf"]["cczoo_sbd"]["ns_per_cong_avoid"] == 500
    assert found["cost"]["bpf"]["cczoo_sbd"]["ns_per_ack"] == 550


def test_figures_are_the_same_each_time(tmp_path):
    runs = runs_of("live-sb", tmp_path, {"smartsbd": (8.0, 8.0), "reno": (9.0, 6.0)})
    runs += runs_of("live-nsb", tmp_path, {"smartsbd": (8.0, None), "lia": (5.0, None)})
    assert figures.write(runs, tmp_path) == ["fig8.svg", "fig9.svg"]
    first = (tmp_path / "fig9.svg").read_bytes()
    figures.write(runs, tmp_path)
    assert (tmp_path / "fig9.svg").read_bytes() == first
    assert b"MP Reno" in first


def test_unfinished_line_of_a_killed_run_is_cut(tmp_path):
    log = tmp_path / "live.jsonl"
    kept = {"kind": "run", "scenario": "s", "site": "x", "cc": "lia", "repeat": 1, "valid": True,
            "model": "m"}  # fmt: skip
    log.write_text(json.dumps(kept) + "\n" + '{"kind": "ru')
    assert command.done(lab_runs.resume(log), "m") == {("s", "x", "lia", 1)}
    assert command.done(lab_runs.resume(log), "other") == set()
    assert log.read_text() == json.dumps(kept) + "\n"


def test_run_that_the_host_spoilt_is_next_again_and_at_most_four_times(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(lab_runs, "STAGGER_S", 0.01)
    monkeypatch.setattr(runs.coupled, "ensure", lambda target: None)
    monkeypatch.setattr(runs.live_kernel, "operations", lambda name: [])
    monkeypatch.setattr(runs.live_kernel, "counts", lambda programs: {})
    monkeypatch.setattr(runs.live_kernel, "since", lambda before, after: {})
    monkeypatch.setattr(runs.live_kernel, "statistics", contextlib.nullcontext)
    monkeypatch.setattr(runs.os, "setpriority", lambda *change: None)
    monkeypatch.setattr(runs, "made_for", lambda bundle: (None, None))
    spoilt = {0: 1, 1: 9, 2: 0}

    def run_lab(drawn, logs, slot, seed, name, probe, live):
        repeat = int(name[-1])
        spoilt[repeat] -= 1
        reasons = ["steal"] if spoilt[repeat] >= 0 else []
        return SimpleNamespace(record={"reasons": reasons, "slot": slot, "error": "none"})

    monkeypatch.setattr(runs, "run_lab", run_lab)
    bundle = SimpleNamespace(manifest={"model_hash": "m"}, features=())
    todo = [task(cc="lia", repeat=repeat) for repeat in range(3)]
    controller = SimpleNamespace(programs=[])
    runs.carry_out(todo, range(60, 61), tmp_path, bundle, controller)
    *kept, session = lab_runs.resume(tmp_path / "live.jsonl")
    assert [(r["repeat"], r["attempt"], r["valid"]) for r in kept] == [
        (0, 0, False), (0, 1, True), (1, 0, False), (1, 1, False), (1, 2, False), (1, 3, False),
        (2, 0, True),
    ]  # fmt: skip
    assert {r["slot"] for r in kept} == {60}
    assert (session["kind"], session["runs"], session["model"]) == ("session", 3, "m")
    assert capsys.readouterr().err.splitlines()[:2] == [
        "live-shift-shanghai-lia-0: invalid (steal)",
        "live-shift-shanghai-lia-0: valid",
    ]
