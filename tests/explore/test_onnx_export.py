"""The exported graph gives what the estimator gives, from raw columns."""

import json

import numpy as np
import pandas as pd
import pytest

from softsurv import SoftSurvivalTree
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError, InvalidTimesError
from softsurv.explore import export_onnx, onnx_inputs

pytest.importorskip("onnx", reason="onnx is not installed (extra onnx)")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (extra onnx)")

GRID = [0.0, 50.0, 300.0, 900.0]


def run(tree, X, path):
    export_onnx(tree, path, GRID)
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    values = session.run(None, onnx_inputs(tree, X))
    return dict(zip([output.name for output in session.get_outputs()], values, strict=True))


@pytest.mark.filterwarnings("ignore:values are missing in columns")
@pytest.mark.parametrize(
    ("leaf", "tolerance"), [("loglogistic", 1e-12), ("weibull", 1e-12), ("spline_po", 1e-12), ("lognormal", 1e-6)]
)
def test_graph_equals_the_estimator(mixed, leaf, tolerance, tmp_path):
    tree = SoftSurvivalTree(depth=2, leaf=leaf, l2=1.0, shrinkage=0.3, routing_l2=0.01, n_restarts=1).fit(mixed.data)
    X = mixed.data.X.copy()
    X.loc[3, "grade"], X.loc[4, "age"] = None, np.nan
    found = run(tree, X, tmp_path / "tree.onnx")
    np.testing.assert_array_equal(found["leaf"], tree.apply(X))
    np.testing.assert_allclose(found["routing_probability"], tree.routing_probability(X), atol=1e-12)
    np.testing.assert_allclose(found["survival"], tree.predict_survival_function(X, times=GRID), atol=tolerance)
    np.testing.assert_array_equal(found["times"], GRID)


def test_a_single_leaf_and_plain_numbers(stump, gbsg2, tmp_path):
    found = run(stump.tree, stump.data.X, tmp_path / "stump.onnx")
    assert "routing_probability" not in found
    expected = stump.tree.predict_survival_function(stump.data.X, times=GRID)
    np.testing.assert_allclose(found["survival"], expected, atol=1e-12)
    X = gbsg2.train.X[["age", "pnodes"]]
    plain = SoftSurvivalTree(depth=1, l2=1.0, shrinkage=0.3, routing_l2=0.01, preprocess=False, n_restarts=1)
    plain.fit(X, gbsg2.train.y)
    found = run(plain, X, tmp_path / "plain.onnx")
    np.testing.assert_array_equal(found["leaf"], plain.apply(X))


def test_times_must_be_usable(mixed, tmp_path):
    with pytest.raises(InvalidTimesError, match="times must be finite and >= 0"):
        export_onnx(mixed.tree, tmp_path / "tree.onnx", [-1.0])


def test_optimal_trees_go_elsewhere(uneven, tmp_path):
    with pytest.raises(InvalidParameterError, match="tree must be a soft tree for ONNX"):
        export_onnx(uneven.tree, tmp_path / "tree.onnx", GRID)
    scope = {}
    exec(uneven.tree.export_python("leaf_of"), scope)
    rows = uneven.data.X.astype(object).where(uneven.data.X.notna(), None).to_dict("records")
    assert [scope["leaf_of"](row) for row in rows] == uneven.tree.apply(uneven.data).tolist()
    assert json.loads(json.dumps(uneven.tree.to_dict()))["leaves"]
    assert uneven.tree.export_dot().startswith("digraph")


def named(names=None):
    """A small tree on columns of other names, and its rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=80), "b": rng.normal(size=80), "s": rng.choice(["x", "y", "z"], 80)})
    time = rng.exponential(size=80) * np.exp(-X["a"] - X["b"])
    X = X.rename(columns=names or {})
    how = {"max_terms": None, "depth": 1, "leaf": "weibull", "l2": 1.0, "shrinkage": 1.0, "routing_l2": 0.1}
    return SoftSurvivalTree(**how, n_restarts=1, device="cpu").fit(X, (np.ones(80, dtype=bool), time)), X


@pytest.mark.parametrize("name", ["leaf", "survival", "times", "routing_probability", ""])
def test_features_called_as_outputs_are_told(name, tmp_path):
    tree, _ = named({"a": name})
    with pytest.raises(InvalidParameterError, match=f"nor be without a name, got '{name}'; rename the column"):
        export_onnx(tree, tmp_path / "tree.onnx", GRID)


@pytest.mark.parametrize("names", [{"a": "value_3", "b": "_constant_1"}, {"a": 1, "b": 2, "s": 3}])
def test_any_other_name_will_do(names, tmp_path):
    tree, X = named(names)
    found = run(tree, X, tmp_path / "tree.onnx")
    np.testing.assert_allclose(found["survival"], tree.predict_survival_function(X, GRID), atol=1e-12)
    assert onnx_inputs(tree, X.head(0))[str(names["a"])].shape == (0, 1)


def test_a_level_that_means_missing_is_told(tmp_path):
    tree, X = named()
    tree.fit(X.assign(s=X["s"].replace("x", "")), (np.ones(80, dtype=bool), 1.0 + np.arange(80)))
    with pytest.raises(InvalidParameterError, match="levels of 's' must not hold the empty text"):
        export_onnx(tree, tmp_path / "tree.onnx", GRID)


def test_inputs_are_read_as_predictions_are():
    tree, X = named()
    with pytest.raises(InvalidSurvivalDataError, match="got none named 'b'"):
        onnx_inputs(tree, X[["a", "s"]])
    with pytest.raises(InvalidSurvivalDataError, match="column 'b' must be numbers, got 'bad' at row 0"):
        onnx_inputs(tree, X.assign(b="bad"))
    with pytest.warns(DataWarning, match="taken by position"):
        by_place = onnx_inputs(tree, X.to_numpy())
    for name, values in onnx_inputs(tree, X.assign(b=X["b"].astype(str))[["s", "b", "a"]]).items():
        np.testing.assert_array_equal(values, by_place[name])


def test_the_graph_does_not_grow_with_numbers(tmp_path):
    """A runtime took twelve seconds to open the graph of 2,000 columns, and minutes for 8,000."""
    import onnx

    rng, sizes = np.random.default_rng(0), []
    for p in (3, 300):
        X = pd.DataFrame(rng.normal(size=(60, p))).add_prefix("g").assign(site=np.arange(60) % 2)
        X["site"] = X["site"].map({0: "a", 1: "b"}).astype("category")
        X.loc[:5, "g1"] = np.nan
        X = X[[*X.columns[1:], "g0"]]
        tree = SoftSurvivalTree(depth=0, leaf="weibull").fit(X, (rng.random(60) < 0.8, rng.exponential(size=60) + 0.01))
        found = run(tree, X, tmp_path / "tree.onnx")
        np.testing.assert_allclose(found["survival"], tree.predict_survival_function(X, times=GRID), atol=1e-12)
        sizes.append(len(onnx.load(tmp_path / "tree.onnx").graph.node))
    assert sizes[0] == sizes[1]
