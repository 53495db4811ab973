"""What the league draws, what could be had of it, and how it ranks."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.netsim import traces
from data.netsim.scenario import Scenario
from pipelines.league import draw, standings
from pipelines.league.capacity import most_mbps
from pipelines.league.cut import LENGTH_NS, cut
from pipelines.league.families import FAMILIES, in_words
from pipelines.league.metrics import METRICS

PAYLOAD = 1448 / 1500


@pytest.mark.parametrize("name", FAMILIES)
def test_scenarios_are_within_what_their_family_states(name: str) -> None:
    """Contract of a family: a flow called tested, FIFO queues alone, rates and delays in range."""
    family, most = FAMILIES[name], 0.0
    for one in draw.scenarios([name], each=40):
        tested = [flow for flow in one.spec.flows if flow.cc is None]
        assert [flow.name for flow in tested] == ["tested"]
        low, high = family.ranges.get("paths", (1, 1))
        assert low <= len(tested[0].paths) <= high
        assert {flow.cc for flow in one.spec.flows} <= {None, "cubic"}
        for link in one.spec.links.values():
            assert link.queue == "droptail"
            assert not link.ecn
        rtts = [
            sum(_delay(one.spec, link) for link in path.forward + path.back)
            for path in tested[0].paths
        ]
        low, high = family.ranges["rtt_ms"]
        assert all(0.999 * low <= rtt <= 1.001 * high for rtt in rtts)
        most = most_mbps(one.spec, one.seed)
        least = family.ranges["rate_mbps"][0] * family.ranges.get("level", (1, 1))[0]
        assert 0.9 * PAYLOAD * least <= most <= 3 * family.ranges["rate_mbps"][1]
    assert in_words(family)


def _delay(spec: Scenario, name: str) -> float:
    link = spec.links[name]
    return min(d for _, d in link.delay_steps) if link.delay_steps else link.delay_ms


def test_a_list_is_that_of_its_seed_whatever_else_is_drawn() -> None:
    few = draw.scenarios(["lossy", "mptcp-shared"], each=2)
    more = draw.scenarios([*FAMILIES], each=3)
    assert [one for one in more if one.family in ("lossy", "mptcp-shared") and one.seed < 2] == few
    assert draw.digest(few) == draw.digest(draw.scenarios(["lossy", "mptcp-shared"], each=2))
    assert draw.digest(few) != draw.digest(draw.scenarios(["lossy", "mptcp-shared"], 1, 2))
    assert len({one.name for one in more}) == len(more)


def _on(link: dict[str, Any], **more: Any) -> Scenario:
    links = {"a": link, "b": {"delay_ms": 5}}
    flows = [{"name": "f", "paths": [{"forward": ["a", "b"], "back": ["b"]}]}]
    return Scenario.parse({"duration_s": 10, "links": links, "flows": flows, **more}, "test")


def test_what_a_link_carries_is_taken_over_the_measured_time(tmp_path: Path) -> None:
    assert most_mbps(_on({"rate_mbps": 12}), 0) == pytest.approx(12 * PAYLOAD)
    steps = {"steps": [[0, 12], [3, 4]], "period_s": 4}
    # 9 and 3 s of 10 at 12: two periods and two seconds.
    assert most_mbps(_on(steps), 0) == pytest.approx((8 * 12 + 2 * 4) / 10 * PAYLOAD)
    assert most_mbps(_on(steps, warmup_s=3), 0) == pytest.approx((5 * 12 + 2 * 4) / 7 * PAYLOAD)
    held = {"steps": [[0, 12], [3, 4]]}
    assert most_mbps(_on(held), 0) == pytest.approx((3 * 12 + 7 * 4) / 10 * PAYLOAD)
    path = tmp_path / "each.ms"
    path.write_text("\n".join(map(str, range(1, 5))), encoding="utf-8")
    assert most_mbps(_on({"trace": str(path)}), 0) == pytest.approx(12 * PAYLOAD, rel=1e-3)


def test_a_shared_bottleneck_counts_once() -> None:
    for one in draw.scenarios(["mptcp-shared", "mptcp-friendly"], each=3):
        rate = one.spec.links["bottleneck"].rate_mbps
        assert rate is not None
        assert most_mbps(one.spec, 0) == pytest.approx(rate * PAYLOAD)
    (apart,) = draw.scenarios(["mptcp-separate"], each=1)
    assert len(apart.spec.flows[0].paths) > 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", ["opportunities", "steps", "long outage"])
def test_a_part_of_a_trace_is_that_part(form: str, seed: int, tmp_path: Path) -> None:
    path, part = tmp_path / "whole", tmp_path / "part"
    if form == "steps":
        text = "\n".join(f"{0.5 * i} {(i * 7) % 11}" for i in range(400))
    else:
        gap = 150_000 if form == "long outage" else 0
        text = "\n".join(str(ms + gap * (ms > 900)) for ms in range(0, 90_000, 20))
    path.write_text(text, encoding="utf-8")
    whole = traces.read(path)
    lines, mean = cut(whole, np.random.default_rng(seed))
    part.write_text("\n".join(lines), encoding="utf-8")
    kind, times, rates, period = traces.read(part)
    assert kind == whole[0]
    assert LENGTH_NS <= period <= LENGTH_NS + 1e9
    played = Scenario.parse(
        {"duration_s": 30, "links": {"a": {"trace": str(part)}},
         "flows": [{"name": "f", "paths": [{"forward": ["a"], "back": ["a"]}]}]}, "test",
    )  # fmt: skip
    assert most_mbps(played, 0) == pytest.approx(mean * PAYLOAD, rel=1e-3, abs=1e-3)
    assert mean > 0
    if form == "steps":
        assert set(np.round(rates / 1e6)) <= set(range(11))
    else:
        assert (np.diff(times)[:-1] % 20e6 == 0).all()


def test_a_short_trace_is_taken_whole(tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_text("0 8\n1 2\n3 4\n", encoding="utf-8")
    lines, mean = cut(traces.read(path), np.random.default_rng(0))
    assert lines == ["0 8", "1 2", "3 4"]
    assert mean == pytest.approx((8 + 2 * 2 + 2 * 4) / 5)


def _rows(table: dict[str, list[float]]) -> dict[tuple[str, str], dict[str, float | None]]:
    return {
        (f"s{i}", cc): dict.fromkeys(METRICS) | {"power": value, "goodput": value}
        for cc, values in table.items()
        for i, value in enumerate(values)
    }


def test_rankings_have_win_rates_and_worst_cases() -> None:
    found = standings.rankings(
        {"mine": ["s0", "s1", "s2", "s3"]},
        _rows({"a": [0.1, 0.2, 0.3, 0.4], "b": [0.4, 0.5, 0.6, 0.1], "c": [0.1, 0.1, 0.7, 0.1]}),
    )
    assert list(found) == ["mine"], "no standing without its families"
    first, second, third = found["mine"]
    assert [first.cc, second.cc, third.cc] == ["b", "a", "c"]
    assert first.power.value == pytest.approx(0.45)
    assert (first.worst, first.worst_in) == (0.1, "s3")
    wins = [place.wins.value for place in found["mine"] if place.wins is not None]
    assert wins == pytest.approx([(3 + 2.5) / 8, (1 + 2.5) / 8, (1.5 + 1.5) / 8])
    assert [place.behind.value for place in (first, second, third)] == [0.5, 0.75, 0.625]
    assert first.metrics["goodput"].value == first.power.value
    assert "jain" not in first.metrics


def test_intervals_hold_pairs_of_a_scenario_together() -> None:
    """Scenarios differ far more than the two players, who are compared within each."""
    levels = list(itertools.chain(*([0.1 * k, 0.1 * k + 0.05] for k in range(1, 9))))
    found = standings.rankings(
        {"mine": [f"s{i}" for i in range(16)]},
        _rows({"a": levels, "b": [level - 0.01 for level in levels]}),
    )["mine"]
    assert [place.cc for place in found] == ["a", "b"]
    low, high = found[0].power.low, found[1].power.high
    assert low is not None
    assert high is not None
    assert low < high, "powers themselves overlap"
    assert found[1].behind == (1, 1, 1)


def test_a_player_that_missed_a_scenario_is_in_no_ranking() -> None:
    table = _rows({"a": [0.1, 0.2], "b": [0.3, 0.4]})
    del table["s1", "b"]
    played = {"mine": ["s0", "s1"]}
    (only,) = standings.rankings(played, table)["mine"]
    assert only.cc == "a"
    (line,) = standings.unranked(played, table)
    assert line == "b: fits 1 of 2 scenarios of mine: no place there"
