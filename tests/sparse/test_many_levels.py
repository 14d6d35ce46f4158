"""Categories of hundreds of levels: shrunk in the leaves, in no rule."""

import numpy as np
import pandas as pd
import pytest
import torch

from softsurv import SoftSurvivalTree
from softsurv.data.encoding import OutputColumn
from softsurv.metrics import harrell_c
from softsurv.sparse.many_levels import FREE, MANY, covariance_in_data_units, in_data_units, level_scale


def with_sites(n_levels, n=800, seed=0):
    """Two features that matter, and a site that does not."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.normal(size=(n, 2)), columns=["a", "b"])
    X["site"] = [f"s{k:03d}" for k in np.arange(n) % n_levels]
    time, censored = random.exponential(size=n) / np.exp(X["a"] + 0.7 * X["b"]), 1.5 * random.exponential(size=n)
    return X, (time <= censored, np.minimum(time, censored))


def test_a_site_of_no_effect_costs_little():
    X, (event, time) = with_sites(200)
    train = np.arange(len(X)) < len(X) // 2
    scores = []
    for names in (["a", "b"], ["a", "b", "site"]):
        tree = SoftSurvivalTree(depth=0, leaf="weibull").fit(X.loc[train, names], (event[train], time[train]))
        scores.append(harrell_c(time[~train], event[~train], tree.predict(X.loc[~train, names])))
    assert scores[1] > scores[0] - 0.01


def test_no_rule_asks_for_a_category_of_hundreds_of_levels():
    X, (event, time) = with_sites(MANY + 20)
    random = np.random.default_rng(1)
    effect = dict(zip(sorted(set(X["site"])), random.normal(size=MANY + 20) * 2, strict=True))
    time = time / np.exp(X["site"].map(effect).to_numpy())
    tree = SoftSurvivalTree(depth=1, leaf="weibull", max_terms=1).fit(X, (event, time))
    assert "site" not in tree.export_text().splitlines()[0]
    few = X.assign(site=[name[-1] for name in X["site"]])
    time = np.where(few["site"] > "4", time**3, time)  # another shape, which no slope has
    tree = SoftSurvivalTree(depth=1, leaf="weibull", max_terms=1).fit(few, (event, time))
    assert tree.export_text().startswith("site")


def test_models_and_covariances_are_in_the_units_of_the_data():
    columns = [
        OutputColumn("a", "a", "number"),
        *(OutputColumn(f"s={k}", "s", "level", str(k)) for k in range(MANY + 1)),
    ]
    scale = level_scale(columns)
    assert scale[0] == 1
    assert scale[1:] == pytest.approx((FREE / (MANY + 1)) ** 0.5)
    random = np.random.default_rng(0)
    x, model = random.normal(size=len(columns)), torch.tensor(random.normal(size=(1, 3, len(columns) + 3)))
    (plain,) = in_data_units((model,), scale)
    slopes = slice(1, 1 + len(columns))
    assert (plain[..., slopes].numpy() @ x) == pytest.approx(model[..., slopes].numpy() @ (x * scale))
    assert torch.equal(plain[..., 0], model[..., 0])
    assert torch.equal(plain[..., slopes.stop :], model[..., slopes.stop :])
    half = random.normal(size=(1, len(columns) + 3, len(columns) + 3))
    covariance = half @ half.transpose(0, 2, 1)
    found = covariance_in_data_units(covariance, scale)
    at, moved = np.zeros(len(columns) + 3), np.zeros(len(columns) + 3)
    at[slopes], moved[slopes] = x, x * scale
    assert at @ found[0] @ at == pytest.approx(moved @ covariance[0] @ moved)


def test_few_levels_stay_as_they_are():
    columns = [OutputColumn(f"s={k}", "s", "level", str(k)) for k in range(MANY)]
    scale = level_scale(columns)
    models = (torch.zeros(1, 2, MANY + 2),)
    assert (scale == 1).all()
    assert in_data_units(models, scale) is models
