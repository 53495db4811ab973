import numpy as np
import pytest
from synthetic import SITES

from models.sbd.evaluate import splits as protocol
from models.sbd.params import Protocol
from models.sbd.windows import Windows

PARAMS = Protocol(splits=4)


@pytest.fixture(scope="module")
def splits(table: Windows) -> list[protocol.Split]:
    return protocol.splits(table, PARAMS, seed=5)


def test_no_connection_on_both_sides(table: Windows, splits: list[protocol.Split]) -> None:
    assert {s.protocol for s in splits} == {
        "within", "unseen", "unseen-varied", "transfer", "mixed", "family", "families",
    }  # fmt: skip
    for split in splits:
        train, test = set(table.group[split.train]), set(table.group[split.test])
        assert train
        assert test
        assert not train & test, split


def test_shuffle_splits_are_stratified_by_site_and_class(
    table: Windows, splits: list[protocol.Split]
) -> None:
    dataset = table.column("dataset")
    within = [s for s in splits if s.protocol == "within"]
    assert len(within) == PARAMS.splits
    for split in within:
        for site in SITES:
            for label in (0, 1):
                rows = split.test[(dataset[split.test] == site) & (table.y[split.test] == label)]
                assert len(set(table.group[rows])) == 1
    assert len({tuple(s.test) for s in within}) == PARAMS.splits


def test_unseen_cases_and_left_out_families_stay_unseen(
    table: Windows, splits: list[protocol.Split]
) -> None:
    dataset, family = table.column("dataset"), table.column("family")
    for split in splits:
        assert "table6" not in set(dataset[split.train])
        if split.protocol in ("family", "families"):
            out = set(split.name.split("|"))
            assert set(family[split.test]) == out
            assert not set(family[split.train]) & out
    left = [s.name for s in splits if s.protocol == "family"]
    pairs = [s.name for s in splits if s.protocol == "families"]
    assert len(pairs) == len(left) * (len(left) - 1) / 2


def test_same_seed_same_splits(table: Windows, splits: list[protocol.Split]) -> None:
    again = protocol.splits(table, PARAMS, seed=5)
    assert all(np.array_equal(a.test, b.test) for a, b in zip(splits, again, strict=True))
    other = protocol.splits(table, PARAMS, seed=6)
    assert not np.array_equal(splits[0].test, other[0].test)


def test_a_table_of_sites_alone_gives_only_what_it_can(table: Windows) -> None:
    sites = table.take(np.isin(table.column("dataset"), SITES))
    assert {s.protocol for s in protocol.splits(sites, PARAMS, 0)} == {"within"}


def test_a_table_of_data_sets_nobody_named_is_split_whole(table: Windows) -> None:
    sites = table.take(np.isin(table.column("dataset"), SITES))
    unnamed = Protocol(splits=4, varied="nowhere")
    found = protocol.splits(sites, unnamed, 0)
    assert {s.protocol for s in found} == {"within"}
    assert all(s.train.size + s.test.size == len(sites) for s in found)
