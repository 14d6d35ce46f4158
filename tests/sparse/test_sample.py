"""Settings compared on a sample of many rows: what the sample keeps, and that the tree is that of all rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from softsurv import SoftSurvivalTree, load_model
from softsurv.data.readers import survival_data
from softsurv.errors import InvalidParameterError
from softsurv.hazards import get_family
from softsurv.soft.parallel import Machine
from softsurv.sparse.causes import fit_causes
from softsurv.sparse.choose import try_all
from softsurv.sparse.folds import Grid
from softsurv.sparse.prefer import best_of
from softsurv.sparse.sample import CHOICE_CELLS, CHOICE_ROWS, EVENT_SHARE, FEWEST_ROWS, on_all_rows, to_choose_on
from softsurv.sparse.splits import SplitData
from softsurv.sparse.train import leaves_of, penalties_of

ROWS = 4000


def table(n=ROWS, censored=2.0, seed=0):
    """A cut of x0 at 0.3 with a hazard ratio of six; features, event and time."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.normal(size=(n, 3)), columns=["x0", "x1", "x2"])
    time = random.weibull(1.5, n) * np.where(X["x0"] > 0.3, 0.3, 1.0)
    late = random.exponential(censored, n)
    return X, time <= late, np.minimum(time, late)


@pytest.fixture(scope="module")
def data():
    X, event, time = table()
    return survival_data(X, time=time, event=event)


@pytest.fixture(scope="module")
def fitted():
    X, event, time = table()
    return SoftSurvivalTree(choice_rows=1000, max_terms=1, leaf="weibull").fit(X, (event, time))


def test_a_sample_has_the_rows_and_the_share_of_events_that_were_asked_for(data):
    some = to_choose_on(data, 1000, 0)
    assert some.n == 1000
    assert some.failed.mean() == pytest.approx(data.failed.mean(), abs=1e-3)
    assert len(np.unique(some.time)) == 1000  # each row once


def test_few_rows_are_all_taken(data):
    assert to_choose_on(data, None, 0) is data
    assert to_choose_on(data, 4000, 0) is data
    assert to_choose_on(data, 3500, 0) is data  # nearly all
    assert to_choose_on(data, 1_000_000, 0) is data


def test_by_default_fewer_rows_are_compared_on_where_features_are_many(data):
    many = data.take(np.tile(np.arange(ROWS), 8))
    assert to_choose_on(many, "auto", 0).n == CHOICE_ROWS
    wide = pd.DataFrame(np.tile(many.x.numpy(), (1, 20)), columns=[f"x{k}" for k in range(60)])
    assert to_choose_on(many.with_features(wide), "auto", 0).n == CHOICE_CELLS // 60
    wider = pd.concat([wide.add_prefix(f"{k}_") for k in range(3)], axis=1)
    assert to_choose_on(many.with_features(wider), "auto", 0).n == FEWEST_ROWS


def test_where_events_are_rare_the_sample_is_larger():
    X, event, time = table(20_000, censored=0.04)
    rare = survival_data(X, time=time, event=event)
    assert 0.02 < rare.failed.mean() < 0.15
    some = to_choose_on(rare, 1000, 0)
    assert some.n > 1300
    assert some.failed.sum() == pytest.approx(EVENT_SHARE * 1000, abs=1)


def test_subjects_are_whole():
    X, event, time = table(1000)
    twice = pd.concat([X, X], ignore_index=True)
    middle = time / 2
    rows = survival_data(
        twice,
        start=np.append(np.zeros(1000), middle),
        stop=np.append(middle, time),
        event=np.append(np.zeros(1000, bool), event),
        id=np.tile(np.arange(1000), 2),
    )
    some = to_choose_on(rows, 1000, 0)
    assert some.n == 1000
    assert (np.unique(some.subject, return_counts=True)[1] == 2).all()


