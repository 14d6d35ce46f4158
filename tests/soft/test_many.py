"""Many recipes on many sets of rows: which share a stack, and that each is as if it were fitted alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from oracles.simulated import simulate

from softsurv.errors import InvalidParameterError
from softsurv.hazards import get_family
from softsurv.soft import paper
from softsurv.soft.fit import fit_tree
from softsurv.soft.many import alike, can_stack, fit_many
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.parallel import Machine
from softsurv.soft.recipe import Candidate, Recipe, Training
from softsurv.soft.starts import TrainingRows

SHORT = Training(joint=LbfgsSettings(max_iterations=6))


def recipe(family="weibull", depth=1, ridge=0.5, **how):
    return Recipe(get_family(family), Candidate(family, depth, ridge), training=SHORT, **how)


def test_recipes_that_differ_in_starts_and_penalties_alone_share_a_stack():
    base = recipe()
    recipes = [
        base, recipe(ridge=2.0), recipe(depth=2), recipe("loglogistic"), replace(base, seed=5, starts=("random",)),
        replace(base, l2_all=0.1), replace(base, counts=(1.0,)), replace(base, training=Training()),
    ]  # fmt: skip
    assert alike(recipes) == [[0, 1, 4], [2], [3], [5], [6], [7]]


def test_a_group_lasso_or_a_start_of_ones_own_cannot_share():
    base = recipe()
    assert can_stack(base)
    assert not can_stack(replace(base, l1=0.1))
    own = replace(base, starts=(np.zeros((1, 4)),))
    assert not can_stack(own)
    with pytest.raises(InvalidParameterError, match="starts by name and no group lasso"):
        fit_many([TrainingRows(simulate(30))], [base, own])


@pytest.fixture(scope="module")
def rows():
    """Sets of rows of different lengths."""
    return [TrainingRows(simulate(n, seed=n)) for n in (40, 55)]


def test_each_recipe_is_fitted_as_alone(rows):
    recipes = [recipe(starts=("logrank", "random")), recipe(ridge=3.0), recipe("loglogistic"), recipe(depth=0)]
    found = fit_many(rows, recipes)
    machine = Machine(torch.device("cpu"))
    for one, of_rows in zip(recipes, found, strict=True):
        for row, fit in zip(rows, of_rows, strict=True):
            tree, report = fit_tree(row.data, one, machine)
            assert fit.report.objective == pytest.approx(report.objective, rel=1e-5)
            assert fit.tree.family.name == one.family.name
            assert fit.tree.depth == one.candidate.depth
            assert fit.tree.leaves.shape == tree.leaves.shape
            assert fit.of_causes == (fit.tree,)
            assert len(fit.report.details["objectives"]) == len(one.used_starts)
    assert [one[0].together for one in found] == [6, 6, 2, 2]  # trees that trained together, of both sets


@pytest.mark.parametrize("family", ["spline_po", "weibull"])
def test_the_papers_trees_begin_where_they_begin_alone(family, rows):
    """Spline leaves begin at Cox regressions of the rows, others at random; a set of rows may lack a column."""
    narrow = TrainingRows(rows[0].data.with_features(rows[0].data.X.iloc[:, :-1]))
    training = paper.training(family, "random", sweeps=1)
    one = replace(recipe(family, depth=2), starts=("random",) * 2, training=training, l2_all=paper.L2, seed=7)
    for row, fit in zip([narrow, rows[1]], fit_many([narrow, rows[1]], [one])[0], strict=True):
        _, report = fit_tree(row.data, one, Machine(torch.device("cpu")))
        assert fit.report.objective == pytest.approx(report.objective, rel=1e-5)


def test_the_report_is_that_of_the_best_start(rows):
    (found,) = fit_many(rows, [recipe(starts=("random", "random", "random"))])
    for one in found:
        assert one.report.objective == min(one.report.details["objectives"])
        assert one.report.trace[-1] == pytest.approx(one.report.objective)
