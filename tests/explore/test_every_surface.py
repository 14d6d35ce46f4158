"""Whatever is asked of a tree, it answers, or refuses in a sentence of its own: no raw error reaches a user."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from softsurv import OptimalModelTree, OptimalSurvivalTree, SoftSurvivalTree, load_model
from softsurv import explore as ex
from softsurv.data.readers import survival_data
from softsurv.errors import SoftsurvError

N = 160


def _rows():
    """Numbers, a category, missing values in both; times, and whether they are events."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(60, 10, N).round(1), "grade": rng.choice(["I", "II", "III"], N).astype(object)})
    X["marker"] = np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N))
    X.loc[::17, "grade"] = None
    time = rng.weibull(1.4, N) * 9 * np.exp(-(X["age"] - 60) / 20 - 0.5 * (X["grade"] == "III")) + 0.05
    end = rng.exponential(12, N) + 0.05
    return X, np.minimum(time, end).to_numpy(), (time <= end).to_numpy()


def _datasets():
    (X, time, event), rng = _rows(), np.random.default_rng(1)
    cause = np.where(event, rng.choice(["ill", "dead"], N), "0")
    twice = pd.concat([X, X.assign(marker=X["marker"] + 1)], ignore_index=True)
    stretches = {
        "start": np.append(np.zeros(N), time / 2),
        "stop": np.append(time / 2, time),
        "id": np.tile(np.arange(N), 2),
    }
    none, upper = np.zeros(N, dtype=bool), np.where(~event & (rng.random(N) < 0.5), 1.5 * time, np.inf)
    return {
        "plain": survival_data(X, time=time, event=event),
        "weights": survival_data(X, time=time, event=event, weight=rng.integers(0, 3, N).astype(float)),
        "late entry": survival_data(X, time=time + 0.5, event=event, entry=rng.random(N) * 0.4),
        "intervals": survival_data(X, time=time, event=event, upper=upper),
        "groups": survival_data(X, time=time, event=event, group=rng.choice(["m", "f"], N)),
        "causes": survival_data(X, time=time, cause=cause),
        "histories": survival_data(twice, event=np.append(none, event), **stretches),
        "histories of causes": survival_data(twice, cause=np.append(np.repeat("0", N), cause), **stretches),
        "recurrent": survival_data(twice, event=np.append(~event, event), recurrent=True, **stretches),
    }


DATA = _datasets()
RULES = {"leaf": "weibull", "l2": 0.3, "shrinkage": 4.0, "slope_shrinkage": 4.0}
TREES = {
    "rules": SoftSurvivalTree(1, max_terms=2, **RULES),
    "dense": SoftSurvivalTree(2, max_terms=None, l2=1.0, shrinkage=1.0, routing_l2=0.1, n_restarts=1),
    "optimal": OptimalSurvivalTree(max_depth=2, tune=None),
    "routed": OptimalSurvivalTree(max_depth=2, tune=None, missing="route"),
    "ibs": OptimalSurvivalTree("ibs", max_depth=2, tune=None),
    "models": OptimalModelTree(max_depth=2, complexity=0.0),
}
"""As they are called: what cannot be fitted to some kind of data says so too."""


def _saved(tree, data, folder):
    tree.save(folder / "model")
    np.testing.assert_array_equal(load_model(folder / "model").predict(data.X), tree.predict(data.X))
    return True


ASKED = {
    "text": lambda tree, data, _: tree.export_text(),
    "dot": lambda tree, data, _: tree.export_dot(),
    "risk": lambda tree, data, _: tree.predict(data.X),
    "survival": lambda tree, data, _: tree.predict_survival_function(data.X, [0.0, 0.5, 3.0]),
    "cumulative hazard": lambda tree, data, _: tree.predict_cumulative_hazard_function(data.X, [0.5, 3.0]),
    "median": lambda tree, data, _: tree.predict_median(data.X),
    "quantile": lambda tree, data, _: tree.predict_quantile(data.X, 0.25),
    "expectation": lambda tree, data, _: tree.predict_expectation(data.X, 3.0),
    "conditional": lambda tree, data, _: tree.predict_conditional_survival(data.X, after=0.5, times=[1.0]),
    "incidence": lambda tree, data, _: tree.predict_cumulative_incidence(data.X, [1.0, 2.0]),
    "states": lambda tree, data, _: tree.predict_state_probabilities(data.X, [1.0, 2.0]),
    "time lost": lambda tree, data, _: tree.predict_restricted_time_lost(data.X, 3.0),
    "lower bound": lambda tree, data, _: tree.calibrate(data).predict_lower_bound(data.X),
    "scores": lambda tree, data, _: tree.evaluate(data),
    "log-likelihood": lambda tree, data, _: tree.log_likelihood(data) if hasattr(tree, "log_likelihood") else (),
    "importances": lambda tree, data, _: tree.feature_importances_,
    "leaf summary": lambda tree, data, _: ex.leaf_summary(tree, data),
    "words": lambda tree, data, _: str(ex.explain(tree, data.X.head(1))),
    "crossings": lambda tree, data, _: ex.crossings(tree, data.X.head(1), data),
    "picture": lambda tree, data, _: ex.plot_tree(tree, data),
    "parts": lambda tree, data, _: ex.plot_tree_parts(tree, data, most_leaves=2),
    "curves": lambda tree, data, _: ex.plot_leaf_curves(tree, data),
    "Brier score": lambda tree, data, _: ex.plot_brier({"tree": tree}, data),
    "incidences": lambda tree, data, _: ex.plot_incidences(tree, data),
    "leaf effects": lambda tree, data, _: ex.plot_leaf_effects(tree),
    "routing effects": lambda tree, data, _: ex.plot_routing_effects(tree),
    "profile": lambda tree, data, _: ex.plot_feature_profile(tree, data, "age", n_values=3, max_rows=20),
    "explorer": lambda tree, data, _: ex.explorer(tree, data, max_rows=20).page,
    "ONNX": lambda tree, data, folder: ex.export_onnx(tree, folder / "tree.onnx", [1.0, 2.0]),
    "report": lambda tree, data, _: ex.report_html(tree, data, n_boot=20, stability=0),
    "saved": _saved,
}
ALWAYS = ("text", "dot", "risk", "survival", "median", "leaf summary", "words", "picture", "parts", "curves", "saved")
"""What every fitted tree answers."""

SENTENCE = r"must|takes|needs?|asks|there for|are fitted"
"""What a refusal is made of."""


def refusal(ask):
    """The sentence in which something is refused; None where there is an answer."""
    try:
        assert ask() is not None
    except SoftsurvError as error:
        return str(error)
    return None


@pytest.mark.filterwarnings("ignore::softsurv.errors.EvaluationWarning")
@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("name", TREES)
def test_every_surface_answers_or_refuses_in_a_sentence(name, kind, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed (extra onnx)")
    data, tree = DATA[kind], clone(TREES[name])
    told = {"fit": refusal(lambda: tree.fit(data))}
    if told["fit"] is None:
        for what, ask in ASKED.items():
            told[what] = refusal(lambda ask=ask: ask(tree, data, tmp_path))
            plt.close("all")
        assert {what for what in ALWAYS if told[what] is not None} == set()
    assert {what: said for what, said in told.items() if said and not re.search(SENTENCE, said)} == {}
