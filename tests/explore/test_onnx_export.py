"""The exported graph gives what the estimator gives, from raw columns."""

import json

import numpy as np
import pytest

from softsurv import SoftSurvivalTree
from softsurv.errors import InvalidParameterError, InvalidTimesError
from softsurv.explore import export_onnx, onnx_inputs

pytest.importorskip("onnx", reason="onnx is not installed (extra onnx)")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (extra onnx)")

GRID = [0.0, 50.0, 300.0, 900.0]


def run(tree, X, path):
    export_onnx(tree, path, GRID)
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    values = session.run(None, onnx_inputs(tree, X))
    return dict(zip([output.name for output in session.get_outputs()], values, strict=True))


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
