"""Trees for F1, Matthews correlation and under fairness constraints, as estimators."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import f1_score, matthews_corrcoef

from softsurv import OptimalClassificationTree
from softsurv.errors import InvalidParameterError
from softsurv.estimators.fair import OptimalFairClassificationTree
from softsurv.estimators.front import misclassification_front
from softsurv.exact.objectives.fairness import KINDS, difference
from softsurv.results import Status

SCORES = {"f1": f1_score, "mcc": matthews_corrcoef}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 5))
    y = (X[:, 0] * X[:, 1] + 0.6 * rng.normal(size=250) > 0.7).astype(int)
    group = (X[:, 2] + rng.normal(size=250) > 0).astype(int)
    return X, y, group


@pytest.mark.parametrize("objective", SCORES)
def test_sizes_lead_to_the_free_tree(data, objective):
    X, y, _ = data
    free = OptimalClassificationTree(objective, 2, thresholds=4).fit(X, y)
    sized = OptimalClassificationTree(objective, 2, thresholds=4, path=True).fit(X, y)
    assert 1 - free.objective_ == pytest.approx(SCORES[objective](y, free.predict(X)))
    assert sized.objective_ == pytest.approx(free.objective_)
    losses = [size.objective for size in sized.path_]
    assert losses == sorted(losses, reverse=True)
    for size in sized.path_[:-1]:
        few = OptimalClassificationTree(objective, 2, size.max_leaves, thresholds=4).fit(X, y)
        assert few.tree_.n_leaves <= size.max_leaves
        assert few.objective_ == pytest.approx(size.objective)
        assert 1 - few.objective_ == pytest.approx(SCORES[objective](y, few.predict(X)))
    cost = 0.05
    dear = OptimalClassificationTree(objective, 2, thresholds=4, complexity=cost).fit(X, y)
    best = min(size.objective + cost * size.tree.n_leaves for size in sized.path_)
    assert dear.objective_ == pytest.approx(best)
    assert dear.status_ == Status.OPTIMAL


@pytest.mark.parametrize("objective", SCORES)
def test_limits_on_leaves_hold(data, objective):
    X, y, _ = data
    tree = OptimalClassificationTree(objective, 2, thresholds=4, min_samples_leaf=40).fit(X, y)
    assert np.bincount(tree.apply(X)).min() >= 40
    heavy = OptimalClassificationTree(objective, 2, thresholds=4, min_weight_fraction_leaf=0.2).fit(X, y)
    assert np.bincount(heavy.apply(X)).min() >= 0.2 * len(y)


def test_sample_weights_repeat_rows(data):
    X, y, _ = data
    times = np.random.default_rng(1).integers(1, 4, len(y))
    cuts = {"thresholds": [-0.5, 0.0, 0.5]}
    weighted = OptimalClassificationTree("f1", 2, **cuts).fit(X, y, sample_weight=times)
    repeated = OptimalClassificationTree("f1", 2, **cuts).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.objective_ == pytest.approx(repeated.objective_)


def test_three_classes_are_refused():
    with pytest.raises(InvalidParameterError, match="two classes, got 3"):
        OptimalClassificationTree("f1", 1).fit(np.arange(6.0)[:, None], [0, 1, 2, 0, 1, 2])


def test_stopped_fit_warns_and_bounds(data):
    from sklearn.exceptions import ConvergenceWarning

    X, y, _ = data
    with pytest.warns(ConvergenceWarning, match="time limit"):
        tree = OptimalClassificationTree("f1", 3, time_limit=0.0).fit(X, y)
    assert tree.status_ == Status.TIME_LIMIT
    assert tree.lower_bound_ <= OptimalClassificationTree("f1", 3).fit(X, y).objective_ <= tree.objective_


@pytest.mark.parametrize("kind", KINDS)
def test_fair_tree_keeps_its_tolerance(data, kind):
    X, y, group = data
    free = OptimalClassificationTree("accuracy", 2, thresholds=4).fit(X, y)
    previous = free.objective_
    for tolerance in (1.0, 0.1, 0.02):
        tree = OptimalFairClassificationTree(kind, tolerance, 2, thresholds=4).fit(X, y, group=group)
        assert tree.difference_ == pytest.approx(difference(tree.predict(X), y, group, kind))
        assert tree.difference_ <= tolerance + 1e-9
        assert tree.objective_ == pytest.approx((tree.predict(X) != y).mean())
        assert tree.objective_ >= previous - 1e-12  # a tighter tolerance costs accuracy
        previous = tree.objective_
    assert OptimalFairClassificationTree(kind, 1.0, 2, thresholds=4).fit(X, y, group=group).objective_ == pytest.approx(
        free.objective_
    )


def test_fair_tree_with_text_groups_and_weights(data):
    X, y, group = data
    names = np.where(group == 1, "north", "south")
    weight = np.random.default_rng(2).uniform(0.5, 2, len(y))
    tree = clone(OptimalFairClassificationTree(tolerance=0.05, max_depth=2, thresholds=3)).fit(
        X, y, weight, group=names
    )
    assert tree.groups_.tolist() == ["north", "south"]
    assert difference(tree.predict(X), y, group, KINDS[0], weight) <= 0.05 + 1e-9
    assert tree.status_ == Status.OPTIMAL


def test_fair_tree_refuses_what_it_cannot_use(data):
    X, y, group = data
    with pytest.raises(InvalidParameterError, match="group must say"):
        OptimalFairClassificationTree().fit(X, y)
    with pytest.raises(InvalidParameterError, match="at least two values"):
        OptimalFairClassificationTree().fit(X, y, group=np.zeros(len(y)))
    with pytest.raises(InvalidParameterError, match="two classes"):
        OptimalFairClassificationTree().fit(X, y + group, group=group)
    with pytest.raises(InvalidParameterError, match="must have rows of the positive class"):
        OptimalFairClassificationTree(KINDS[1]).fit(X, y, group=np.where(y == 1, 0, group))


def test_front_holds_the_best_measures(data):
    X, y, _ = data
    front = misclassification_front(X, y, max_depth=2, thresholds=4)
    assert front.status == Status.OPTIMAL
    assert (np.diff(front.table["false_negatives"]) > 0).all()
    assert (np.diff(front.table["false_positives"]) < 0).all()
    for objective in SCORES:
        best = OptimalClassificationTree(objective, 2, thresholds=4).fit(X, y)
        assert front.table[objective].max() == pytest.approx(1 - best.objective_)
    for k, (tree, label) in enumerate(zip(front.trees, front.labels, strict=True)):
        predicted = label[tree.apply(np.asarray(X))] if tree.n_leaves > 1 else np.full(len(y), label[0])
        row = front.table.iloc[k]
        assert ((y == 1) & (predicted == 0)).sum() == row["false_negatives"]
        assert ((y == 0) & (predicted == 1)).sum() == row["false_positives"]


def test_saved_models_answer_the_same(data, tmp_path):
    from softsurv import OptimalCapacityPolicyTree, OptimalFairSurvivalTree, OptimalSurvivalPolicyTree, load_model

    X, y, group = data
    rng = np.random.default_rng(3)
    outcome = rng.random(len(y)) < 0.7, rng.exponential(size=len(y)) + 0.01
    scores = np.column_stack([np.zeros(len(y)), X[:, 0]])
    fitted = {
        "fair": OptimalFairClassificationTree(tolerance=0.1, max_depth=1).fit(X, y, group=group),
        "survival": OptimalFairSurvivalTree(1.0, 0.1, max_depth=1).fit(X, outcome, group=group),
        "capacity": OptimalCapacityPolicyTree({1: 0.3}, max_depth=1).fit(X, scores=scores),
        "policy": OptimalSurvivalPolicyTree(1.0, max_depth=1).fit(X, outcome, treatment=group, propensity=[0.5, 0.5]),
    }
    for name, model in fitted.items():
        model.save(tmp_path / name)
        again = load_model(tmp_path / name)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        for attribute in ("difference_", "groups_", "share_", "treatments_"):
            if hasattr(model, attribute):
                np.testing.assert_array_equal(
                    np.asarray(getattr(again, attribute), dtype=object),
                    np.asarray(getattr(model, attribute), dtype=object),
                )
        assert again.export_text() == model.export_text()


def test_the_whole_false_positive_range_is_the_auc(data):
    X, y, _ = data
    whole = OptimalClassificationTree("auc", 2, thresholds=4).fit(X, y)
    part = OptimalClassificationTree("partial_auc", 2, thresholds=4, false_positive_rate=1.0).fit(X, y)
    least = OptimalClassificationTree("partial_auc", 2, thresholds=4, false_positive_rate=0.2).fit(X, y)
    assert part.objective_ == pytest.approx(whole.objective_)
    assert least.objective_ > whole.objective_  # the leftmost part is the hard one


@pytest.mark.parametrize("rate", [0, 1.5, "0.1"])
def test_a_false_positive_rate_is_a_share(data, rate):
    X, y, _ = data
    with pytest.raises(InvalidParameterError, match="false_positive_rate"):
        OptimalClassificationTree("partial_auc", 2, false_positive_rate=rate).fit(X, y)
