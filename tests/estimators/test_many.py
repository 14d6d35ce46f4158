"""Many settings as one stack against fits one after the other."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from oracles.spells import KINDS, rows_of_kind

from softsurv import SoftSurvivalTree, fit_many, load_model
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError
from softsurv.soft.cross_validation import folds_of_content
from softsurv.soft.one_pass import operators_alone

DENSE = {"max_terms": None, "leaf": "weibull", "depth": 1, "l2": 1.0, "routing_l2": 1.0, "n_restarts": 2}
TO_THE_END = DENSE | {"max_iter": 400}
SETTINGS = [
    TO_THE_END | {"shrinkage": 10.0},
    TO_THE_END | {"shrinkage": 100.0, "n_restarts": 1},
    {"depth": 0, "l2": 3.0},
]


@pytest.fixture
def frame():
    """Two numbers and a category, 120 rows; time and event."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b"], 120)
    table = pd.DataFrame(rng.standard_normal((120, 2)), columns=["u", "v"]).assign(kind=kind)
    time = rng.exponential(np.exp(-table["u"] - (kind == "a"))) + 1e-3
    return table.assign(months=time, died=rng.random(120) < 0.7)


def data_of(frame):
    return SurvivalData(frame[["u", "v", "kind"]], frame["months"].to_numpy(), frame["died"].to_numpy())


def assert_same(ours, alone, X):
    """Both stop within the optimiser's tolerance of one optimum."""
    assert ours.report_.objective == pytest.approx(alone.report_.objective, abs=1e-6)
    assert ours.candidate_ == alone.candidate_
    np.testing.assert_allclose(ours.predict(X), alone.predict(X), atol=2e-3)
    np.testing.assert_array_equal(ours.apply(X), alone.apply(X))


@pytest.mark.filterwarnings("ignore:the fit took all its")
def test_settings_on_all_rows_are_the_fits_one_by_one(frame):
    data = data_of(frame)
    many = fit_many(data, settings=SETTINGS)
    assert many.held_out == ()
    assert many.together == (3, 3, 1)  # the depths are stacks of their own
    for setting, (ours,) in zip(SETTINGS, many.estimators, strict=True):
        alone = SoftSurvivalTree(**setting).fit(data)
        assert ours.get_params() == alone.get_params()
        assert_same(ours, alone, data.X)
        assert set(vars(ours)) == set(vars(alone))
        assert ours.export_text() == alone.export_text()
        assert ours.report_.details.keys() == alone.report_.details.keys()


@pytest.mark.filterwarnings("ignore:the fit took all its")
def test_settings_on_folds_are_the_fits_one_by_one(frame):
    data = data_of(frame)
    many = fit_many(data, settings=SETTINGS[:2], n_folds=3, seed=1)
    assert many.together == (9, 9)  # three starts on three folds
    for (train, test), held_out, k in zip(folds_of_content(data, 3, 1), many.held_out, range(3), strict=True):
        assert held_out.X.equals(data.take(test).X)
        for setting, trees in zip(SETTINGS, many.estimators, strict=False):
            assert_same(trees[k], SoftSurvivalTree(**setting).fit(data.take(train)), held_out.X)


def test_the_table_has_the_held_out_measures(frame):
    many = fit_many(
        frame, settings=[DENSE | {"shrinkage": s} for s in (1.0, 100.0)], n_folds=2, time="months", event="died"
    )
    table = many.table()
    assert table["shrinkage"].tolist() == [1.0, 100.0]
    scores = [tree.evaluate(test)["ibs"] for tree, test in zip(many.estimators[0], many.held_out, strict=True)]
    assert table.loc[0, "ibs"] == pytest.approx(np.mean(scores))
    assert table.loc[0, "ibs_se"] == pytest.approx(np.std(scores, ddof=1) / 2**0.5)
    assert "ibs" not in fit_many(data_of(frame), settings=[DENSE | {"shrinkage": 1.0}]).table()


@pytest.mark.filterwarnings("ignore::softsurv.errors.EvaluationWarning", "ignore:the fit took all its")
@pytest.mark.parametrize("kind", KINDS)
def test_the_table_of_a_device_has_the_measures_of_each_estimator(kind, monkeypatch):
    """As one stack of all settings that are alike, trees of rules among them."""
    settings = [DENSE | {"shrinkage": s, "max_iter": 4} for s in (1.0, 100.0)]
    settings.append(DENSE | {"shrinkage": 1.0, "max_iter": 4, "leaf": "loglogistic", "preprocess": False})
    if kind in ("events", "causes"):
        settings.append({"depth": 1, "leaf": "weibull", "max_terms": 1, "l2": 1.0, "shrinkage": 1.0})
    many = fit_many(rows_of_kind(kind), settings=settings, n_folds=2)
    expected = many.table()
    with operators_alone(), monkeypatch.context() as patch:
        patch.setattr(SoftSurvivalTree, "evaluate", None)  # none is measured alone
        found = many.table()
    pd.testing.assert_frame_equal(found, expected, rtol=1e-10, atol=0)
    assert expected["harrell_c"].between(0.4, 1).all()


def test_trees_of_rules_are_fitted_one_after_the_other_and_say_so(frame):
    data, rules = data_of(frame), {"depth": 1, "leaf": "weibull", "max_terms": 1}
    many = fit_many(data, settings=[rules, DENSE | {"shrinkage": 1.0}])
    assert many.together == (1, 2)
    assert many.estimators[0][0].export_text() == SoftSurvivalTree(**rules).fit(data).export_text()


def test_results_are_saved_as_any_estimator(frame, tmp_path):
    data = data_of(frame)
    ((tree,),) = fit_many(data, settings=[DENSE | {"shrinkage": 1.0}]).estimators
    tree.save(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(data.X), tree.predict(data.X))


def test_arrays_and_weights_are_read_as_in_fit(frame):
    X, weight = frame[["u", "v"]].to_numpy(), np.r_[np.zeros(10), np.ones(110)]
    y = data_of(frame).y
    setting = TO_THE_END | {"shrinkage": 10.0}
    ((ours,),) = fit_many(X, y, settings=[setting], sample_weight=weight).estimators
    alone = SoftSurvivalTree(**setting).fit(X, y, sample_weight=weight)
    assert not hasattr(ours, "feature_names_in_")
    assert_same(ours, alone, X)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([], "settings must hold at least one"),
        ([{"depth": -1, "l2": 1.0}], "depth must be"),
        ({"depth": 1}, "settings must be a list of mappings of arguments, got {'depth': 1}"),
        (3, "settings must be a list of mappings of arguments, got 3"),
        ([3], "settings must hold mappings of arguments, got 3 among them"),
        (
            [{"dept": 1}],
            "settings must hold arguments of SoftSurvivalTree; .* no argument 'dept'; did you mean 'depth'",
        ),
        ([{1: 2}], "settings must hold arguments of SoftSurvivalTree"),
    ],
)
def test_bad_settings_are_refused(frame, settings, message):
    with pytest.raises(InvalidParameterError, match=message):
        fit_many(data_of(frame), settings=settings)


@pytest.mark.parametrize(
    "wrong", [{"n_folds": 1}, {"n_folds": 2.5}, {"n_folds": 2, "seed": -1}, {"n_folds": 2, "seed": "a"}]
)
def test_wrong_folds_are_told(frame, wrong):
    name, value = list(wrong.items())[-1]
    with pytest.raises(InvalidParameterError, match=f"{name} must be an integer >= ., got {value!r}"):
        fit_many(data_of(frame), settings=[{"depth": 0, "l2": 1.0}], **wrong)