def test_the_rules_of_the_sample_are_improved_on_all_rows(data):
    grid = Grid(leaves=(1, 2, 3), more_leaves=(), terms=(1,), shrinkage=((10.0, None), (40.0, None)), ridges=(0.1,))
    family, machine = get_family("weibull"), Machine(torch.device("cpu"))
    some = to_choose_on(data, 1000, 0)
    tried = try_all(some, as_given(some), [[family]], grid, 0, machine)
    best = best_of([trial for trial in tried.trials if trial.rules])
    found, problems, _ = on_all_rows(best, data, as_given(data), [family], grid, machine)
    assert problems[0].design.shape[-2] == data.n
    assert found.candidate == best.candidate
    assert found.rules[0].columns == (0,)
    assert abs(found.rules[0].threshold - 0.3) <= abs(best.rules[0].threshold - 0.3)

    def loss(rules):
        """Penalised loss of all rows, the leaves fitted to the end."""
        leaf, penalties = leaves_of([rules], as_given(data)), penalties_of(np.array([data.n]), 0.1, 10.0, None)
        return float(fit_causes(problems, leaf, len(rules) + 1, penalties)[1][0])

    assert loss(found.rules) <= loss(best.rules)


def as_given(data):
    """Columns that are in their own units already."""
    return SplitData(np.ascontiguousarray(data.x.double().numpy().T), tuple(range(data.x.shape[1])), ())


def test_one_regression_is_fitted_on_all_rows(data):
    grid, family, machine = Grid(leaves=(1,), single_ridges=(0.1,)), get_family("weibull"), Machine(torch.device("cpu"))
    tried = try_all(to_choose_on(data, 1000, 0), as_given(data), [[family]], grid, 0, machine)
    found, _, _ = on_all_rows(tried.trials[0], data, as_given(data), [family], grid, machine)
    alone = try_all(data, as_given(data), [[family]], replace(grid, n_folds=1), 0, machine).trials[0]
    assert torch.allclose(found.models[0], alone.models[0], atol=1e-4)


def test_the_fit_says_on_how_many_rows_settings_were_compared(fitted, tmp_path):
    assert fitted.report_.details["compared"] == {"rows": 1000, "of": ROWS}
    assert fitted.leaf_table_.n.sum() == ROWS
    said = "Settings were compared on 1,000 of 4,000 rows, and the tree was trained on all."
    assert said in str(fitted.export_text())
    fitted.save(tmp_path / "model")
    assert said in load_model(tmp_path / "model").export_text()


def test_all_rows_are_compared_on_where_that_is_asked_for(fitted):
    X, event, time = table(1500)
    all_rows = SoftSurvivalTree(depth=1, leaf="weibull", max_terms=1, choice_rows=None).fit(X, (event, time))
    usual = SoftSurvivalTree(depth=1, leaf="weibull", max_terms=1).fit(X, (event, time))
    assert "compared" not in all_rows.report_.details
    assert "Settings were compared" not in all_rows.export_text()
    assert all_rows.export_text() == usual.export_text()


def test_the_order_of_rows_changes_nothing(fitted):
    X, event, time = table()
    order = np.random.default_rng(1).permutation(ROWS)
    again = SoftSurvivalTree(choice_rows=1000, max_terms=1, leaf="weibull").fit(
        X.iloc[order].reset_index(drop=True), (event[order], time[order])
    )
    assert again.export_text() == fitted.export_text()
    assert np.array_equal(again.predict(X), fitted.predict(X))


def test_a_dense_tree_is_chosen_on_a_sample_too():
    X, event, time = table(3000)
    tree = SoftSurvivalTree(choice_rows=1000, max_terms=None, depth=1).fit(X, (event, time))
    assert tree.report_.details["compared"] == {"rows": 1000, "of": 3000}
    assert tree.leaf_table_.n.sum() == 3000
    given = SoftSurvivalTree(choice_rows=1000, depth=1, l2=0.1, shrinkage=1.0, routing_l2=1.0, max_terms=None)
    assert "compared" not in given.fit(X, (event, time)).report_.details  # nothing was left to choose


def test_causes_are_settled_on_the_sample():
    X, event, time = table(3000)
    cause = np.where(event, np.where(np.random.default_rng(2).random(3000) < 0.7, 1, 2), 0)
    tree = SoftSurvivalTree(choice_rows=1000, max_terms=1, depth=1, leaf="weibull").fit(X, time=time, cause=cause)
    assert tree.report_.details["compared"] == {"rows": 1000, "of": 3000}
    assert tree.leaf_table_.n.sum() == 3000
    assert tree.export_text().startswith("x0 > 0.")


def test_what_is_no_number_of_rows_is_refused():
    X, event, time = table(100)
    for wrong in (0, 999, 1500.5, "all", True):  # and "auto" is right
        with pytest.raises(InvalidParameterError, match="choice_rows must be"):
            SoftSurvivalTree(choice_rows=wrong).fit(X, (event, time))
