"""Typical rows: of leaves against a plain loop over values and levels, and in the data's units."""

import numpy as np
import pytest
from oracles.encoded import COLUMNS, SOURCES

from softsurv.data.encoding import OutputColumn, Source
from softsurv.trees import typical_rows as module
from softsurv.trees.typical_rows import as_words, in_units, typical_row, typical_rows

USUAL = np.array([0.64, 1.0, 0.0, 0.0])


def rows(n, seed):
    """Ages with two digits, levels of a grade, marks of missing ages, and leaves."""
    rng = np.random.default_rng(seed)
    age, grade, gone = rng.integers(20, 71, n), rng.integers(0, 3, n), rng.random(n) < 0.4
    return np.column_stack([(age - 20) / 50, grade == 1, grade == 2, gone]), rng.integers(0, 4, n), age, grade


def test_a_typical_row_has_means_and_most_frequent_levels():
    typical = typical_row(COLUMNS, SOURCES, None)
    assert typical.tolist() == [pytest.approx(0.64), 1, 0, 0]
    without = [Source("age", None, None), Source("grade", ("I", "II", "III"), None)]
    assert typical_row(COLUMNS, without, None).tolist() == [0.5, 0, 0, 0]
    assert typical_row(COLUMNS, without, np.array([0.1, 0, 0, 0]))[0] == 0.1


@pytest.mark.parametrize("weighted", [False, True])
def test_the_row_of_a_leaf_is_that_of_its_sorted_values_and_counted_levels(weighted):
    x, leaf, age, grade = rows(300, 0)
    copies = np.random.default_rng(1).integers(1, 4, 300) if weighted else np.ones(300, int)
    found = typical_rows(x, leaf, copies.astype(float) if weighted else None, COLUMNS, SOURCES, USUAL, 4)
    for k in range(4):
        at = np.repeat(np.flatnonzero(leaf == k), copies[leaf == k])  # a row of weight w counts as w rows
        assert found[k, 0] * 50 + 20 == pytest.approx(sorted(age[at])[(len(at) - 1) // 2])
        most = np.bincount(grade[at], minlength=3).argmax()
        assert found[k, 1:3].tolist() == [most == 1, most == 2]
        assert found[k, 3] == sorted(x[at, 3])[(len(at) - 1) // 2]


def test_a_leaf_without_rows_has_the_usual_one_and_ties_go_to_the_first_level():
    x, leaf, *_ = rows(40, 2)
    assert typical_rows(x, leaf, None, COLUMNS, SOURCES, USUAL, 6)[4:].tolist() == [USUAL.tolist()] * 2
    x = np.array([[0.1, 0.0, 1.0, 0.0], [0.3, 0.0, 0.0, 0.0], [0.2, 1.0, 0.0, 0.0]])
    found = typical_rows(x, np.zeros(3, int), None, COLUMNS, SOURCES, USUAL, 1)
    assert found.tolist() == [[pytest.approx(0.2), 0, 0, 0]]  # I, which has no column
    found = typical_rows(x[[0, 2]], np.zeros(2, int), None, COLUMNS, SOURCES, USUAL, 1)
    assert found[0].tolist() == [pytest.approx(0.1), 1, 0, 0]


def test_medians_are_rounded_to_a_thousandth_of_the_range_or_less():
    """A median is the value of a training row; a model keeps none of those."""
    rng = np.random.default_rng(4)
    columns = [
        OutputColumn(name, name, "number", offset=5.0, scale=scale) for name, scale in [("a", 40.0), ("b", 3e-5)]
    ]
    x = rng.random((201, 2))
    found = typical_rows(x, np.zeros(201, int), None, columns, [], np.zeros(2), 1)[0]
    assert not np.isin(found, x).any()
    np.testing.assert_allclose(found, np.median(x, axis=0), atol=5e-4)
    assert in_units(found[None], columns, []).iloc[0].tolist() == [
        pytest.approx(round(5.0 + 40.0 * np.median(x[:, 0]), 2), abs=1e-12),
        pytest.approx(round(5.0 + 3e-5 * np.median(x[:, 1]), 8), abs=1e-12),
    ]


def test_of_many_rows_some_are_looked_at_evenly(monkeypatch):
    monkeypatch.setattr(module, "MANY_ROWS", 100)
    x, leaf, *_ = rows(4000, 3)
    x = x[np.argsort(x[:, 0])]
    every = np.median(x[leaf == 1, 0])
    assert typical_rows(x, leaf, None, COLUMNS, SOURCES, USUAL, 4)[1, 0] == pytest.approx(every, abs=0.03)


def test_rows_are_told_in_the_units_of_the_data():
    typical = np.array([[0.66, 0, 1, 0], [0.1 + 0.2, 0, 0, 1]])
    frame = in_units(typical, COLUMNS, SOURCES)
    assert frame.to_dict("list") == {"age": [53.0, 35.0], "grade": ["III", "I"]}
    assert as_words(frame).loc["age"].tolist() == ["53", "35"]
    odd = in_units(np.array([[1.0]]), [OutputColumn("g=<2", "g", "level", "<2")], [Source("g", ("<2", "3"), None)])
    assert as_words(odd).loc["g"].tolist() == ['"<2"']
    assert in_units(np.zeros((2, 0)), [], []).shape == (2, 0)
