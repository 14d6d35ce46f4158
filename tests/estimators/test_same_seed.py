"""Same seed, same answer: the order of rows, of columns and of levels moves no tree."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from softsurv import (
    OptimalClassificationTree,
    OptimalFairSurvivalTree,
    OptimalSurvivalPolicyTree,
    OptimalSurvivalTree,
    SoftSurvivalTree,
)

N = 240
TIMES = [0.3, 1.0]


def rows():
    """Numbers with gaps, categories of two and three levels, tied times, a group and a treatment."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {
            "u": rng.standard_normal(N).round(1),
            "v": rng.standard_normal(N).round(1),
            "sex": pd.Categorical(rng.choice(["m", "f"], N)),
            "stage": pd.Categorical(rng.choice(["I", "II", "III"], N)),
        }
    )
    X.loc[::9, "v"] = np.nan
    risk = X["u"].to_numpy() * (X["sex"] == "m") + (X["stage"] == "III")
    time = np.maximum(rng.exponential(np.exp(-risk)).round(2), 0.01)
    return X, time, rng.random(N) < 0.7, rng.choice(["a", "b"], N)


def orders():
    """The same rows with rows, columns or levels in another order."""
    rng = np.random.default_rng(8)
    mixed, turned = rng.permutation(N), ["stage", "v", "u", "sex"]
    yield "rows", lambda X: X.iloc[mixed], mixed
    yield "columns", lambda X: X[turned], np.arange(N)
    levels = {"sex": ["m", "f"], "stage": ["III", "I", "II"]}
    yield "levels", lambda X: X.assign(**{c: X[c].cat.set_categories(v) for c, v in levels.items()}), np.arange(N)


def survival(model, **columns):
    def fit(X, time, event, other):
        given = dict.fromkeys(columns, other)
        return model().fit(X, (event, time), **given)

    return fit


MODELS = {
    "rules": survival(lambda: SoftSurvivalTree(depth=1, leaf="weibull")),
    "dense": survival(lambda: SoftSurvivalTree(depth=2, max_terms=None, l2=1.0, shrinkage=1.0, routing_l2=0.1)),
    "dense, chosen": survival(lambda: SoftSurvivalTree(depth=1, max_terms=None, n_restarts=2)),
    "optimal, chosen": survival(OptimalSurvivalTree),
    "optimal": survival(lambda: OptimalSurvivalTree(max_depth=3)),
    "brier": survival(lambda: OptimalSurvivalTree(max_depth=2, objective="ibs")),
    "fair": survival(lambda: OptimalFairSurvivalTree([1.0], 0.2, max_depth=2), group="group"),
    "policy": survival(lambda: OptimalSurvivalPolicyTree(1.0, max_depth=2), treatment="treatment"),
    "classes": lambda X, time, event, other: OptimalClassificationTree(max_depth=3).fit(X, event),
}


def answers(model, X):
    if hasattr(model, "predict_survival_function"):
        return model.predict_survival_function(X, times=TIMES)
    return np.asarray(model.predict(X[list(model.feature_names_in_)]))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_the_order_of_a_table_moves_no_prediction(name):
    X, time, event, other = rows()
    known = answers(MODELS[name](X, time, event, other), X)
    assert len(np.unique(known)) > 1  # something was learned
    for what, change, order in orders():
        again = MODELS[name](change(X), time[order], event[order], other[order])
        np.testing.assert_array_equal(answers(again, X), known, err_msg=what)


@pytest.mark.parametrize("model", [SoftSurvivalTree(depth=1, leaf="weibull"), OptimalSurvivalTree()])
@pytest.mark.filterwarnings("ignore")
def test_columns_of_an_array_may_stand_in_any_order(model):
    X, time, event, _ = rows()
    values, columns = X[["u", "v"]].fillna(0).assign(w=np.arange(N) % 7).to_numpy(), [2, 0, 1]
    one = answers(model.fit(values, (event, time)), values)
    np.testing.assert_array_equal(answers(model.fit(values[:, columns], (event, time)), values[:, columns]), one)


def test_the_first_declared_level_is_what_others_are_told_against():
    X, time, event, _ = rows()
    X["sex"] = X["sex"].cat.set_categories(["m", "f"])
    tree = SoftSurvivalTree(depth=0, leaf="weibull", l2=1.0).fit(X, (event, time))
    effects = tree.summary().effects.reset_index()
    words = effects.astype(str).agg(" ".join, axis=1).str.cat()
    assert "f vs m" in words
    assert "II vs I" in words
    assert tree.encoded_names_ == ["sex=m", "stage=I", "stage=II", "stage=III", "u", "v"]
