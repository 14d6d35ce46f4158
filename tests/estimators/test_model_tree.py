"""OptimalModelTree: an exact tree of corrections to one regression, refitted."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
import torch
from oracles.enumeration import least_objective
from oracles.printed_tree import PrintedTree
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sksurv.util import Surv

from softsurv import OptimalModelTree, SoftSurvivalTree, load_model, survival_data
from softsurv.errors import InvalidParameterError
from softsurv.estimators import model_tree
from softsurv.estimators.soft.tree import encoded_rows
from softsurv.exact.memory import Room
from softsurv.exact.objectives import corrections
from softsurv.results import Status
from softsurv.sparse import exact
from softsurv.sparse.start import Bins
from softsurv.stopping import GRACE_SECONDS, StopSignal
from softsurv.trees.linear_rule import LinearRule


def _rows(n=400, seed=0):
    """A number with a slope in all rows, and a group of another level and shape by a number and a category."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "slope": rng.normal(size=n).round(2),
            "size": rng.normal(size=n).round(2),
            "site": rng.choice(["a", "b", "c", "d"], n),
        }
    )
    late = (X["size"] > 0.3) & X["site"].isin(["a", "c"])
    shape, scale = np.where(late, 3.0, 1.0), np.where(late, 9.0, 3.0)
    time = scale * (rng.exponential(size=n) * np.exp(-0.7 * X["slope"])) ** (1 / shape) + 0.01
    censoring = rng.exponential(20.0, n) + 0.01
    return X, Surv.from_arrays(time <= censoring, np.minimum(time, censoring)), late.to_numpy()


@pytest.fixture(scope="module")
def rows():
    return _rows()


@pytest.fixture(scope="module")
def tree(rows):
    return OptimalModelTree(max_depth=2).fit(*rows[:2])


def test_a_planted_tree_is_found(tree, rows):
    X, _, late = rows
    assert tree.status_ == Status.OPTIMAL
    assert tree.gap_ == 0
    leaf = tree.apply(X)
    purity = pd.crosstab(leaf, late).max(axis=1).sum() / len(late)
    assert purity > 0.97
    assert "site in {a, c}" in tree.export_text() or "site in {b, d}" in tree.export_text()


def test_the_printed_tree_is_the_tree(tree, rows):
    X = rows[0]
    printed = PrintedTree(tree.export_text(), X.columns)
    assert [printed.leaf(row) for row in X.to_dict("records")] == tree.apply(X).tolist()


def test_the_leaves_are_refitted(tree, rows):
    X, y, _ = rows
    one = OptimalModelTree(max_depth=0).fit(X, y)
    assert one.apply(X).max() == 0
    assert tree.report_.objective < one.report_.objective
    assert tree.objective_ < one.objective_
    new_X, new_y, _ = _rows(seed=1)
    assert tree.log_likelihood(new_X, new_y).mean() > one.log_likelihood(new_X, new_y).mean() + 0.05


def test_slopes_are_shared_or_own(tree, rows):
    X, y, _ = rows
    own = OptimalModelTree(max_depth=2, slopes="own", slope_shrinkage=0.1).fit(X, y)
    q = tree.tree_.n_features
    used = torch.as_tensor(tree.tree_.used_leaves)
    shared = tree.tree_.leaves[0, used, 1 : q + 1]
    torch.testing.assert_close(shared, shared[:1].expand_as(shared))
    mine = own.tree_.leaves[0, torch.as_tensor(own.tree_.used_leaves), 1 : q + 1]
    assert (mine - mine[:1]).abs().max() > 0.01
    assert own.objective_ == pytest.approx(tree.objective_)


def test_it_answers_as_a_soft_tree_does(tree, rows, tmp_path):
    X, y, _ = rows
    assert isinstance(clone(tree), OptimalModelTree)
    curves = tree.predict_survival_function(X.head(7), times=[0.5, 2.0, 8.0])
    assert curves.shape == (7, 3)
    assert (np.diff(curves, axis=1) < 0).all()
    assert tree.evaluate(X, y)["harrell_c"] > 0.65
    assert set(tree.summary().leaves.index) == set(range(len(tree.tree_.used_leaves)))
    tree.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.search_report_ == tree.search_report_
    np.testing.assert_array_equal(again.predict(X), tree.predict(X))


