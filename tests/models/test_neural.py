"""The network on raw series: what it can't see, how it trains, and what its checkpoint is."""

import numpy as np
import pytest
import torch
from series import make_rows

from data.errors import UserError
from features.series_pair import CELLS, FEATURES
from models.sbd.neural.augment import AUGMENTATIONS
from models.sbd.neural.network import SIDE, PairNetwork, parameters
from models.sbd.neural.params import VARIANTS, Neural

pytestmark = pytest.mark.xdist_group("dynamo")

TINY = Neural(width=4, dilations=(1, 2), hidden=4, epochs=3, batch=16, patience=3)


def logits(network: PairNetwork, rows: np.ndarray) -> np.ndarray:
    with torch.inference_mode():
        return network.eval()(torch.from_numpy(rows)).numpy()


def swapped(rows: np.ndarray) -> np.ndarray:
    return rows.reshape(-1, 2, SIDE)[:, ::-1].reshape(rows.shape).copy()


@pytest.fixture(scope="module")
def training():
    """Lightning takes seconds to import, and every worker would while it collects."""
    from models.sbd.neural import training

    return training


@pytest.fixture(scope="module")
def network() -> PairNetwork:
    torch.manual_seed(1)
    return PairNetwork(long=True)


def test_order_of_subflows_does_not_show(network):
    rows, _ = make_rows(40)
    answers = logits(network, rows)
    assert answers.std() > 1e-3
    np.testing.assert_allclose(logits(network, swapped(rows)), answers, atol=1e-6)


def test_scale_of_rtts_and_rates_does_not_show(network):
    rows, _ = make_rows(40, seed=1)
    scaled = rows.reshape(-1, 2, SIDE).copy()
    scaled[:, :, :CELLS] *= 3
    scaled[:, :, 2 * CELLS :] *= 3
    np.testing.assert_allclose(
        logits(network, scaled.reshape(rows.shape)), logits(network, rows), atol=1e-4
    )


def test_base_rtt_of_one_path_does_not_show(network):
    rows, _ = make_rows(40, seed=2)
    moved = rows.reshape(-1, 2, SIDE).copy()
    rtts = np.r_[0:CELLS, SIDE - 1 : SIDE]
    moved[:, 1, rtts] += 20_000
    moved[:, 1, 3 * CELLS : -1] += np.where(moved[:, 1, 3 * CELLS : -1] > 0, 20_000, 0)
    np.testing.assert_allclose(
        logits(network, moved.reshape(rows.shape)), logits(network, rows), atol=2e-3
    )


def test_odd_rows_have_an_answer(network):
    """Constant series, zeros, and the largest values that the columns may hold."""
    high = np.array([f.high for f in FEATURES], np.float32)
    rows = np.stack(
        [np.zeros_like(high), high, high / 2, np.where(np.arange(high.size) % 2, 0, high)]
    )
    assert np.isfinite(logits(network, rows)).all()


def test_every_variant_is_small(training):
    for change in VARIANTS.values():
        assert parameters(training.build(Neural.model_validate(change))) <= 50_000


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_augmented_rows_differ_by_time_alone(name):
    rows, _ = make_rows(30, seed=3)
    data = torch.from_numpy(rows)
    found = AUGMENTATIONS[name](data, torch.Generator().manual_seed(5)).numpy()
    assert (found != rows).any()
    again = AUGMENTATIONS[name](data, torch.Generator().manual_seed(5)).numpy()
    assert (again == found).all()
    before, after = (r.reshape(-1, 2, SIDE) for r in (rows, found))
    assert (before[:, :, 3 * CELLS :] == after[:, :, 3 * CELLS :]).all()
    for part in (slice(0, CELLS), slice(CELLS, 2 * CELLS), slice(2 * CELLS, 3 * CELLS)):
        for old, new in zip(
            before[:, :, part].reshape(60, -1), after[:, :, part].reshape(60, -1), strict=True
        ):
            assert np.isin(new, old).all()


def test_it_learns_what_is_shared(training):
    rows, labels = make_rows(400, seed=4)
    held = np.arange(400) >= 300
    found = training.fit(rows, labels, held, TINY.model_copy(update={"epochs": 8}), 1)
    p = training.probability(found.network, rows[held])
    assert ((p > 0.5) == labels[held]).mean() > 0.9
    assert found.curve[found.best].validation_loss == min(e.validation_loss for e in found.curve)
    assert found.curve[-1].loss < found.curve[0].loss


def test_two_trainings_are_the_same_to_the_bit(training):
    from export.onnx.torch_file import convert

    rows, labels = make_rows(96)
    held = np.arange(96) % 6 == 0
    made = []
    for threads in (1, 2):
        # What ran before in the process leaves its traces: threads, a generator that was used.
        torch.set_num_threads(threads)
        torch.rand(threads)
        found = training.fit(rows, labels, held, TINY, 7)
        content = convert(found.network, FEATURES, "tiny", ("NSB", "SB"), {})
        made.append((content, found.curve, training.probability(found.network, rows).tobytes()))
    assert made[0] == made[1]
    other = training.fit(rows, labels, held, TINY, 8)
    assert training.probability(other.network, rows).tobytes() != made[0][2]


def test_a_killed_training_goes_on_as_if_it_had_not_been(training, tmp_path):
    rows, labels = make_rows(80, seed=5)
    held = np.arange(80) >= 60
    settings = TINY.model_copy(update={"augment": ("stretch", "jitter")})
    whole = training.fit(rows, labels, held, settings, 2)

    def killed(epoch: training.Epoch) -> None:
        if epoch.epoch == 1:
            raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, SystemExit)):
        training.fit(rows, labels, held, settings, 2, checkpoint=tmp_path, told=killed)
    assert [path.name for path in tmp_path.iterdir()] == [training.STATE]
    epochs: list[int] = []
    resumed = training.fit(
        rows, labels, held, settings, 2, checkpoint=tmp_path, told=lambda e: epochs.append(e.epoch)
    )
    assert epochs == [2]
    assert resumed.curve == whole.curve
    for name, value in whole.network.state_dict().items():
        assert torch.equal(resumed.network.state_dict()[name], value), name


def test_a_checkpoint_of_other_settings_is_not_taken(training, tmp_path):
    rows, labels = make_rows(40, seed=6)
    held = np.arange(40) >= 30
    short = TINY.model_copy(update={"epochs": 1})
    training.fit(rows, labels, held, short, 3, checkpoint=tmp_path)
    epochs: list[int] = []
    training.fit(
        rows, labels, held, short, 4, checkpoint=tmp_path, told=lambda e: epochs.append(e.epoch)
    )
    assert epochs == [0]
    (tmp_path / training.STATE).write_bytes(b"\x80\x04 no checkpoint")
    with pytest.raises(UserError, match="delete it"):
        training.fit(rows, labels, held, short, 4, checkpoint=tmp_path)
