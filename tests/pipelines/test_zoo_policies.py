"""Policies in the zoo: made of a training, played again by `verify`, judged by a gate."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
from random_policies import policy, scenario

from data.errors import UserError
from data.netsim.metrics import simulate
from data.netsim.scenario import load
from models import policies as names
from models import store
from models.closedloop import Player, player
from models.policies import entry, judged, proving, replay
from models.policies import policy as trained
from models.rl import agents
from models.rl.layout import Layout
from models.rl.networks import NETWORKS
from models.rl.runner import make
from pipelines.cli import main
from pipelines.gates import control, played
from pipelines.league import capacity, draw, scores
from pipelines.league.families import FAMILIES
from pipelines.zoo import policies

pytestmark = pytest.mark.xdist_group("netsim")
QUICK = {"duration_s": 3, "links.core.queue_packets": 100}


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    """A zoo with both of MA-CC's entries, made of a folder as a training leaves it."""
    place = tmp_path_factory.mktemp("policies")
    folder = place / "seed-7"
    (folder / "checkpoint-000000000100").mkdir(parents=True)
    points = [{"steps": 10.0 * k, "updates": 0.0, "return": 1.5 * k} for k in range(30)]
    (folder / "curve.json").write_text(json.dumps(points))
    patch = pytest.MonkeyPatch()
    settings = {**policy("macc").settings, "env": {"sampler": "dumbbell"}, "steps": 123}
    patch.setattr(trained, "of_training", lambda folder: replace(policy("macc"), settings=settings))
    patch.setattr(judged, "SCENARIOS", {"macc": ("macc-fig4",)})
    try:
        made = policies.made(folder, place / "zoo", 2, QUICK)
    finally:
        patch.undo()
    assert [model.meta.name for model in made] == ["macc-tcp", "macc-aqm"]
    return place / "zoo"


def test_an_entry_holds_no_pickle_and_says_what_it_needs(zoo):
    model = store.load("macc-tcp", zoo)
    assert {"policy.json", "weights.safetensors", "replay.json"} <= model.meta.files.keys()
    said = model.read_json("policy.json")
    assert said["actions"] == ["up", "down", "hold"]
    assert [one["name"] for one in said["inputs"]] == ["acked_bytes", "in_flight_bytes", "rtt_us"]
    assert said["interval_us"] == 200_000
    assert not any(key.startswith("net.kinds.1") for key in entry.of_entry(model).weights)
    card = model.read("card.md").decode()
    assert "| macc-fig4 droptail | macc-tcp |" in card
    assert "| macc-fig4 | the paper's agent | 28.459 | 287 |" in card
    assert "cczoo train macc" in card
    assert "steps=123" in card
    assert "env.sampler=dumbbell" in card
    # Nothing of it depends on how fast the machine is that made it.
    assert "decision_us" not in model.read("metrics.json").decode()


def test_it_plays_as_what_it_was_made_of_alone_and_as_a_pair(zoo):
    spec, whole = replay.SHORT["macc"], policy("macc")
    for name in ("macc-tcp", "macc-aqm"):
        assert replay.differing(entry.of_entry(store.load(name, zoo)),
                                replay.recorded(whole.only(name))) == []  # fmt: skip
    pair = player("macc", zoo=zoo)
    assert pair.policy.kinds == (0, 1)
    kept = replay.recorded(whole)
    assert kept["scenario"] == spec
    assert replay.differing(pair.policy, kept) == []


