"""Several models on the same folds."""

import itertools
import signal

import numpy as np
import pandas as pd
import pytest
from oracles.cut_rows import cut_rows
from oracles.simulated import two_causes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.svm import FastSurvivalSVM

from softsurv import CauseSpecificCox, OptimalSurvivalTree, SurvivalData, compare, load_dataset
from softsurv.data.partition import stratified_folds
from softsurv.data.preprocess import Preprocessor
from softsurv.data.readers import survival_data
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError, SoftsurvError
from softsurv.explore import Comparison, plot_comparison
from softsurv.explore.comparison import BY_CAUSE, MEASURES
from softsurv.metrics import evaluate

lifelines = pytest.importorskip("lifelines", reason="lifelines is not installed (extra test)")


@pytest.fixture(scope="module")
def data():
    return load_dataset("veterans")


def test_a_ctrl_c_in_a_fit_ends_the_comparison(data, monkeypatch, usual_ctrl_c):
    """The tree of the fit that was cut short was measured, and the next fit began."""
    asked = []

    def interrupted(self, *_):
        asked.append(1)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(OptimalSurvivalTree, "_size", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compare([OptimalSurvivalTree(max_depth=1)], data)
    assert asked == [1]


@pytest.fixture(scope="module")
def found(data):
    models = {
        "optimal": OptimalSurvivalTree(max_depth=1),
        "cox": "cox",
        "aft": lifelines.WeibullAFTFitter(),
        "lifelines cox": lifelines.CoxPHFitter(penalizer=0.001),
        "svm": FastSurvivalSVM(max_iter=50, random_state=0),
        "km": "kaplan_meier",
    }
    return compare(models, data, n_folds=3)


def test_every_model_has_every_fold(found, data):
    assert found.folds.groupby("model").size().to_dict() == dict.fromkeys(found.models, 3)
    assert found.folds.groupby("model")["n"].sum().unique().tolist() == [data.n]


def test_the_measures_are_those_of_a_fit_by_hand(found, data):
    train, test = (data.take(rows) for rows in stratified_folds(data.failed, 3, 0)[1])
    encoder = Preprocessor(drop_first=True).fit(train.X)
    cox = CoxPHSurvivalAnalysis(alpha=1e-3).fit(encoder.transform(train.X), train.y)
    curves = cox.predict_survival_function(encoder.transform(test.X))
    by_hand = evaluate(train.time, train.event, test.time, test.event, survival=curves)
    row = found.folds.query("model == 'cox' and fold == 1").iloc[0]
    ours = OptimalSurvivalTree(max_depth=1).fit(train).evaluate(test)
    other = found.folds.query("model == 'optimal' and fold == 1").iloc[0]
    for name in ("harrell_c", "uno_c", "cd_auc", "ibs"):
        assert row[name] == pytest.approx(by_hand[name], abs=1e-12)
        assert other[name] == pytest.approx(ours[name], abs=1e-12)


def test_two_libraries_agree_on_cox_regression(found):
    table = found.table()
    assert table.loc["cox", "harrell_c"] == pytest.approx(table.loc["lifelines cox", "harrell_c"], abs=0.01)
    assert table.loc["cox", "ibs"] == pytest.approx(table.loc["lifelines cox", "ibs"], abs=0.01)


def test_one_curve_for_all_is_chance_and_a_risk_alone_has_no_brier_score(found):
    table = found.table()
    assert table.loc["km", "harrell_c"] == 0.5
    assert np.isnan(table.loc["svm", "ibs"])
    assert table.loc["svm", "harrell_c"] > 0.6
    assert "-" in str(found)


def test_the_table_compares_with_the_first(found):
    wide = found.folds.pivot(index="fold", columns="model", values="ibs")
    apart = wide["cox"] - wide["optimal"]
    row = found.table().loc["cox"]
    assert row["ibs_minus_first"] == pytest.approx(apart.mean())
    assert row["ibs_minus_first_se"] == pytest.approx(apart.std() / 3**0.5)


def test_columns_are_named_as_in_fit_and_pipelines_see_raw_rows(data):
    frame = data.X.assign(months=data.time.numpy(), died=data.event.numpy())
    numbers = FunctionTransformer(lambda X: X.select_dtypes("number"))
    models = [make_pipeline(numbers, CoxPHSurvivalAnalysis()), CoxPHSurvivalAnalysis(), CoxPHSurvivalAnalysis()]
    found = compare(models, frame, time="months", event="died", n_folds=2)
    assert found.models == ["Pipeline", "CoxPHSurvivalAnalysis", "CoxPHSurvivalAnalysis 2"]
    table = found.table()["harrell_c"]
    assert table.iloc[0] != table.iloc[1] == table.iloc[2]


def test_the_picture_has_a_panel_for_each_measure(found):
    ax = plot_comparison(found, ["harrell_c", "uno_c", "ibs"])
    assert len(ax.figure.axes) == 3
    assert [label.get_text() for label in ax.get_yticklabels()] == found.models
    with pytest.raises(InvalidParameterError, match="measures must be of"):
        found.plot(["r2"])


@pytest.mark.parametrize(
    ("models", "words"),
    [
        ("best", "got 'best'"),
        ([], "at least one model"),
        ([CoxPHSurvivalAnalysis], "must be estimators"),
        ({"none": 3}, "must be estimators"),
    ],
)
def test_what_is_no_model_is_refused(models, words, data):
    with pytest.raises(InvalidParameterError, match=words):
        compare(models, data)


@pytest.mark.parametrize(("name", "least"), [("n_folds", 2), ("n_repeats", 1)])
def test_a_number_that_is_too_small_is_refused_by_its_name(name, least, data):
    with pytest.raises(InvalidParameterError, match=f"{name} must be an integer >= {least}, got {least - 1}"):
        compare("cox", data, **{name: least - 1})


def test_a_model_that_fails_is_named(data):
    with pytest.raises(SoftsurvError, match="'KaplanMeierFitter' failed on fold 0"):
        compare([lifelines.KaplanMeierFitter()], data)


def test_other_libraries_get_no_late_entry(data):
    late = SurvivalData(data.X, time=data.time + 1, event=data.event, entry=np.full(data.n, 0.5))
    with pytest.raises(SoftsurvError, match="leave out entry or the model") as error:
        compare(["forest"], late)
    assert isinstance(error.value.__cause__, InvalidSurvivalDataError)


@pytest.mark.parametrize("weight", [False, True])
def test_causes_are_compared_with_cox_regression_of_each(weight, tmp_path):
    data = two_causes(weight=weight)
    found = compare([OptimalSurvivalTree(max_depth=1), "cox", "kaplan_meier"], data, n_folds=2)
    train, test = (data.take(rows) for rows in data.folds(2, 0)[1])
    expected = CauseSpecificCox().fit(train).evaluate(test)
    row = found.folds.query("model == 'cox' and fold == 1").iloc[0]
    for name, key in (("concordance of seal", "concordance"), ("auc of seal", "auc"), ("ibs of seal", "ibs")):
        assert row[name] == expected["causes"]["seal"][key]
    assert row["harrell_c"] == expected["harrell_c"]
    table = found.table()
    assert table.loc["kaplan_meier", "concordance of seal"] == pytest.approx(0.5)
    assert "ibs of motor_minus_first_se" in table.columns
    assert len(found.plot().figure.axes) == 2
    with pytest.raises(SoftsurvError, match=r"leave out (cause|weight) or the model, or take softsurv's Cause"):
        compare(["forest"], data, n_folds=2)


def test_many_causes_of_long_names_are_legible():
    """The text has a table for each cause, which a screen is wide enough for; labels of panels have several lines."""
    causes = [f"{part} that does not close properly" for part in ("the seal", "the valve", "the inlet")]
    rows = [{"model": model, "fold": fold, "seconds": 1.0, "cpu_seconds": 1.0} for model in "ab" for fold in range(2)]
    measures = [*MEASURES, *(f"{name} of {cause}" for cause in causes for name in BY_CAUSE)]
    found = Comparison(pd.DataFrame(rows).assign(**dict.fromkeys(measures, (0.1234, 0.1282, 0.1135, 0.1399))))
    lines = str(found).splitlines()
    assert max(map(len, lines)) < 120
    for cause in causes:
        (head,) = (line for line in lines if line.startswith(cause))
        assert head.removeprefix(cause).split()[:6] == ["concordance", "(higher)", "auc", "(higher)", "ibs", "(lower)"]
    figure = found.plot().figure
    figure.canvas.draw()
    ticks = [
        text
        for ax in figure.axes
        for place, text in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
        if ax.get_xlim()[0] <= place <= ax.get_xlim()[1]
    ]
    for texts in ([ax.xaxis.label for ax in figure.axes], ticks):
        boxes = [text.get_window_extent() for text in texts]
        assert len(boxes) >= 3
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert all(ax.xaxis.label.get_window_extent().y0 >= 0 for ax in figure.axes)


@pytest.mark.filterwarnings("ignore::softsurv.errors.EvaluationWarning")
def test_subjects_with_several_rows_are_compared_at_risk():
    data = cut_rows(two_causes())
    rows = data.take(np.arange(data.n))
    rows.X["x"] += np.linspace(0, 0.1, data.n)  # the rows of a subject differ
    found = compare([OptimalSurvivalTree(max_depth=1), "cox"], rows, n_folds=2)
    assert found.folds["harrell_c"].notna().all()
    assert found.folds["ibs of seal"].isna().all()
    assert found.folds["concordance of seal"].notna().all()


def test_models_that_refuse_a_time_of_zero_are_compared_all_the_same():
    rows = load_dataset("veterans")
    with pytest.warns(DataWarning, match="time is 0 in 5 of 137 rows"):
        rows = survival_data(rows.X, event=rows.event, time=np.where(np.arange(137) % 30 == 1, 0.0, rows.time))
    with pytest.raises(ValueError, match="zero"):
        FastSurvivalSVM().fit(rows.X[["Age_in_years"]], rows.y)
    found = compare({"svm": FastSurvivalSVM(), "aft": lifelines.LogNormalAFTFitter(penalizer=0.01)}, rows, n_folds=2)
    assert found.folds["harrell_c"].notna().all()


def test_weights_and_seeds_are_taken_as_in_fit():
    rows, weight = load_dataset("veterans"), np.linspace(0.5, 2.0, 137)
    found = [
        compare("kaplan_meier", rows.X, rows.y, n_folds=2, **{name: weight}) for name in ("weight", "sample_weight")
    ]
    assert found[0].folds["ibs"].tolist() == found[1].folds["ibs"].tolist()
    weight[::4] = 0.0  # as without these rows, whatever a library says of weights of 0
    models, some = ["kaplan_meier", "cox"], weight > 0
    left = compare(models, rows.X, rows.y, n_folds=2, weight=weight)
    alone = compare(models, rows.X[some], rows.y[some], n_folds=2, weight=weight[some])
    assert left.folds["harrell_c"].tolist() == alone.folds["harrell_c"].tolist()
    with pytest.raises(InvalidParameterError, match="seed must be an integer >= 0, got -1"):
        compare("kaplan_meier", rows, seed=-1)
