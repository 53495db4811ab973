"""PyTorch to ONNX: one input, one output, the pinned opset, and the same answers."""

import json

import numpy as np
import onnx
import pytest
import torch
from small_models import FEATURES

from data.errors import UserError
from export.onnx.run import predict
from export.onnx.torch_file import OPSET, convert

pytestmark = pytest.mark.xdist_group("dynamo")


class Small(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = torch.nn.Linear(len(FEATURES), 1)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.line(torch.log1p(rows.abs())).squeeze(1)


@pytest.fixture(scope="module")
def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return Small().eval()


@pytest.fixture(scope="module")
def content(network: torch.nn.Module) -> bytes:
    return convert(network, FEATURES, "small", ("NSB", "SB"), {})


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_answers_are_pytorchs_for_any_number_of_rows(network, content, rows):
    values = np.random.default_rng(rows).uniform(0, 50, (rows, len(FEATURES)))
    with torch.inference_mode():
        meant = torch.sigmoid(network(torch.from_numpy(values.astype(np.float32)))).numpy()
    np.testing.assert_allclose(predict(content, values, "small"), meant, atol=1e-6)


def test_file_says_what_it_takes_and_no_more(content):
    model = onnx.load_from_string(content)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", OPSET)]
    assert [i.name for i in model.graph.input] == ["features"]
    assert [o.name for o in model.graph.output] == ["probability"]
    said = {item.key: item.value for item in model.metadata_props}
    assert json.loads(said["features"]) == [f.name for f in FEATURES]
    assert b".py" not in content


def test_what_pytorch_can_not_trace_is_an_error_in_one_line():
    class Branching(torch.nn.Module):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return rows[:, 0] if rows.sum() > 0 else rows[:, 1]

    with pytest.raises(UserError, match="can't write it as ONNX") as caught:
        convert(Branching(), FEATURES, "branching", ("NSB", "SB"), {})
    assert "\n" not in str(caught.value)
