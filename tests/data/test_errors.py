"""Messages name things as the user wrote them."""

import numpy as np
import polars as pl
import pytest

from data.errors import UserError, unknown_name
from models.sbd.windows import windows


def test_a_name_out_of_an_array_is_plain_text():
    names = np.array(["smartsbd-dt", "smartsbd-rf"])
    assert str(unknown_name("model", names[0], names)).startswith("unknown model 'smartsbd-dt': ")
    near = str(unknown_name("model", "smartsbd-d", names))
    assert near == "unknown model 'smartsbd-d': did you mean 'smartsbd-dt'?"


def test_an_empty_registry_says_so():
    assert str(unknown_name("model", "x", [])) == "unknown model 'x': there is none yet"


def test_a_wrong_label_is_quoted_as_it_stands():
    frame = pl.DataFrame({"connection": ["c1"], "window": [0], "label": ["XX"]})
    with pytest.raises(UserError, match=r"^label 'XX' of connection 'c1': write SB or NSB$"):
        windows(frame)
