"""Scores of partitions, on tables made by hand."""

import numpy as np
import polars as pl
import pytest

from data.errors import UserError
from models.sbd import windows as tables
from models.sbd.evaluate.partition import contradictions, grid, partitions, score


def make(rows):
    """Rows of (connection, window, a, b, label)."""
    columns = ["connection", "window", "subflow_a", "subflow_b", "label"]
    frame = pl.DataFrame(rows, columns, orient="row").with_columns(source=pl.lit("s"))
    return tables.windows(frame)


def three(connection, window, labels):
    pairs = ((1, 2), (1, 4), (2, 4))
    return [(connection, window, *p, said) for p, said in zip(pairs, labels, strict=True)]


def rows_of(table, said):
    """Verdicts in the table's order from {(connection, window, a, b): shared}."""
    keys = table.frame.select("connection", "window", "subflow_a", "subflow_b").rows()
    return np.array([said[key] for key in keys])


def answers(*windows):
    pairs = ((1, 2), (1, 4), (2, 4))
    return {(c, w, *p): s for c, w, said in windows for p, s in zip(pairs, said, strict=True)}


def test_subflows_keep_their_numbers_and_windows_their_order():
    all_share = ["SB"] * 3
    table = make([*three("d", 7, all_share), *three("c", 9, all_share), *three("c", 2, all_share)])
    arranged = grid(table)
    assert arranged.names == [[1, 2, 4], [1, 2, 4]]
    assert arranged.connection.tolist() == [0, 0, 1]
    assert arranged.index.tolist() == [2, 9, 7]
    assert arranged.last().tolist() == [False, True, True]
    said = answers(("c", 2, [1, 0, 0]), ("c", 9, [0, 0, 1]), ("d", 7, [0, 1, 0]))
    found = partitions(arranged, rows_of(table, said).astype(bool))
    assert found == [[[1, 2], [4]], [[1], [2, 4]], [[1, 4], [2]]]


def test_right_pairs_and_right_partitions_are_counted_apart():
    labels = ["SB", "NSB", "NSB"]
    table = make([*three("c", 0, labels), *three("c", 1, labels), *three("d", 0, labels)])
    arranged = grid(table)
    said = answers(("c", 0, [1, 1, 0]), ("c", 1, [1, 0, 0]), ("d", 0, [0, 0, 0]))
    shared = rows_of(table, said).astype(bool)
    found = score(arranged, shared, table.y)
    assert found["pair_accuracy"]["mean"] == pytest.approx(7 / 9)
    assert found["sb_accuracy"]["mean"] == pytest.approx(2 / 3)
    assert found["nsb_accuracy"]["mean"] == pytest.approx(5 / 6)
    assert found["exact_partition"]["mean"] == pytest.approx(1 / 3)
    assert found["exact_connection"]["mean"] == pytest.approx(1 / 2)
    assert (found["pairs"], found["windows"], found["connections"]) == (9, 3, 2)
    assert contradictions(arranged, shared) == {"windows_of_three": 3, "not_transitive": 1}


def test_a_chain_is_right_where_all_share_though_a_pair_is_wrong():
    table = make(three("c", 0, ["SB"] * 3))
    arranged = grid(table)
    shared = rows_of(table, answers(("c", 0, [1, 0, 1]))).astype(bool)
    found = score(arranged, shared, table.y)
    assert found["pair_accuracy"]["mean"] == pytest.approx(2 / 3)
    assert found["exact_partition"]["mean"] == 1


def test_windows_without_all_pairs_or_labels_are_not_scored_as_partitions():
    rows = [*three("c", 0, ["SB", "SB", "SB"]), ("c", 1, 1, 2, "SB"),
            *three("c", 2, ["SB", None, None])]  # fmt: skip
    table = make(rows)
    arranged = grid(table)
    assert arranged.complete().tolist() == [True, False, True]
    found = score(arranged, np.ones(7, bool), table.y)
    assert (found["pairs"], found["windows"], found["connections"]) == (5, 1, 1)
    # A subflow without a row in the window is by itself.
    assert partitions(arranged, np.ones(7, bool))[1] == [[1, 2], [4]]


def test_a_table_of_two_subflows_needs_no_pair_columns():
    frame = pl.DataFrame({"connection": ["c", "c"], "window": [0, 1], "label": ["SB", "NSB"]})
    table = tables.windows(frame)
    arranged = grid(table)
    shared = np.array([True, True])
    assert partitions(arranged, shared) == [[[1, 2]], [[1, 2]]]
    assert score(arranged, shared, table.y)["exact_partition"]["mean"] == 0.5
    assert contradictions(arranged, shared)["windows_of_three"] == 0


def test_a_pair_twice_in_a_window_is_refused():
    with pytest.raises(UserError, match="two rows for one pair"):
        grid(make([("c", 0, 1, 2, "SB"), ("c", 0, 1, 2, "SB")]))