def test_the_search_is_exact_over_its_cuts():
    rng = np.random.default_rng(3)
    n = 30
    codes = rng.integers(0, 4, (2, n)).astype(np.int16)
    rules = tuple(tuple(LinearRule((f,), (1.0,), c + 0.5) for c in range(3)) for f in range(2))
    bins = Bins(codes, np.array([4, 4]), rules)
    g, h = rng.normal(size=(n, 2)), np.abs(rng.normal(size=(n, 3)))
    table = np.column_stack([g, h[:, 0] + 0.5, h[:, 1], h[:, 2] + 0.5])
    limits = exact.ExactSettings(3, 5, 3.0, 0.2, 10, 0.3, 2.0, None, 1e8, 1)
    found, report = exact.search_rules(bins, table, np.ones(n), limits, 0.2, StopSignal(60.0), Room(1e9))
    scaled = corrections.statistics(table, 2.0)
    nominal, none = np.zeros(2, bool), np.zeros(n)
    least = least_objective(corrections.TASK, codes.T, nominal, scaled, none, 3, 5, min_leaf=3, complexity=0.2)
    assert report.objective == pytest.approx(least)
    leaf = exact.leaves_of([found], exact.split_data(codes.T.astype(float), _columns(2)))[0].numpy()
    sums = np.array([scaled[leaf == k].sum(axis=0) for k in np.unique(leaf)])
    assert corrections.TASK.costs(sums).sum() + 0.2 * len(sums) == pytest.approx(least)


def _columns(n):
    from softsurv.data.encoding import OutputColumn

    return [OutputColumn(f"x{k}", f"x{k}", "number") for k in range(n)]


def test_competing_causes(rows):
    X, y, _ = rows
    cause = np.where(y["event"], 1 + (np.arange(len(X)) % 3 == 0), 0)
    found = OptimalModelTree(max_depth=1, complexity=0.0).fit(X, time=y["time"], cause=cause)
    incidence = found.predict_cumulative_incidence(X.head(4), times=[2.0, 8.0])
    assert incidence.shape == (4, 2, 2)
    assert found.status_ == Status.OPTIMAL


def test_recurrent_events_as_columns_or_as_data(rows):
    X, y, _ = rows
    twice, none = pd.concat([X, X], ignore_index=True), np.zeros(len(X))
    spells = {"start": np.append(none, y["time"] / 2), "stop": np.append(y["time"] / 2, y["time"])}
    columns = spells | {"id": np.tile(np.arange(len(X)), 2), "event": np.tile(y["event"], 2), "recurrent": True}
    one, same = (OptimalModelTree(max_depth=1, complexity=0.0) for _ in range(2))
    one.fit(twice, **columns)
    same.fit(survival_data(twice, **columns))
    np.testing.assert_array_equal(one.predict_mean_count(X, [1.0, 4.0]), same.predict_mean_count(X, [1.0, 4.0]))


def look_at_limits_of_leaves(monkeypatch, see):
    """Call ``see`` with the time limit of each fit of leaves, before the fit."""
    fit_causes = exact.fit_causes

    def leaves(*order, budget):
        see(budget)
        return fit_causes(*order, budget=budget)

    monkeypatch.setattr(exact, "fit_causes", leaves)


def test_the_leaves_leave_time_for_describing_them(rows, monkeypatch):
    """Their fit ends before the time limit does; where it was cut off, the fit as a whole says so."""
    X, y, _ = rows
    deadlines, fit_exact = [], model_tree.fit_exact

    def whole(*order):
        deadlines.append(order[-1].deadline)
        return fit_exact(*order)

    def see(budget):
        deadlines.append(budget.deadline)
        budget.end_unless(np.inf)

    monkeypatch.setattr(model_tree, "fit_exact", whole)
    look_at_limits_of_leaves(monkeypatch, see)
    with pytest.warns(ConvergenceWarning, match="the fit of the regressions ended at its time limit.*raise time_limit"):
        found = OptimalModelTree(max_depth=1, time_limit=1000.0).fit(X, y)
    limit, *ends = deadlines
    assert len(ends) == 2
    assert max(ends[0] - GRACE_SECONDS, ends[1]) < limit
    assert found.report_.status == Status.TIME_LIMIT