def test_verify_plays_it_again(zoo, tmp_path, capsys):
    assert main(["zoo", "verify", "--zoo", str(zoo), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["ok"] for one in found["models"]] == [True, True]
    assert found["models"][0]["decisions"] > 20
    # Other weights choose otherwise, and are told.
    model, other = store.load("macc-tcp", zoo), policy("macc", seed=9).only("macc-tcp")
    files = {name: model.read(name) for name in model.meta.files} | entry.files(other)
    store.save(tmp_path / "macc-tcp", entry.meta(other, "test"), files)
    assert main(["zoo", "verify", str(tmp_path / "macc-tcp"), "--json"]) == 1
    (report,) = json.loads(capsys.readouterr().out)["models"]
    assert report["problems"][0].startswith("decision ")
    # As is a file that somebody changed.
    bent = shutil.copytree(zoo / "macc-aqm", tmp_path / "bent")
    (bent / "weights.safetensors").write_bytes(b"0" * 100)
    with pytest.raises(UserError, match="altered since"):
        player(str(bent))


def test_observations_of_another_definition_are_refused(zoo, monkeypatch):
    from features import macc

    monkeypatch.setattr(macc, "SENDER_HALF", (1.0, 1.0, 1.0))
    with pytest.raises(UserError, match="defined anew since it was trained"):
        player("macc-tcp", zoo=zoo)


def test_the_zoo_lists_policies_and_what_exports_them(zoo, capsys):
    assert main(["zoo", "list", "--zoo", str(zoo), "--json"]) == 0
    wanted = ["bpf", "c", "json", "lut", "onnx"]
    assert [row["targets"] for row in json.loads(capsys.readouterr().out)] == [wanted] * 2
    assert main(["zoo", "show", "macc-aqm", "--zoo", str(zoo)]) == 0
    assert "# macc-aqm" in capsys.readouterr().out
    assert store.names(zoo) == []
    assert store.POLICY == names.ENTRY
    assert names.kept(zoo) == ["macc-aqm", "macc-tcp"]


def test_rows_of_policies_stand_beside_those_of_controls(zoo, capsys):
    given = ["--scenario", "macc-fig4", "--cc", f"cubic,{zoo}/macc-tcp", "--seeds", "2", "--json"]
    short = ["--set", "duration_s=3", "--delay", "1"]
    assert main(["evaluate", "cc", *given, *short]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["cc"] for row in rows[:2]] == ["cubic", f"{zoo}/macc-tcp"]
    assert rows[1]["delay_ms"] == 1.0
    assert rows[1]["metrics"].keys() - rows[0]["metrics"].keys() == {"decision_us"}
    assert rows[1]["metrics"]["goodput_mbps"]["lo"] is not None
    assert main(["evaluate", "cc", *given[:2], "--cc", f"{zoo}/macc-tcp", "--delay", "200"]) == 2
    assert "to below 200 ms" in capsys.readouterr().err


@pytest.fixture
def small(monkeypatch):
    few = {name: played.FAMILIES[name] for name in ("lossy", "friendly")}
    monkeypatch.setattr(played, "FAMILIES", few)
    return draw.scenarios(few, played.SEED, each=1)


def test_a_release_asks_the_gate_and_keeps_its_figures(zoo, tmp_path, capsys, small, monkeypatch):
    (tmp_path / "params.yaml").write_text(
        "promotion: {gates: {control: {worst: 0.0, neighbour: 0.0, each: 1}}}"
    )
    given = ["--zoo", f"{tmp_path}/zoo", "--params", f"{tmp_path}/params.yaml", "--json"]
    assert main(["zoo", "release", f"{zoo}/macc-tcp", *given]) == 0
    record = json.loads((tmp_path / "zoo" / "macc-tcp" / "release.json").read_text())
    reason = record["gates"]["control"]["reason"]
    assert draw.digest(small)[:12] in reason
    costs = json.loads((tmp_path / "zoo" / "macc-tcp" / "costs.json").read_text())
    assert costs["rows"][0]["ns_per_decision"] > 0
    capsys.readouterr()
    assert main(["zoo", "release", f"{zoo}/macc-tcp", *given]) == 1
    assert "the same model" in capsys.readouterr().out
    # A policy that is released in its place is played beside it.
    (tmp_path / "params.yaml").write_text("promotion: {gates: {control: {worst: 9, each: 1}}}")
    other = policy("macc", seed=9).only("macc-tcp")
    files = {**entry.files(other), "replay.json": json.dumps(replay.recorded(other)).encode()}
    files |= {"metrics.json": b"{}", "card.md": b"# other"}
    store.save(tmp_path / "other", entry.meta(other, "test"), files)
    seen, play = [], played.Judge.played

    def counted(judge, one):
        seen.append(one.policy.weights)
        return play(judge, one)

    monkeypatch.setattr(played.Judge, "played", counted)
    assert main(["zoo", "release", f"{tmp_path}/other", *given]) == 1
    assert "less than 9 of CUBIC's power" in capsys.readouterr().out
    assert len(seen) == 2

    own, of_entry = store.load(tmp_path / "other").read(names.WEIGHTS), entry.of_entry

    def refused(one):
        if one.read(names.WEIGHTS) != own:
            raise UserError("it observed otherwise")
        return of_entry(one)

    monkeypatch.setattr(entry, "of_entry", refused)
    assert main(["zoo", "release", f"{tmp_path}/other", *given]) == 1
    assert "the champion can't be played: it observed otherwise" in capsys.readouterr().out


def test_the_gate_compares_with_cubic_and_not_with_other_models(small):
    class Comparison:
        candidate, champion = store.load("smartsbd-dt"), None

    assert control.check(Comparison, control.Settings()).passed is None
    judge = played.Judge.of({"lossy": small[:1], "friendly": small[1:]})
    found = judge.played(Player(policy("nuwa")))
    assert found.power.keys() == {"lossy", "friendly"}
    assert found.left.keys() == {"friendly"}
    # CUBIC beside CUBIC has all of itself, whatever the metric makes of it.
    rows = scores.rows(small, capacity.of_all(small), judge.runs, ("cubic",))
    assert rows[small[1].name, "cubic"]["left"] == 1.0


def test_each_policy_is_proved_in_the_families_that_it_fits():
    """TCCO on all paths that it has subflows for; routers, which fit none, on queues of theirs."""
    receiver = played.scenes(Player(policy("nuwa")), 2)
    assert [*receiver] == ["constant", "stepping", "traces", "lossy", "friendly"]
    assert {len(family) for family in receiver.values()} == {2}
    tcco = played.scenes(Player(policy("tcco")), 2)
    assert [*tcco] == [*FAMILIES]
    assert all(len(one.spec.flows[0].paths) == 2 for one in tcco["mptcp-shared"])
    routers = played.scenes(Player(policy("macc").only("macc-aqm")), 2)
    assert routers.keys() == {*proving.FAMILIES, proving.BESIDE}
    assert len({one.name for family in routers.values() for one in family}) == 12


def judged_by_the_gate(monkeypatch, candidate, champion=None):
    """What the gate finds of two policies, as if they were entries."""

    class Entry:
        def __init__(self, own):
            self.policy, self.meta = own, store.load("smartsbd-dt").meta
            self.meta = self.meta.model_copy(update={"files": {names.ENTRY: ""}})

    class Comparison:
        def check_alike(self):
            """Whatever they are, they are compared."""

    comparison = Comparison()
    comparison.candidate = Entry(candidate)
    comparison.champion = None if champion is None else Entry(champion)
    monkeypatch.setattr(entry, "of_entry", lambda one: one.policy)
    return control.check(comparison, control.Settings(each=1, worst=0, neighbour=0, margin=10))


def test_routers_alone_are_compared_with_their_own_sender(monkeypatch):
    """What NewReno is worth beside CUBIC is no merit of a queue."""
    routers = policy("macc").only("macc-aqm")
    scenes = played.scenes(Player(routers), 1)
    assert played.reference(Player(routers), scenes) == "reno"
    assert played.reference(Player(policy("macc")), scenes) == "cubic"
    one = scenes["steady"][0]
    runs = played.Judge.of({"steady": [one]}, "reno").runs
    by = {cc: simulate(one.spec, cc, one.seed)["rtt_ms"] for cc in ("reno", "cubic")}
    assert by["reno"] != by["cubic"]
    assert runs[one.name, "cubic"]["rtt_ms"] == by["reno"]
    # A router that never drops is a FIFO queue, and NewReno behind it is the reference itself.
    weights = {key: value.copy() for key, value in routers.weights.items()}
    weights["net.kinds.1.head.weight"][:] = 0
    weights["net.kinds.1.head.bias"][:] = (0, 1, 0)
    idle = judged_by_the_gate(monkeypatch, replace(routers, weights=weights))
    assert idle.evidence["power"] == pytest.approx(1.0)
    assert idle.evidence["neighbour"] == pytest.approx(1.0)
    assert "power 1.00 of NewReno's" in idle.reason


def test_the_gate_draws_other_scenarios_than_the_leagues_page(small):
    published = draw.scenarios(["lossy", "friendly"], each=1)
    drawn = [one for family in played.scenes(Player(policy("nuwa")), 1).values() for one in family]
    assert [one.name for one in drawn] == [one.name for one in published]
    assert not any(a.spec == b.spec for a, b in zip(drawn, published, strict=True))


def test_what_the_champion_fits_and_the_candidate_does_not_is_a_problem(monkeypatch):
    few = {name: played.FAMILIES[name] for name in ("friendly", "mptcp-shared")}
    monkeypatch.setattr(played, "FAMILIES", few)
    one_path, paths = policy("nuwa"), policy("tcco")
    found = judged_by_the_gate(monkeypatch, one_path, paths)
    assert found.passed is False
    count = len(played.missed(Player(one_path), Player(paths), 1))
    assert count > 1
    assert f"the champion fits {count} scenarios that it doesn't fit, such as mptcp-shared-" in (
        found.reason
    )
    assert played.missed(Player(paths), Player(one_path), 1) == []


@pytest.mark.parametrize(
    ("agent", "entries"),
    [
        ("tcco-joint", ["tcco-joint"]),
        ("nuwa-dqn", ["nuwa-dqn"]),
        ("nuwa-ppo", ["nuwa-ppo"]),
        ("macc-qmix", ["macc-qmix-tcp", "macc-qmix-aqm"]),
    ],
)
def test_a_comparison_acts_and_is_released_under_its_own_name(
    agent, entries, tmp_path, monkeypatch
):
    """Whatever its network is, and wherever it stands: QMIX's mixer has no say in acting."""
    line, params = agents.agent(agent), agents.settings(agent, {})
    env = make(line.maker, 1, 1, params.env)
    model = {"layout": Layout.of(env).plain(), "network": params.model_dump(by_alias=False)}
    module = line.load().Module(model_config=model)
    monkeypatch.setattr("models.rl.policy.kept", lambda folder: (agent, params, module))
    spec = scenario(flows=1 if agent.startswith("tcco") else 4)
    whole = trained.of_training(tmp_path)
    assert Player(whole).play([(spec, 1)])[0]["goodput_mbps"] > 0
    made = policies.made(tmp_path / "seed-7", tmp_path / "zoo", 0)
    assert [one.meta.name for one in made] == entries
    for one in made:
        assert entry.of_entry(one).network in NETWORKS
        assert policies.verify(one)["problems"] == []
        assert line.summary in one.read("card.md").decode()


def test_what_plays_no_network_is_refused(tmp_path, monkeypatch):
    line, params = agents.agent("matrix"), agents.settings("matrix", {})
    env = make(line.maker, 1, 1, params.env)
    model = {"layout": Layout.of(env).plain(), "network": params.model_dump(by_alias=False)}
    module = line.load().Module(model_config=model)
    monkeypatch.setattr("models.rl.policy.kept", lambda folder: ("matrix", params, module))
    with pytest.raises(UserError, match="'matrix' is no congestion control: it plays no network"):
        trained.of_training(tmp_path)


def test_a_training_is_released_from_its_folder(tmp_path, monkeypatch, capsys):
    """The one training here: a few steps of MA-CC, from the command line to the entries."""
    quick = ["steps=240", "warmup=40", "learning_starts=80", "num_envs=4", "report_every=80",
             "validate_every=0", "env.params.steps=20", "logs=true"]  # fmt: skip
    words = [word for one in quick for word in ("--set", one)]
    assert main(["train", "macc", *words, "--no-track", "--out", f"{tmp_path}/rl"]) == 0
    folder, zoo = f"{tmp_path}/rl/seed-7", f"{tmp_path}/zoo"
    assert main(["zoo", "add", folder, "--zoo", zoo, "--seeds", "0"]) == 0
    assert names.kept(tmp_path / "zoo") == ["macc-aqm", "macc-tcp"]
    card = (tmp_path / "zoo" / "macc-tcp" / "card.md").read_text()
    assert "env.params.steps=20" in card
    # A network without a line plays from its folder, but isn't released.
    monkeypatch.setattr("models.policies.policy.NETWORKS", {})
    monkeypatch.setattr("models.rl.networks.NETWORKS", {})
    spec = load("macc-fig4", {"duration_s": 2})["droptail"]
    assert player(folder).play([(spec, 1)])[0]["goodput_mbps"] >= 0
    assert main(["zoo", "add", folder, "--zoo", zoo, "--seeds", "0"]) == 2
    assert "no line of models.rl.networks.dueling:TeamModule" in capsys.readouterr().err
