"""The interactive page, the exported graph, the report and effects of trees whose events have causes."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalModelTree, OptimalSurvivalTree, SoftSurvivalTree
from softsurv.data.readers import survival_data
from softsurv.errors import InvalidParameterError
from softsurv.explore import explain, explorer, export_onnx, onnx_inputs, plot_leaf_effects, report_html
from softsurv.explore.interactive import explorer_page
from softsurv.explore.payload import explorer_payload

PENALTIES = {"l2": 0.3, "shrinkage": 10.0, "slope_shrinkage": 10.0}
FAMILIES = ("weibull", "lognormal", "spline_po")
GRID = [0.0, 0.05, 0.7, 2.0, 9.0]

ALL = """
return models.map((model) => ({
  leaf: model.rows.map((row) => softsurv.route(model, row).leaf),
  survival: model.rows.map((row) => softsurv.curve(model, row)),
  incidences: model.rows.map((row) => softsurv.incidences(model, row).causes),
}));
"""


@pytest.fixture(scope="module")
def data():
    """Two causes, a category, and missing values."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300), "site": rng.choice(["x", "y"], 300)})
    first, second = rng.exponential(np.where(X[["a", "b"]] > 0, 1.0, 8.0)).T
    time = np.minimum(np.minimum(first, second), 4.0)
    X.loc[::20, "a"] = np.nan
    return survival_data(X, time=time, cause=np.select([time == first, time == second], ["ill", "dead"], "0"))


@pytest.fixture(scope="module")
def trees(data):
    soft = [SoftSurvivalTree(depth=1, leaf=leaf, max_terms=1, **PENALTIES).fit(data) for leaf in FAMILIES]
    dense = {"max_terms": None, "l2": 0.3, "shrinkage": 3.0, "routing_l2": 0.3, "n_restarts": 2}
    others = {
        "dense": SoftSurvivalTree(depth=1, leaf="loglogistic", **dense).fit(data),
        "optimal": OptimalSurvivalTree(max_depth=2).fit(data),
    }
    return dict(zip(FAMILIES, soft, strict=True)) | others


def test_the_browser_repeats_the_incidences(trees, data, in_browser):
    payloads = [explorer_payload(tree, data, max_rows=60) for tree in trees.values()]
    models = f"const models = {json.dumps(payloads)};"
    found = in_browser(explorer_page(payloads[0]), models + ALL)
    X = data.X.iloc[[int(label) for label in payloads[0]["labels"]]]
    assert X["a"].isna().any()
    for tree, payload, own in zip(trees.values(), payloads, found, strict=True):
        np.testing.assert_array_equal(own["leaf"], tree.apply(X))
        times = payload["times"]
        np.testing.assert_allclose(own["survival"], tree.predict_survival_function(X, times=times), atol=1e-11)
        expected = tree.predict_cumulative_incidence(X, times).transpose(0, 2, 1)
        np.testing.assert_allclose(own["incidences"], expected, atol=1e-11)


@pytest.mark.parametrize("leaf", ["weibull", "lognormal"])
def test_the_browser_repeats_the_incidences_of_rows_far_from_training(trees, data, in_browser, leaf):
    """Hazards beyond e^30 go on as a tangent, which decides what each cause has of them. Those of the log-normal law
    were infinite where its survival left the floats, and the incidences no numbers."""
    far, tree = data.with_features(data.X.assign(a=1e4 * data.X["a"])), trees[leaf]
    payload = explorer_payload(tree, far, max_rows=60)
    (own,) = in_browser(explorer_page(payload), f"const models = {json.dumps([payload])};" + ALL)
    X = far.X.iloc[[int(label) for label in payload["labels"]]]
    expected = tree.predict_cumulative_incidence(X, payload["times"]).transpose(0, 2, 1)
    np.testing.assert_allclose(own["incidences"], expected, atol=1e-11)


@pytest.mark.parametrize("kind", ["weibull", "optimal"])
def test_the_page_tells_of_causes(trees, data, in_browser, kind):
    script = """
      const text = (id) => document.getElementById(id).textContent;
      VIEW.chooseRow(20);
      const source = MODEL.sources.findIndex((s) => s.name === "b");
      VIEW.move(source, String(MODEL.sources[source].high));
      const lines = document.querySelectorAll("#causes path").length;
      return {row: text("row"), leaf: text("leaf"), number: VIEW.state.leaf, key: text("cause-key"), lines};
    """
    found = in_browser(explorer(trees[kind], data).page, script)
    assert "dead " in found["row"].split("By ")[1]
    rows = np.flatnonzero(trees[kind].apply(data) == found["number"])
    counts = [int((data.cause.numpy()[rows] == k).sum()) for k in (1, 2)]
    assert f"(dead {counts[0]}, ill {counts[1]})" in found["leaf"]
    assert "moved (dashed)" in found["key"]
    assert found["lines"] >= 6


