"""Other models beside softsurv's: the names they go by, and measures as from a fit by hand."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.svm import FastSurvivalSVM

from softsurv import CauseSpecificCox, OptimalSurvivalTree, compare, load_dataset
from softsurv.data.preprocess import Preprocessor
from softsurv.data.readers import survival_data
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.explore.rivals import NAMED, OF_HISTORIES, KaplanMeier, made, measured
from softsurv.metrics import evaluate, harrell_c
from softsurv.nonparametric import kaplan_meier

lifelines = pytest.importorskip("lifelines", reason="lifelines is not installed (extra test)")


@pytest.fixture(scope="module")
def parts():
    data = load_dataset("veterans")
    rows = np.random.default_rng(0).permutation(data.n)
    return data.take(rows[:90]), data.take(rows[90:])


def test_names_are_new_models_and_those_of_histories_where_rows_are_such(parts):
    plain, late = (
        parts[0],
        survival_data(parts[0].X, time=parts[0].time + 1, event=parts[0].event, entry=np.full(90, 0.5)),
    )
    for name, make in NAMED.items():
        model = made(name, plain)
        assert type(model) is type(make())
        assert model is not made(name, plain)
    for name, other in OF_HISTORIES.items():
        assert type(made(name, late)) is type(NAMED[other]())
    own = OptimalSurvivalTree()
    assert made(own, late) is own
    with pytest.raises(InvalidParameterError, match=r"names out of soft, optimal, cox, .*; got 'coxx'"):
        made("coxx", plain)


def test_a_model_with_curves_is_measured_as_by_hand(parts):
    train, test = parts
    encoder = Preprocessor(drop_first=True).fit(train.X)
    cox = CoxPHSurvivalAnalysis(alpha=1e-3).fit(encoder.transform(train.X), train.y)
    curves = cox.predict_survival_function(encoder.transform(test.X))
    expected = evaluate(train.time, train.event, test.time, test.event, survival=curves)
    found = measured(made("cox", train), train, test)
    for name in ("harrell_c", "uno_c", "cd_auc", "ibs"):
        assert found[name] == pytest.approx(expected[name], abs=1e-12)


def test_a_risk_alone_has_no_brier_score_and_its_own_sign(parts):
    train, test = parts
    numbers = make_pipeline(FunctionTransformer(lambda X: X.select_dtypes("number")), FastSurvivalSVM(random_state=0))
    found = measured(numbers, train, test)
    assert np.isnan(found["ibs"])
    risk = numbers.fit(train.X, train.y).predict(test.X)
    assert found["harrell_c"] == pytest.approx(harrell_c(test.time, test.event, risk), abs=1e-12)
    ranked = FastSurvivalSVM(rank_ratio=0.0, fit_intercept=True, random_state=0)  # it predicts times, not risks
    assert measured(ranked, train, test)["harrell_c"] > 0.5


def test_one_curve_for_all_is_kaplan_meier(parts):
    train, test = parts
    curve = kaplan_meier(train.time, train.event)
    model = KaplanMeier().fit(train.X, train.y)
    times = np.array([10.0, 100.0])
    np.testing.assert_array_equal(model.predict_survival_function(test.X, times), np.tile(curve(times), (test.n, 1)))
    assert measured(KaplanMeier(), train, test)["harrell_c"] == 0.5


def test_models_given_stay_unfitted(parts):
    train, test = parts
    aft, cox = lifelines.WeibullAFTFitter(), CoxPHSurvivalAnalysis(alpha=1e-3)
    for model in (aft, cox):
        measured(model, train, test)
    assert not hasattr(aft, "params_")
    assert not hasattr(cox, "coef_")


def test_what_other_libraries_cannot_be_given_is_named(parts):
    train, test = parts
    weighted = survival_data(train.X, time=train.time, event=train.event, weight=np.full(90, 2.0))
    with pytest.raises(
        InvalidSurvivalDataError, match=r"CoxPHSurvivalAnalysis is compared on .* got weight; leave out weight"
    ):
        measured(CoxPHSurvivalAnalysis(), weighted, test)
    assert 0 < measured(CauseSpecificCox(), weighted, test)["ibs"] < 0.5
    with pytest.raises(InvalidParameterError, match="models of lifelines must be regressions, got KaplanMeierFitter"):
        measured(lifelines.KaplanMeierFitter(), train, test)


@pytest.mark.parametrize("name", ["cox", "cause_specific_cox"])
def test_regressions_without_a_penalty_are_refused_for_more_features_than_rows(name):
    """They failed after a minute, and with them what was measured before."""
    wide = survival_data(np.random.default_rng(0).normal(size=(30, 28)), time=np.arange(1.0, 31.0), event=np.ones(30))
    with pytest.raises(InvalidParameterError, match=f"{name} cannot be fitted to .* got 28 features and 24 rows to tr"):
        compare([KaplanMeier(), name], wide, n_folds=5)  # of all 30 rows it could
