"""Permutation importance and SHAP work with a fitted tree as with any other scikit-learn estimator."""

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import permutation_importance


def test_permutation_importance_finds_the_features_that_decide(mixed):
    found = permutation_importance(mixed.tree, mixed.data.X, mixed.data.y, n_repeats=3, random_state=0)
    importance = pd.Series(found.importances_mean, index=mixed.data.X.columns)
    assert importance["age"] > importance["marker"]
    assert importance["grade"] > importance["marker"]


@pytest.mark.slow
def test_shap_values_add_up_to_the_risk(gbsg2):
    shap = pytest.importorskip("shap", reason="shap is not installed (pip install shap)")
    names = ["age", "pnodes", "progrec", "tsize"]
    rows = gbsg2.test.X.iloc[:12]
    rest = gbsg2.test.X.drop(columns=names).iloc[[0]]

    def risk(values):
        table = pd.concat([rest] * len(values), ignore_index=True)
        return gbsg2.tree.predict(table.assign(**dict(zip(names, np.asarray(values, dtype=float).T, strict=True))))

    background = gbsg2.train.X[names].iloc[:20].to_numpy(dtype=float)
    explained = shap.Explainer(risk, background, algorithm="exact")(rows[names].to_numpy(dtype=float))
    np.testing.assert_allclose(explained.values.sum(1) + explained.base_values, risk(rows[names]), atol=1e-6)