def test_a_search_that_takes_all_its_time_leaves_some_for_the_leaves(rows, monkeypatch):
    """Where reading took longer than one regression, what was kept for describing the leaves was all there was."""
    X, y, _ = rows
    ends, search = [], exact.search_rules

    def searched(*order):
        ends.append(order[-2].deadline)
        return search(*order)

    def slowly(*order):
        time.sleep(0.5)
        return encoded_rows(*order)

    monkeypatch.setattr(model_tree, "encoded_rows", slowly)
    monkeypatch.setattr(exact, "search_rules", searched)
    look_at_limits_of_leaves(monkeypatch, lambda budget: ends.append(budget.deadline))
    OptimalModelTree(max_depth=1, time_limit=1000.0).fit(X, y)
    assert ends[2] - ends[1] > 1.0


def test_leaves_that_are_not_fitted_are_the_one_regression(rows, monkeypatch):
    """They were one curve, of a time that no row lived."""
    X, y, _ = rows
    one = OptimalModelTree(max_depth=0).fit(X, y)
    fit_causes = exact.fit_causes

    def without_time(problems, leaf, n_leaves, *order, budget):
        if n_leaves > 1:
            budget.end_unless(np.inf)
        return fit_causes(problems, leaf, n_leaves, *order, budget=budget)

    monkeypatch.setattr(exact, "fit_causes", without_time)
    with pytest.warns(ConvergenceWarning, match="the fit of the regressions ended at its time limit"):
        cut = OptimalModelTree(max_depth=1, complexity=0.0, time_limit=1000.0).fit(X, y)
    assert cut.apply(X).max() == 1
    np.testing.assert_allclose(cut.predict_median(X), one.predict_median(X), rtol=1e-4)


def test_the_penalty_of_slopes_knows_how_many_columns_there_are():
    """With 0.3 for a thousand of them every row was fitted, and held-out curves were worse than one for all rows."""
    rng = np.random.default_rng(0)
    genes, n = rng.normal(size=(160, 1000)), 160
    y = Surv.from_arrays(rng.random(n) < 0.8, rng.exponential(np.exp(0.3 * genes[:, 0])) + 0.01)
    train, test = slice(0, 100), slice(100, n)
    tree = OptimalModelTree(max_depth=1).fit(genes[train], y[train])
    flat = OptimalModelTree(max_depth=0, l2=1e9).fit(genes[train], y[train])
    assert tree.candidate_.ridge > 20
    scores = [one.evaluate(genes[test], y[test])["ibs"] for one in (tree, flat)]
    assert scores[0] < scores[1] + 0.02
    assert OptimalModelTree(max_depth=0, l2=0.3).fit(genes[train], y[train]).candidate_.ridge == 0.3


def test_a_finished_search_does_not_hide_a_regression_that_was_cut_off(rows):
    """The search for corrections to it was proven optimal, and nothing was said."""
    X, y, _ = rows
    with pytest.warns(ConvergenceWarning, match="the fit of the regressions ended at its time limit"):
        found = OptimalModelTree(max_depth=1, time_limit=1e-9).fit(X, y)
    assert (found.status_, found.report_.status) == (Status.OPTIMAL, Status.TIME_LIMIT)


