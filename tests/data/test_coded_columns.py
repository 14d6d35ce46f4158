"""Codes and answers of many columns at once, against those of each column alone."""

import numpy as np
import pytest

from softsurv.data import blocks, coded_columns
from softsurv.data.coded_columns import FEW_CUTS, CodedColumn, answers, codes_by_cuts, routed

RNG = np.random.default_rng(5)
N = 30
COLUMNS = [
    CodedColumn("a", (0.5,)),
    CodedColumn("b", (0.2, 0.5, 0.9)),
    CodedColumn("none"),
    CodedColumn("c", (0.1, 0.4, 0.9)),
    CodedColumn("many", tuple(np.linspace(0, 1, FEW_CUTS + 1))),
    CodedColumn("level", levels=("u", "v", "w")),
    CodedColumn("other", levels=("u", "v"), other=True),
    CodedColumn("order", levels=("v", "u", "w"), ordered=True),
    *routed(CodedColumn("gaps", (0.2, 0.6)), 5, N, 1),
    *routed(CodedColumn("holes", levels=("u", "v", "w")), 5, N, 1),
]


@pytest.fixture
def table():
    numbers = {name: RNG.integers(0, 11, N) / 10 for name in ("a", "b", "none", "c", "many", "gaps")}
    numbers["gaps"][:5] = np.nan
    levels = {name: RNG.choice(["u", "v", "w"], N).astype(object) for name in ("level", "other", "order", "holes")}
    levels["holes"][5:10] = None
    return numbers | levels


@pytest.mark.parametrize("cells", [1, 2 * N, 1 << 20])
def test_codes_of_a_block_are_those_of_its_columns(table, cells, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_CELLS", cells)
    monkeypatch.setattr(coded_columns, "FEW_ROWS", 0)
    found = np.full((len(COLUMNS), N), -1, dtype=np.int32)
    rest = codes_by_cuts(COLUMNS, table, found)
    assert rest == [k for k, column in enumerate(COLUMNS) if column.levels or column.missing or column.name == "many"]
    for k, column in enumerate(COLUMNS):
        right = np.full(N, -1) if k in rest else column.codes(table[column.name])
        np.testing.assert_array_equal(found[k], right)


def test_few_columns_of_few_rows_are_searched_one_by_one(table):
    found = np.full((len(COLUMNS), N), -1, dtype=np.int32)
    rest = codes_by_cuts(COLUMNS, table, found)
    left = {COLUMNS[k].name for k in rest}
    assert {"a", "b", "c"} <= left
    assert "none" not in left


@pytest.mark.parametrize("cells", [1, 2 * N, 1 << 20])
def test_answers_are_those_of_the_rules(table, cells, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_CELLS", cells)
    codes = np.stack([column.codes(table[column.name]) for column in COLUMNS])
    found = answers(COLUMNS, codes, routes=True)
    asked = [(f, code) for f, column in enumerate(COLUMNS) for code in column.splits]
    assert found.shape == (len(asked), N)
    for yes, (f, code) in zip(found, asked, strict=True):
        _, swapped = COLUMNS[f].rule(f, code, routes=True)
        of_code = codes[f] == code if COLUMNS[f].nominal else codes[f] <= code
        np.testing.assert_array_equal(yes, of_code != swapped)


@pytest.mark.parametrize("least", [1, N])  # whether "is missing" is a split of its own
@pytest.mark.parametrize("levels", [("u",), ("u", "v"), ("u", "v", "w")])
def test_the_rule_of_every_code_divides_the_rows_as_the_code_does(table, levels, least):
    values = table["holes"]
    column = CodedColumn("holes", levels=levels, other=len(levels) < 3)
    for one in routed(column, 5, N, least):
        codes = one.codes(values)
        for code in range(one.n_codes):  # a search may take the last one, too
            rule, swapped = one.rule(0, code, routes=True)
            np.testing.assert_array_equal(rule.answers(values) != swapped, codes == code, err_msg=f"{one}, {code}")


def test_nothing_has_no_answers():
    assert answers([], np.empty((0, 4), dtype=np.int32), routes=False).shape == (0, 4)
