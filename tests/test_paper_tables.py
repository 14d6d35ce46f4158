"""What the scripts of papers `surtree`, `gosdt` and `streed` compute beside the searches, and their printed figures."""

import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"

COSTS = """0 70 90
40 0 30
60 80 0
Attribute-name test-cost discount group binarize-begin binarize-end
a 2.5 1.0 g 0 1
b 1.5 1.0 g 2 2
c 3.0 3.0 x 3 4
"""
"""Three classes; tests a and b share their preparation, so that the second of them is cheaper."""


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    yield
    for name in [name for name in sys.modules if name.startswith(("_gosdt", "_streed", "_surtree", "_tasks"))]:
        del sys.modules[name]


def test_a_number_gets_a_column_between_any_two_of_its_values_and_a_missing_one_is_below_all():
    from _gosdt_paper import between

    values = np.array([3.0, 1.0, np.nan, 7.0, 3.0])
    assert between(values).tolist() == [[1, 0], [0, 0], [0, 0], [1, 1], [1, 0]]
    assert between(np.array([4, 4])).shape == (2, 0)


def test_costs_of_the_training_rows_are_the_objective_of_the_search(tmp_path):
    """`total_cost` walks the rows down the tree; the search adds up its sums."""
    from _streed_paper import total_cost, trees
    from _tasks import coded, costs_of

    from softsurv.exact.objectives import label_costs
    from softsurv.exact.search import Search

    file = tmp_path / "costs.csv"
    file.write_text(COSTS)
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (60, 5))
    y = (2 * X[:, 0] + X[:, 3] + (rng.random(60) < 0.1)).clip(0, 2)
    matrix, price = costs_of(file, 5, len(y))
    search = Search(label_costs.TASK, *coded(X), label_costs.from_matrix(y, matrix), split_costs=price)
    found = [total_cost(tree, (X, y), file) for tree in trees((X, y), file)]
    assert found == pytest.approx([search.solve(depth).report.objective for depth in range(5)])
    assert found[0] > found[-1]


def test_standard_cost_is_all_tests_and_the_dearest_mistake_on_the_rows_that_are_not_of_the_largest_class(tmp_path):
    """All tests together, so that the second of a group has its lower price, as pystreed scores it."""
    from _streed_paper import standard_cost

    file = tmp_path / "costs.csv"
    file.write_text(COSTS)
    rows = np.zeros((4, 5), int), np.array([0, 0, 0, 2])
    assert standard_cost(rows, file) == pytest.approx(2.5 + 1.0 + 3.0 + 0.25 * 90)


@pytest.mark.parametrize(("objective", "status", "said"), [(0.06, "optimal", "yes"), (0.0601, "optimal", "")])
def test_a_deeper_tree_pays_for_twelve_leaves(objective, status, said):
    from _gosdt_parts import any_depth

    assert any_depth({"objective": objective, "status": status}, 0.005) == said


def test_every_set_of_the_surtree_paper_has_its_figures():
    from _surtree_printed import FIGURE_4, LATER_TABLE, TABLE_1, TUNED_SECONDS

    assert len(TABLE_1) == 15
    assert set(LATER_TABLE) == set(TABLE_1) == set(TUNED_SECONDS[3]) == set(TUNED_SECONDS[4])
    assert {depth for by_depth in FIGURE_4.values() for depth in by_depth} == {2, 3, 4, 5}


def test_every_set_of_the_streed_paper_has_its_figures():
    from _streed_printed import ACCURACY_SECONDS, COSTS, COSTS_BY_LEVEL, FAIR_SECONDS, PRINTED_SECONDS

    assert set(COSTS) == set(COSTS_BY_LEVEL)
    assert [len(table) for table in (COSTS, FAIR_SECONDS, ACCURACY_SECONDS)] == [15, 12, 22]
    for name, seconds in PRINTED_SECONDS["accuracy", 4].items():
        twice = {key.lower(): line.seconds[0][-1] for key, line in ACCURACY_SECONDS.items()}
        assert seconds == twice[name]
