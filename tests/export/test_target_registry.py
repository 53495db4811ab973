"""The registry of targets says what the targets' own tables can write."""

import pytest

from export.bpf import files as bpf
from export.forms import FORMS
from export.table_file import KINDS
from export.targets import RECURRENT, TARGETS, Registered, c, carrying, mlp_c, python, target

OWN = {
    "bpf": {*bpf.STRAIGHT, *bpf.WALKED},
    "c": {kind for kind, _ in c.TEMPLATES},
    "json": set(FORMS),
    "mlp-c": set(mlp_c.TEMPLATES),
    "python": set(python.TEMPLATES),
    "table": set(KINDS),
}


@pytest.mark.parametrize("name", OWN)
def test_a_target_takes_what_its_templates_write(name):
    assert set(TARGETS[name].takes) == OWN[name]


def test_every_kind_is_a_form_and_every_target_has_its_module():
    for name, line in TARGETS.items():
        assert set(line.takes) <= {*FORMS, "float", RECURRENT}
        assert target(name).SUMMARY


def test_a_wider_model_than_a_target_takes_is_not_offered():
    assert "lut" in carrying({"tree"}, TARGETS["lut"].widest)
    assert "lut" not in carrying({"tree"}, TARGETS["lut"].widest + 1)
    assert Registered("m", ("tree",)).carries({"tree", "float"}, 10_000)
    assert not Registered("m", ("tree",)).carries({"float"}, 1)