@pytest.mark.parametrize(
    ("leaf", "tolerance"), [("weibull", 1e-12), ("spline_po", 1e-12), ("lognormal", 1e-6), ("dense", 1e-12)]
)
def test_the_graph_gives_the_incidences(trees, data, leaf, tolerance, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed (extra onnx)")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (extra onnx)")
    tree = trees[leaf]
    export_onnx(tree, tmp_path / "tree.onnx", GRID)
    session = runtime.InferenceSession(str(tmp_path / "tree.onnx"), providers=["CPUExecutionProvider"])
    values = session.run(None, onnx_inputs(tree, data.X))
    found = dict(zip([output.name for output in session.get_outputs()], values, strict=True))
    np.testing.assert_array_equal(found["leaf"], tree.apply(data))
    np.testing.assert_allclose(found["survival"], tree.predict_survival_function(data.X, GRID), atol=tolerance)
    expected = tree.predict_cumulative_incidence(data.X, GRID)
    np.testing.assert_allclose(found["cumulative_incidence"], expected, atol=tolerance)
    number = data.X.columns[data.X.dtypes.map(pd.api.types.is_float_dtype)][0]
    for far in (300.0, -300.0):  # hazards beyond what a survival can tell: each cause counted for as much
        X = data.X.head(5).assign(**{number: far})
        values = session.run(None, onnx_inputs(tree, X))
        found = dict(zip([output.name for output in session.get_outputs()], values, strict=True))
        expected = tree.predict_cumulative_incidence(X, GRID)
        np.testing.assert_allclose(found["cumulative_incidence"], expected, atol=tolerance)


def test_effects_of_causes_are_drawn(trees, data):
    tree = trees["weibull"]
    ax = plot_leaf_effects(tree)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["dead, leaf 0", "dead, leaf 1", "ill, leaf 0", "ill, leaf 1"]
    slopes = tree.cause_trees_[1].leaves[0, :, 1:4].detach().double().numpy()
    places = list(tree.encoded_names_)
    shown = [tick.get_text() for tick in ax.get_yticklabels()]
    drawn = ax.lines[2].get_xdata()  # ill, leaf 0
    np.testing.assert_allclose(drawn, [slopes[0, places.index(name)] for name in shown])
    assert len(plot_leaf_effects(tree, cause="ill").get_legend().get_texts()) == 2
    shared = OptimalModelTree(max_depth=1, complexity=0.0).fit(data)
    assert [text.get_text() for text in plot_leaf_effects(shared).get_legend().get_texts()] == ["dead", "ill"]
    names = {"dead": "the controller fails before its service", "ill": "the controller fails after its service"}
    own = np.array(["", *data.cause_names])[data.cause]
    told = survival_data(data.X, time=data.time.numpy(), cause=[names.get(name, "") for name in own])
    ax = plot_leaf_effects(SoftSurvivalTree(depth=0, leaf="weibull", l2=1.0).fit(told))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(set(labels)) == 2
    assert max(map(len, labels)) <= 24
    with pytest.raises(InvalidParameterError, match="tree must have leaves whose curves vary"):
        plot_leaf_effects(trees["optimal"])
    one = SoftSurvivalTree(depth=0, leaf="weibull", l2=1.0).fit(data.of_cause("ill"))
    with pytest.raises(InvalidParameterError, match="cause asks for one of several kinds of events"):
        plot_leaf_effects(one, cause="ill")


@pytest.mark.parametrize("kind", ["weibull", "optimal"])
def test_the_report_tells_of_causes(trees, data, kind):
    text = report_html(trees[kind], data, n_boot=20, stability=0)
    assert "Measures by cause" in text
    if kind == "weibull":
        assert re.search(r'<th scope="row"[^>]*>dead: leaf 0: a, \+', text)
        assert "Effects of features in each leaf" in text


def test_words_tell_what_brings_a_cause_early(trees, data):
    told = str(explain(trees["weibull"], data.X.iloc[[1]]))
    assert any(line.startswith(("Earlier dead than a typical row", "Later dead than")) for line in told.splitlines())
