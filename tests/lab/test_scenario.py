import pytest
import yaml

from data.errors import UserError
from data.lab import plan, rates, sampler, scenario, topology


def _values(**change):
    values = scenario.read_yaml("smartsbd-sb")
    values.update(change)
    return values


def _load(tmp_path, values):
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump(values))
    return scenario.load(path)


def test_unknown_key_names_the_nearest(tmp_path):
    values = _values()
    values["stages"]["wifi"]["delay_mss"] = values["stages"]["wifi"].pop("delay_ms")
    with pytest.raises(UserError, match=r"x\.yaml: stages\.wifi: .*delay_mss.*mean delay_ms"):
        _load(tmp_path, values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "NSB"}, "NSB two"),
        ({"cc": "vegas"}, "cc"),
        ({"bottleneck": {"wifi": "serve", "lte": "server"}}, "not on that path"),
        ({"dataset": "../x"}, "letters"),
        ({"paths": {"wifi": ["wify"]}}, "did you mean 'wifi'"),
    ],
)
def test_wrong_values_are_refused(tmp_path, change, message):
    with pytest.raises(UserError, match=message):
        _load(tmp_path, _values(**change))


def test_campaign_and_scenario_are_told_apart():
    with pytest.raises(UserError, match="lab collect"):
        scenario.load("smartsbd-paper")
    with pytest.raises(UserError, match="lab run"):
        plan.load("smartsbd-sb")
    with pytest.raises(UserError, match="did you mean 'smartsbd-paper'"):
        plan.load("smartsbd-papr")


def test_queue_in_bdp_is_rate_times_rtt():
    stage = scenario.Stage(rate_mbps=8, queue_bdp=1.5, queue_rtt_ms=60)
    assert stage.limit_bytes == 8e6 / 8 * 0.06 * 1.5


def test_varied_is_seeded_and_within_its_spread():
    base = scenario.load("smartsbd-sb")
    draws = [base.varied(seed) for seed in range(50)]
    assert base.varied(7) == draws[7]
    assert draws[0] != draws[1]
    for draw in draws:
        assert 1 / 1.1 <= draw.base_rtt_ms("lte") / base.base_rtt_ms("lte") <= 1.1
        assert draw.stages["server"].rate_mbps == 8


@pytest.mark.parametrize("name", ["smartsbd-paper", "smartsbd-table6", "smartsbd-random"])
def test_shipped_campaigns_draw_valid_scenarios(name, tmp_path):
    campaign = plan.load(name)
    for source in plan.sources(campaign):
        drawn = source.draw(plan.seed_of(campaign, source.name, 3))
        config = topology.emulator_config(drawn, topology.Lab(5), tmp_path, 3)
        stages = {line.split()[1] for line in config.splitlines() if line.startswith("stage ")}
        for line in config.splitlines():
            if line.startswith("path "):
                assert set(line.split("stages=")[1].split(",")) <= stages


def test_shipped_campaigns_are_as_large_as_the_datasets():
    targets = {
        name: sum(s.target for s in plan.sources(plan.load(name)))
        for name in ("smartsbd-paper", "smartsbd-table6", "smartsbd-random")
    }
    assert targets["smartsbd-paper"] == 4 * (150 + 150)
    assert targets["smartsbd-table6"] == 10 * 20
    assert targets["smartsbd-random"] >= 500


@pytest.mark.parametrize("label", ["SB", "NSB"])
def test_random_draws_keep_their_ranges(label):
    campaign = plan.load("smartsbd-random")
    for name, family in campaign.random.families.items():
        draw = sampler.Draw("d", name, family, label)
        assert draw(11) == draw(11)
        for seed in range(30):
            drawn = draw(seed)
            assert drawn.label == label
            low, high = family.rtt_ms
            for path in ("wifi", "lte"):
                assert low - 1e-6 <= drawn.base_rtt_ms(path) <= high + 1e-6
            total = drawn.rate_mbps("wifi")
            if label == "NSB":
                total += drawn.rate_mbps("lte")
            assert total <= family.max_sum_mbps + 1e-6
            assert 20 <= drawn.duration_s <= 35
            assert drawn.duration_s > 50 * max(drawn.base_rtt_ms(p) for p in ("wifi", "lte")) / 1e3


def test_rate_series_is_seeded_positive_and_has_its_mean():
    one = rates.series("cellular", 12.0, 30, 4)
    assert (one == rates.series("cellular", 12.0, 30, 4)).all()
    assert one[:, 1].mean() == pytest.approx(12)
    assert (one[:, 1] > 0).all()
    assert one[:, 1].std() / 12 > 0.2
    with pytest.raises(UserError, match="cellular"):
        rates.series("celular", 1, 1, 1)