def test_no_time_at_all_still_gives_fitted_regressions(rows):
    X, y, _ = rows
    whole = OptimalModelTree(max_depth=0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        cut = OptimalModelTree(max_depth=0, time_limit=0.0).fit(X, y)
    np.testing.assert_allclose(cut.predict_median(X), whole.predict_median(X), rtol=1e-3)


def test_ctrl_c_before_the_search_ends_the_search_as_well(rows, monkeypatch):
    """It went on until its time limit."""
    X, y, _ = rows
    looked = []

    def early(*order):
        *_, search, fits = order
        assert not search.exhausted
        fits.interrupted = True
        looked.append(search.status)
        return fit_exact(*order)

    fit_exact = model_tree.fit_exact
    monkeypatch.setattr(model_tree, "fit_exact", early)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        OptimalModelTree(max_depth=1).fit(X, y)
    assert looked == [Status.INTERRUPTED]


def test_a_search_that_is_cut_off_says_so(rows):
    X, y, _ = rows
    with pytest.warns(ConvergenceWarning, match="time limit"):
        found = OptimalModelTree(max_depth=6, thresholds=60, time_limit=0.0).fit(X, y)
    assert found.lower_bound_ <= found.objective_
    assert found.status_ == Status.TIME_LIMIT


@pytest.mark.parametrize(
    ("argument", "value", "said"),
    [
        ("slopes", "some", "slopes must be"),
        ("shrinkage", 0.0, "shrinkage must be > 0"),
        ("max_depth", 11, "max_depth must be an integer from 0 to 10"),
        ("complexity", "aic", "complexity must be"),
        ("thresholds", 0, "thresholds must be"),
    ],
)
def test_arguments_are_checked(rows, argument, value, said):
    with pytest.raises(InvalidParameterError, match=said):
        OptimalModelTree(**{argument: value}).fit(*rows[:2])


def test_a_soft_tree_of_one_leaf_is_the_same_regression(rows):
    X, y, _ = rows
    one = OptimalModelTree(max_depth=0).fit(X, y)
    soft = SoftSurvivalTree(depth=0, leaf="weibull", l2=0.3).fit(X, y)
    np.testing.assert_allclose(one.predict_median(X), soft.predict_median(X), rtol=1e-3)


def test_one_leaf_says_why(rows):
    X, y, _ = rows
    text = OptimalModelTree(max_depth=2, complexity=1e3).fit(X, y).export_text()
    assert "One weibull regression for all rows: no split that leaves 10 events on each side gains the 1e+03" in text
    assert "max_depth or max_leaves asks for it" in OptimalModelTree(max_depth=0).fit(X, y).export_text()


def test_leaves_print_the_median_that_they_predict(tree, rows):
    table = tree.leaf_table_
    curve = tree.predict_survival_function(rows[0][tree.apply(rows[0]) == 0], [table.predicted[0]])
    assert curve.mean() == pytest.approx(0.5, abs=1e-6)
    assert "predicted median" in tree.export_text()


def test_what_is_compiled_is_no_part_of_the_time_limit(rows, monkeypatch):
    """On a machine where nothing was compiled, a small limit ended in a tree of no split."""
    compile_, compiling = model_tree.ready, []

    def slow(*given, **how):
        begin = time.monotonic()
        time.sleep(0.5)
        compile_(*given, **how)
        compiling.append(time.monotonic() - begin)

    monkeypatch.setattr(model_tree, "ready", slow)
    X, y, _ = rows
    begin = time.monotonic()
    tree = OptimalModelTree(max_depth=1, time_limit=30.0).fit(X, y)
    assert tree.report_.seconds <= time.monotonic() - begin - sum(compiling)
    assert tree.status_ == Status.OPTIMAL


@pytest.mark.parametrize("unit", [2.0**-12, 1000.0])
def test_the_unit_of_the_weights_changes_no_tree(rows, unit):
    """The cost of a leaf, its least events and its shrinkage are numbers of subjects."""
    X, y, _ = rows
    weight = np.random.default_rng(1).integers(1, 4, len(X)).astype(float)
    tree, same = (OptimalModelTree(max_depth=2).fit(X, y, sample_weight=one) for one in (weight, unit * weight))
    assert same.apply(X).max() > 0
    assert same.objective_ == pytest.approx(tree.objective_, rel=1e-6)
    np.testing.assert_allclose(same.predict(X), tree.predict(X), rtol=1e-4, atol=1e-4)
