"""Data sets by name: the table of all, and names and variants that there are not."""

import pytest

from softsurv.data import sources
from softsurv.data.datasets import DATASETS, list_datasets, load_dataset
from softsurv.errors import InvalidParameterError


def test_the_table_states_everything_and_loads_nothing(monkeypatch):
    monkeypatch.setattr(sources, "find_file", lambda file: pytest.fail("the table opened a file"))
    table = list_datasets()
    assert table.index.tolist() == sorted(DATASETS)
    assert table.loc["gbsg2", ["n", "p", "events", "censoring_percent"]].tolist() == [686, 8, 299, 56.4]
    for column in ("source", "event", "time_unit", "dropped"):
        assert table[column].str.len().gt(0).all()


@pytest.mark.parametrize(
    ("name", "variant", "match"),
    [
        ("gbsg3", None, "name must be one of aids, aids2, .* or survset:<name>, got 'gbsg3'"),
        (7, None, "got 7"),
        (["gbsg2"], None, "name must be one of"),
        ("gbsg2", "full", "variant of 'gbsg2' must be None or one of paper, got 'full'"),
        ("survset:gbsg2", None, "got 'gbsg2'; close ones: GBSG2"),
        ("survset:ova", "paper", "variant of 'survset:ova' must be None or one of raw"),
        ("mgus2", "paper", "variant of 'mgus2' must be None, as there is no other, got 'paper'"),
    ],
)
def test_unknown_names_and_variants_are_named(name, variant, match):
    with pytest.raises(InvalidParameterError, match=match):
        load_dataset(name, variant)
