import numpy as np
import pytest

from data.lab import scenario, topology, validate
from data.lab.compact import Events


def _stats(drawn, **at):
    """Emulator statistics in which every data packet waits and dies where `at` says."""
    paths = list(topology.paths(drawn))
    stages = {name: {"busy_s": 0.0, "paths": {}} for name in drawn.stages}
    for path, (stage, queue_s, drops) in at.items():
        index = str(paths.index(path))
        for name in drawn.paths[path]:
            here = name == stage
            stages[name]["paths"][index] = {
                "packets": 1000,
                "queue_delay_s": queue_s if here else 0.1,
                "drops": drops if here else 0,
            }
        stages[stage]["busy_s"] = 18.0
    return {"duration_s": 30.0, "stages": stages}


def _reasons(drawn, stats, active_s=20.0):
    return validate.bottleneck(drawn, topology.paths(drawn), stats, active_s)


def test_shared_bottleneck_is_seen_where_both_paths_queue():
    drawn = scenario.load("smartsbd-sb")
    stats = _stats(drawn, wifi=("server", 20.0, 5), lte=("server", 20.0, 3))
    reasons, account = _reasons(drawn, stats)
    assert reasons == []
    assert account["wifi"]["queue_ms"] == 20.0
    assert account["wifi"]["busy"] == 0.9


def test_queues_and_drops_elsewhere_speak_against_the_label():
    drawn = scenario.load("smartsbd-sb")
    stats = _stats(drawn, wifi=("server", 20.0, 5), lte=("lte", 20.0, 3))
    reasons, _ = _reasons(drawn, stats)
    assert set(reasons) == {"queue-elsewhere:lte", "drops-elsewhere:lte", "not-queued:lte"}


def test_a_link_that_stands_idle_is_no_bottleneck():
    drawn = scenario.load("smartsbd-nsb")
    stats = _stats(drawn, wifi=("wifi", 20.0, 5), lte=("lte", 20.0, 3))
    stats["stages"]["lte"]["busy_s"] = 11.0
    assert _reasons(drawn, stats)[0] == ["idle:lte"]


def test_host_reasons_have_the_documented_limits():
    assert validate.host_reasons(0.05, 1000.0, 0) == []
    assert validate.host_reasons(0.051, 1000.1, 1) == ["steal", "lateness", "lost-events"]


def _events(times_us, kinds, subflows, rtts_us=None, news=None):
    n = len(times_us)
    zero = np.zeros(n, np.int64)
    rtt = zero if rtts_us is None else np.array(rtts_us)
    new = zero if news is None else np.array(news)
    times, kind, flow = np.array(times_us), np.array(kinds), np.array(subflows)
    return Events(0, times, kind, flow, zero, rtt, zero, zero, zero, new)


def test_windows_begin_when_both_subflows_were_congested():
    # Minimum RTTs 10 and 20 ms: windows of 1 s from 2 s on, 10 s in all.
    events = _events(
        [0, 1, 1_000_000, 2_000_000, 10_500_000],
        [0, 0, 1, 1, 0],
        [1, 2, 1, 2, 1],
        [10_000, 20_000, 0, 0, 15_000],
        [0, 0, 4, 3, 0],
    )
    count, account = validate.windows(events)
    assert count == 8
    assert account["2"]["congested_at_s"] == 2.0
    assert account["1"]["min_rtt_ms"] == 10.0


def test_no_window_without_congestion_on_both():
    events = _events([0, 1, 9_000_000], [0, 0, 1], [1, 2, 1], [9, 9, 0], [0, 0, 3])
    assert validate.windows(events)[0] == 0


def _record(name, label, wifi, lte, **more):
    return {
        "id": name, "dataset": "d", "group": label, "label": label, "alpha_check": True,
        "throughput_mbps": {"wifi": wifi, "lte": lte},
        "bottleneck": {"wifi": {"busy": 0.9}, "lte": {"busy": 0.9}}, **more,
    }  # fmt: skip


def test_alpha_looks_at_the_connection_in_sb_and_at_each_subflow_in_nsb():
    records = [_record("a", "SB", 6, 2), _record("b", "SB", 3, 4), _record("c", "SB", 3, 3)]
    assert validate.alpha_failures(records) == {"c"}
    records = [_record("a", "NSB", 6, 1), _record("b", "NSB", 6, 0.7), _record("c", "NSB", 4, 1)]
    assert validate.alpha_failures(records, own=True) == {"b", "c"}
    assert validate.alpha_failures(records) == set()
    idle = {"bottleneck": {"wifi": {"busy": 0.9}, "lte": {"busy": 0.7}}}
    assert validate.alpha_failures([*records, _record("d", "NSB", 6, 1, **idle)]) == {"d"}


def test_alpha_leaves_out_groups_that_do_not_ask_for_it():
    records = [_record("a", "SB", 6, 2), _record("b", "SB", 1, 1, alpha_check=False)]
    assert validate.alpha_failures(records) == set()


@pytest.mark.parametrize("reason", ["steal", "lateness", "failed"])
def test_host_reasons_lead_to_another_try(reason):
    assert reason in validate.HOST_REASONS
