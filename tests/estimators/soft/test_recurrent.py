"""Soft trees of recurrent events, and standard errors by subject."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from softsurv import SoftSurvivalTree, load_model
from softsurv.data.readers import survival_data
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.hazards import get_family
from softsurv.soft.problem import make_problem
from softsurv.sparse.covariance import dense_covariance, rule_covariance
from softsurv.sparse.leaf_fit import LeafPenalties, fit_leaves, leaf_models, losses_in_leaves

COLUMNS = {"start": "from", "stop": "to", "event": "again", "id": "who"}
PENALTIES = {"l2": 0.3, "shrinkage": 1.0, "slope_shrinkage": 10.0}


def repairs(n=120, seed=1, frailty=0.0):
    """A machine is repaired again and again; every 4 hours under light load, every 1.5 hours under heavy load."""
    rng, rows = np.random.default_rng(seed), []
    for who in range(n):
        load, now, end = rng.uniform(0, 1), 0.0, rng.uniform(5, 10)
        mean = (1.5 if load > 0.5 else 4.0) / (rng.gamma(1 / frailty, frailty) if frailty else 1.0)
        while now < end:
            stop = now + rng.exponential(mean)
            rows.append((who, load, rng.normal(), now, min(stop, end), stop < end))
            now = stop
    return pd.DataFrame(rows, columns=["who", "load", "noise", "from", "to", "again"])


@pytest.fixture(scope="module")
def table():
    return repairs()


@pytest.fixture(scope="module")
def tree(table):
    how = {"max_terms": 1, **PENALTIES}
    return SoftSurvivalTree(depth=1, leaf="exponential", **how).fit(
        table.drop(columns="noise"), **COLUMNS, recurrent=True
    )


def test_the_split_and_the_mean_counts_are_found(tree, table, tmp_path):
    assert "load > 0.5" in tree.export_text().replace("0.50", "0.5") or "load > 0.49" in tree.export_text()
    assert "Events recur: a leaf holds the rate of a counting process." in tree.export_text()
    new = pd.DataFrame({"load": [0.25, 0.75]})
    np.testing.assert_allclose(tree.predict_mean_count(new, [4.0])[:, 0], [1.0, 4 / 1.5], rtol=0.25)
    tree.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_mean_count(new, [1.0, 4.0]), tree.predict_mean_count(new, [1.0, 4.0]))
    assert "Events recur" in again.export_text()


@pytest.mark.filterwarnings("ignore::softsurv.errors.EvaluationWarning")
def test_scores_compare_rows_at_risk(tree, table):
    found = tree.evaluate(table, **COLUMNS, recurrent=True)
    assert found["harrell_c"] > 0.6
    assert found["subjects"] == 120


def test_an_exponential_leaf_counts_events_over_time(table):
    one = SoftSurvivalTree(depth=0, leaf="exponential", l2=1e9).fit(table, **COLUMNS, recurrent=True)
    rate = table["again"].sum() / (table["to"] - table["from"]).sum()
    new = pd.DataFrame({"load": [0.5], "noise": [0.0]})
    np.testing.assert_allclose(one.predict_mean_count(new, [3.0])[0], 3 * rate, rtol=1e-3)


@pytest.mark.parametrize("how", [{"max_terms": None, "routing_l2": 0.3}, {}])
def test_both_kinds_of_splits_take_them(table, how):
    known = {"l2": 0.3, "shrinkage": 1.0}
    tree = SoftSurvivalTree(depth=1, leaf="exponential", **(known | how)).fit(table, **COLUMNS, recurrent=True)
    light, heavy = tree.predict_mean_count(pd.DataFrame({"load": [0.1, 0.9], "noise": 0.0}), [4.0])[:, 0]
    assert heavy > 1.7 * light


def test_robust_errors_do_not_take_rows_of_a_subject_for_witnesses():
    """Frail machines: the naive error of the noise-free level is too small; the robust one is that of the subjects."""
    wide = repairs(150, frailty=1.0).drop(columns=["noise", "load"])
    one = SoftSurvivalTree(depth=0, leaf="exponential", l2=0.3).fit(
        wide.assign(z=0.0 + wide["who"] % 2), **COLUMNS, recurrent=True
    )
    effects = one.summary().effects
    assert "robust by subject (sandwich)" in str(one.summary())
    parts = wide.groupby("who").agg(events=("again", "sum"), time=("to", "max"))
    odd = parts.index % 2 == 1
    rate = [parts[side].events.sum() / parts[side].time.sum() for side in (~odd, odd)]
    variance = [
        ((part.events - r * part.time) ** 2).sum() / part.events.sum() ** 2
        for part, r in zip((parts[~odd], parts[odd]), rate, strict=True)
    ]
    assert float(effects["standard_error"].iloc[0]) == pytest.approx(np.sqrt(sum(variance)), rel=0.02)
    naive = np.sqrt(1 / parts[odd].events.sum() + 1 / parts[~odd].events.sum())
    assert np.sqrt(sum(variance)) > 1.5 * naive


@pytest.mark.parametrize("dense", [False, True])
def test_the_sandwich_is_that_of_autograd(dense):
    """Slow twin: scores of each subject by autograd, between inverse Hessians."""
    data = survival_data(repairs(40).drop(columns="noise"), **COLUMNS, recurrent=True)
    problem, leaf = make_problem(data, get_family("weibull")), (data.x[:, 0] > 0.5).long()
    held = LeafPenalties(*(torch.tensor([v], dtype=torch.float64) for v in (0.01, 0.02, 0.03)))
    model = fit_leaves(problem, leaf[None], 2, held).point[0][0]
    codes, size = data.subject_codes, model.shape[-1]
    start = leaf_models(model[None])[0].flatten() if dense else model.flatten()

    def mean_losses(values):
        leaves = values.view(2, size) if dense else leaf_models(values.view(1, 3, size))[0]
        losses = losses_in_leaves(problem, leaves[None])[0].gather(0, leaf[None])[0]
        return torch.zeros(40, dtype=torch.float64).index_add(0, codes, problem.weight[0, 0] * losses)

    def whole(values):
        penalty = torch.full((size,), 0.02, dtype=torch.float64)
        penalty[1:2] = 0.03
        parts = values.view(-1, size)
        total = mean_losses(values).sum()
        if dense:
            return total + 0.5 * (penalty * parts.square()).sum()
        return total + 0.5 * (penalty * parts[1:].square()).sum() + 0.005 * parts[0, 1:2].square().sum()

    scores = torch.autograd.functional.jacobian(mean_losses, start)
    inverse = torch.linalg.inv(torch.autograd.functional.hessian(whole, start))
    expected = (inverse @ scores.mT @ scores @ inverse).view(-1, size, start.numel() // size, size)
    if dense:
        strength = torch.tensor([0.02, 0.03, 0.02], dtype=torch.float64)
        found = dense_covariance(problem, leaf, start.view(2, size), strength, data.n, codes)
        np.testing.assert_allclose(found, [expected[k, :, k] for k in range(2)], rtol=1e-4, atol=1e-8)
        return
    found = rule_covariance(problem, leaf, model, held, data.n, codes)
    for k in range(2):
        pair = [0, 1 + k]
        own = expected[pair][:, :, pair].sum((0, 2))
        np.testing.assert_allclose(found[k], own, rtol=1e-4, atol=1e-8)


def test_subjects_of_one_row_have_the_usual_sandwich_and_copies_change_nothing():
    """Every subject twice with one identity: the robust covariance is that of each once."""
    rng = np.random.default_rng(0)
    time, x = rng.weibull(1.3, 90) + 0.1, rng.normal(size=(90, 1))
    data = survival_data(pd.DataFrame(x, columns=["x"]), time=time, event=rng.random(90) < 0.7)
    leaf = torch.zeros(90, dtype=torch.int64)
    held = LeafPenalties(*(torch.zeros(1, dtype=torch.float64) for _ in range(3)))
    model = fit_leaves(make_problem(data, get_family("weibull")), leaf[None], 1, held).point[0][0]
    once = rule_covariance(make_problem(data, get_family("weibull")), leaf, model, held, 90, torch.arange(90))
    both = data.take(np.repeat(np.arange(90), 2))
    twice = rule_covariance(
        make_problem(both, get_family("weibull")),
        torch.zeros(180, dtype=torch.int64),
        model,
        held,
        180,
        torch.arange(90).repeat_interleave(2),
    )
    np.testing.assert_allclose(twice, once, rtol=1e-8)


def test_what_recurrent_events_do_not_go_with_is_said(table, tree):
    with pytest.raises(InvalidSurvivalDataError, match="recurrent events of several causes are not fitted"):
        SoftSurvivalTree().fit(
            table.assign(why=np.where(table["again"], "wear", "")),
            start="from",
            stop="to",
            cause="why",
            id="who",
            recurrent=True,
        )
    plain = SoftSurvivalTree(depth=0, leaf="exponential", l2=1.0).fit(
        table[["load"]], time=table["to"], event=table["again"]
    )
    with pytest.raises(InvalidParameterError, match="mean counts need a tree of recurrent events"):
        plain.predict_mean_count(table[["load"]])
