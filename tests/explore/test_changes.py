"""What would have to change for a row to reach another leaf: it does so, and nothing smaller does."""

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import DataWarning, InvalidSurvivalDataError
from softsurv.explore import crossings


def test_a_crossing_leads_where_it_says(mixed):
    found = 0
    for k in range(0, mixed.data.n, 30):
        row = mixed.data.X.iloc[[k]]
        for change in crossings(mixed.tree, row).itertuples():
            moved = row.assign(**{change.feature: [change.needed]})
            assert mixed.tree.apply(moved)[0] == change.leaf != mixed.tree.apply(row)[0]
            found += 1
    assert found > 5


def test_no_smaller_change_of_a_number_crosses(mixed):
    row = mixed.data.X.iloc[[11]]
    home = mixed.tree.apply(row)[0]
    table = crossings(mixed.tree, row).set_index("feature")
    span = np.linspace(mixed.data.X["age"].min(), mixed.data.X["age"].max(), 4001)
    tried = row.loc[row.index.repeat(span.size)].assign(age=span)
    away = span[mixed.tree.apply(tried) != home]
    if away.size == 0:
        assert "age" not in table.index
        return
    nearest = np.abs(away - row["age"].iloc[0]).min()
    assert abs(table.loc["age", "needed"] - row["age"].iloc[0]) == pytest.approx(nearest, abs=span[1] - span[0])


def test_an_optimal_tree_needs_no_data_for_its_crossings(uneven):
    wide, narrow = [
        {
            (c.feature, c.leaf)
            for k in (3, 50)
            for c in crossings(uneven.tree, uneven.data.X.iloc[[k]], *more).itertuples()
        }
        for more in ((uneven.data,), ())
    ]
    assert narrow == wide
    assert narrow


def test_crossings_of_an_optimal_tree(uneven):
    found = 0
    for k in range(0, uneven.data.n, 40):
        row = uneven.data.X.iloc[[k]]
        for change in crossings(uneven.tree, row, uneven.data).itertuples():
            moved = row.assign(**{change.feature: [change.needed]})
            assert uneven.tree.apply(moved)[0] == change.leaf != uneven.tree.apply(row)[0]
            found += 1
    assert found > 3


def test_a_whole_number_crosses_at_a_whole_number(ruled):
    tree = ruled[1]
    row = pd.DataFrame({"age": [50.0], "grade": ["I"]})
    found = crossings(tree, row).set_index("feature")
    assert set(found.index) == {"age", "grade"}
    needed = found.loc["age", "needed"]
    assert needed == round(needed)
    assert tree.apply(row.assign(age=needed))[0] == found.loc["age", "leaf"]
    assert tree.apply(row.assign(age=needed - np.sign(needed - 50)))[0] == tree.apply(row)[0]


def test_no_nearer_whole_number_crosses(ruled):
    """At a threshold such as 42 a larger number need only fall to 42, where the rule does not hold."""
    tree, sides = ruled[1], set()
    ages = np.arange(20.0, 90.0)
    for age in ages:
        row = pd.DataFrame({"age": [age], "grade": ["I"]})
        leaves = tree.apply(pd.DataFrame({"age": ages, "grade": "I"}))
        other = ages[leaves != tree.apply(row)[0]]
        found = crossings(tree, row).set_index("feature")
        if "age" in found.index:
            needed = found.loc["age", "needed"]
            assert abs(needed - age) == np.abs(other - age).min()
            sides.add(np.sign(needed - age))
    assert sides == {-1.0, 1.0}


def test_a_row_of_a_single_leaf_crosses_nowhere(stump):
    assert crossings(stump.tree, stump.data.X.iloc[[0]]).empty


def test_a_missing_number_has_no_smallest_change(uneven):
    row = uneven.data.X.iloc[[5]].assign(age=np.nan, marker=np.nan)
    with pytest.warns(DataWarning, match="none missing in training: 'age'"):
        assert not {"age", "marker"} & set(crossings(uneven.tree, row, uneven.data)["feature"])


def test_the_nearest_comes_first_in_shares_of_the_range(mixed):
    for k in (0, 40, 80):
        table = crossings(mixed.tree, mixed.data.X.iloc[[k]])
        assert table["effort"].is_monotonic_increasing
        for change in table.itertuples():
            column = mixed.data.X[change.feature]
            if isinstance(change.needed, str):
                assert change.effort == 1.0
            else:
                share = abs(change.needed - change.current) / (column.max() - column.min())
                assert change.effort == pytest.approx(share)
                assert column.min() <= change.needed <= column.max()


@pytest.mark.parametrize("form", [lambda d: d, lambda d: d.X, lambda d: (d.X, d.y), lambda d: d.X.to_dict("list")])
def test_ranges_come_from_every_form_of_a_table(uneven, form):
    row = uneven.data.X.iloc[[0]]
    expected = crossings(uneven.tree, row, uneven.data)
    pd.testing.assert_frame_equal(crossings(uneven.tree, row, form(uneven.data)), expected)
    with pytest.raises(InvalidSurvivalDataError, match="X must be two-dimensional"):
        crossings(uneven.tree, row, 3)


def test_columns_without_names_are_taken_by_position(uneven):
    """They widened no range, as if no data were given."""
    row, X = uneven.data.X.iloc[[0]], uneven.data.X
    expected = crossings(uneven.tree, row, uneven.data)
    assert not expected.equals(crossings(uneven.tree, row))
    with pytest.warns(DataWarning, match="taken by position"):
        found = crossings(uneven.tree, row, X.to_numpy(dtype=object))
    pd.testing.assert_frame_equal(found, expected)
    with pytest.raises(InvalidSurvivalDataError, match=f"X must have {X.shape[1]} features"):
        crossings(uneven.tree, row, X.to_numpy(dtype=object)[:, 1:])


def test_a_feature_may_be_called_self():
    """pandas' own argument of assign has this name."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"self": rng.normal(size=100)})
    time = rng.exponential(np.where(X["self"] > 0, 0.2, 2.0))
    tree = OptimalSurvivalTree(max_depth=1).fit(SurvivalData(X, time, np.ones(100, dtype=bool)))
    assert crossings(tree, X.iloc[[0]], X)["feature"].tolist() == ["self"]
