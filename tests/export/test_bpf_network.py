"""Networks as eBPF: any number of outputs, every activation, as wide as a program's stack."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor
from small_models import FEATURES
from test_bpf_kernel import exported as exported_of_two
from test_several import exported, observations
from test_targets_c import source_of

from data.errors import UserError
from export.bpf import build
from export.bpf.files import MAX_STACK_NETWORK, network_bytes
from export.lower import lower
from export.params import Options, VerifyParams
from export.targets import emit, fitting
from export.verify import verify

LABELS = tuple(f"rate {i}" for i in range(25))


def network(outputs, hidden, activation="relu", real=False):
    """The form of a small network that has learned a little."""
    x = observations(400)
    unit = (x - x.mean(axis=0)) / x.std(axis=0)
    settings = {"hidden_layer_sizes": hidden, "activation": activation, "max_iter": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if real:
            targets = np.column_stack([np.roll(unit, i, axis=1)[:, 0] for i in range(outputs)])
            model = MLPRegressor(**settings, random_state=0).fit(x, np.squeeze(targets))
        else:
            y = np.argsort(np.argsort(unit[:, 0])) * max(outputs, 2) // len(x)
            model = MLPClassifier(**settings, random_state=0).fit(x, y)
    return lower(model, FEATURES, LABELS[: 2 if outputs == 1 and not real else outputs])


def widest(outputs):
    """The widest one of one layer that is taken."""
    width = 8
    while network_bytes(network(outputs, (width + 1,))) <= MAX_STACK_NETWORK:
        width += 1
    return network(outputs, (width,))


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("outputs", "hidden", "activation", "real"),
    [
        (1, (8,), "tanh", False),
        (3, (8, 6), "logistic", False),
        # Biases of four outputs take 32 bytes: such constants go to a section that BTF refuses.
        (4, (4,), "tanh", False),
        (25, (12,), "relu", False),
        (1, (6,), "relu", True),
        (3, (10, 8), "relu", True),
    ],
)
def test_the_kernel_answers_as_the_integers(outputs, hidden, activation, real, tmp_path):
    if reason := build.why_not():
        print(f"eBPF not run in the kernel: {reason}")
        pytest.skip(reason)
    form = network(outputs, hidden, activation, real)
    assert form.kind == "mlp"
    assert form.outputs == outputs
    make = exported_of_two if outputs == 1 and not real else exported
    report = verify(make(form, tmp_path / "bundle", "if-else"), VerifyParams(random=100))
    assert report["ok"], report
    assert report["targets"][0]["mismatches"] == 0
    assert report["targets"][0]["vectors"] > 1000


@pytest.mark.kernel
def test_the_widest_network_that_is_taken_fits_the_stack(tmp_path):
    if reason := build.why_not():
        print(f"eBPF not run in the kernel: {reason}")
        pytest.skip(reason)
    form = widest(5)
    assert MAX_STACK_NETWORK - 4 < network_bytes(form) <= MAX_STACK_NETWORK
    report = verify(exported(form, tmp_path / "bundle", "if-else"), VerifyParams(random=10))
    assert report["ok"], report
    assert 400 < report["targets"][0]["stack_bytes"] <= 512


def test_a_wider_network_is_refused_by_its_size():
    wide = network(5, (128, 64))
    assert "bpf" not in fitting(source_of(wide))
    with pytest.raises(UserError, match=f"BPF program's stack, {MAX_STACK_NETWORK} do"):
        emit("bpf", source_of(wide), Options(bpf="if-else"))
