"""Candidates learn of each other: the tree of a candidate is the best that any search of its size found."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from softsurv import SoftSurvivalTree
from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData
from softsurv.hazards import get_family
from softsurv.soft.parallel import Machine
from softsurv.soft.problem import make_problem
from softsurv.soft.recipe import Candidate
from softsurv.sparse import trials
from softsurv.sparse.causes import fit_causes, take
from softsurv.sparse.folds import Grid, make_folds
from softsurv.sparse.prefer import Trial
from softsurv.sparse.splits import SplitData
from softsurv.sparse.train import Plan, grow, held_out_losses, leaves_of, penalties_of
from softsurv.sparse.trials import FamilyTrials
from softsurv.trees.linear_rule import LinearRule

N = 300
ROUGHLY = 3e-3  # to which leaves are fitted while rules are compared; a wrong rule costs 0.02 and more
GRID = Grid(leaves=(1, 2), shrinkage=((10.0, None), (40.0, None)))


def crossing(seed: int) -> tuple[SurvivalData, np.ndarray]:
    """Two halves of one median whose curves cross there, and six features of noise; true leaves (N,)."""
    rng = np.random.default_rng(seed)
    x = pd.DataFrame(rng.random((N, 7)), columns=[f"x{k}" for k in range(7)])
    half = (x["x0"] > 0.5).to_numpy()
    shape = np.where(half, 2.5, 0.7)
    time = np.log(2) ** (-1 / shape) * rng.weibull(shape)
    late = rng.exponential(4, N)
    return survival_data(x, time=np.minimum(time, late), event=time <= late), half


@pytest.fixture(scope="module")
def family():
    data, _ = crossing(0)
    split = SplitData(np.ascontiguousarray(data.x.double().numpy().T), tuple(range(7)), ())
    fold = make_folds(data, split, GRID, 0)
    problem = make_problem(data, get_family("spline_po"), weight=torch.as_tensor(fold.masks))
    return FamilyTrials("spline_po", (problem,), fold, GRID, Machine(torch.device("cpu")))


def loss_of(family, candidate, rules, fold):
    """Penalised loss of a tree on the rows of a fold, its leaves fitted anew."""
    stack = take(family.problems, torch.tensor([fold]))
    penalties = penalties_of(
        family.fold.n_rows[[fold]], candidate.ridge, candidate.shrinkage, candidate.slope_shrinkage
    )
    leaf = leaves_of([rules], family.fold.rows.split)
    return float(fit_causes(stack, leaf, len(rules) + 1, penalties, None)[1][0])


def test_no_candidate_has_a_tree_that_another_of_its_size_betters(family):
    trials = [t for t in family.trees(lambda: False, lambda *_: None) if t.candidate.shrinkage == 10.0]
    for mine in trials:
        allowed = [t for t in trials if t.candidate.max_terms <= mine.candidate.max_terms]
        for fold, rules in enumerate(mine.fold_rules):
            own = loss_of(family, mine.candidate, rules, fold)
            best = min(loss_of(family, mine.candidate, other.fold_rules[fold], fold) for other in allowed)
            assert own <= best + ROUGHLY


def test_the_tree_of_all_rows_is_no_worse_than_what_a_fold_found(family):
    trial = family.trees(lambda: False, lambda *_: None)[0]
    noise = (LinearRule((3,), (1.0,), 0.5),)
    last = family.n_folds - 1
    poor = replace(trial, rules=noise, fold_rules=(*trial.fold_rules[:-1], noise))
    found = family.of_all_rows(poor)
    mine = loss_of(family, trial.candidate, found.rules, last)
    assert mine <= min(loss_of(family, trial.candidate, rules, last) for rules in poor.fold_rules) + ROUGHLY
    assert mine < loss_of(family, trial.candidate, noise, last) - 0.02
    assert found.models[0].shape == trial.models[0].shape


def test_growing_never_ends_above_where_it_began(family):
    rules = [(LinearRule((k,), (1.0,), 0.5),) for k in range(7)]
    plans = [Plan(0, ridge, 10.0, 3, one) for one in rules for ridge in (0.3, 30.0)]
    how = family.problems, family.fold.rows, plans, family.fold.n_rows
    start, end = grow(*how, sweeps=0), grow(*how)
    assert (end.loss <= start.loss).all()
    assert (end.loss < start.loss - 1e-3).any()
    for m in (0, 5):  # what is returned belongs together
        candidate = Candidate("spline_po", 1, plans[m].ridge, plans[m].baseline)
        assert float(end.loss[m]) > loss_of(family, candidate, end.rules[m], 0) - 1e-4
        assert torch.equal(leaves_of([end.rules[m]], family.fold.rows.split)[0], end.leaf[m])


def test_trees_are_scored_on_the_rows_they_did_not_train_on_alone(family):
    generator = torch.Generator().manual_seed(0)
    which = np.tile(np.arange(family.n_folds), 2)
    stack = take(family.problems, torch.as_tensor(which))
    size = stack[0].design.shape[-1] + family.problems[0].family.n_shape
    models = (0.1 * torch.randn(len(which), 3, size, generator=generator, dtype=torch.float64),)
    leaf = torch.randint(0, 2, (len(which), N), generator=generator)
    losses = family._losses(models, leaf, which)[:, 0]  # of the one cause
    whole = held_out_losses(stack, models, leaf, family.fold.held[which], most=family.fold.most)
    np.testing.assert_allclose(losses, whole.numpy(), rtol=1e-12)
    assert ((losses != 0).sum(0) == 2).all()  # a row is held out once by each of the two


def test_better_takes_over_whole_trees(family):
    plans = [Plan(0, 0.3, 10.0, 1, (LinearRule((k,), (1.0,), 0.5),)) for k in (1, 2, 3)]
    noise = grow(family.problems, family.fold.rows, plans, family.fold.n_rows, 0)
    true = [replace(plan, rules=(LinearRule((0,), (1.0,), 0.5),)) for plan in plans[:2]]
    fitted = grow(family.problems, family.fold.rows, true, family.fold.n_rows, 0)
    both = noise.better(fitted, torch.tensor([2, 0]))
    assert [rules[0].columns for rules in both.rules] == [(0,), (2,), (0,)]
    assert torch.equal(both.leaf[2], fitted.leaf[0])
    assert torch.equal(both.models[0][0], fitted.models[0][1])
    assert both.loss.tolist() == [float(fitted.loss[1]), float(noise.loss[1]), float(fitted.loss[0])]
    assert noise.better(noise, torch.arange(3)) is noise


def test_a_larger_tree_fits_hardly_worse_than_the_smaller_one_it_may_begin_from():
    """Eight leaves whose times differ a thousandfold: corrections to one regression do not find them.

    A leaf pays for its distance from the common model, so that a larger tree may be a little worse.
    """
    rng = np.random.default_rng(3)
    x = rng.random((600, 5))
    first = x[:, 0] > 0.5
    second = np.where(first, x[:, 1] > 0.4, x[:, 2] > 0.6)
    leaf = 4 * first + 2 * second + np.where(second, x[:, 3] > 0.5, x[:, 1] > 0.7)
    level = rng.normal(0, 3, 8)
    frame = pd.DataFrame(x, columns=[f"x{k}" for k in range(5)])
    data = survival_data(frame, time=np.exp(level[leaf]) * rng.exponential(1, 600), event=np.ones(600, dtype=bool))
    grid = Grid(leaves=(1, 2, 3, 4, 6, 8), terms=(1,), ridges=(0.3,), shrinkage=((10.0, None),))
    split = SplitData(np.ascontiguousarray(data.x.double().numpy().T), tuple(range(5)), ())
    fold = make_folds(data, split, grid, 0)
    problem = make_problem(data, get_family("weibull"), weight=torch.as_tensor(fold.masks))
    family = FamilyTrials("weibull", (problem,), fold, grid, Machine(torch.device("cpu")))
    trials = sorted(family.trees(lambda: False, lambda *_: None), key=lambda t: t.candidate.leaves)
    for k in range(family.n_folds):
        losses = [loss_of(family, trial.candidate, trial.fold_rules[k], k) for trial in trials]
        assert all(larger <= smaller + 0.06 for smaller, larger in pairwise(losses)), losses


@pytest.mark.parametrize("seed", [1, 3])
def test_the_default_finds_curves_that_cross(seed):
    data, half = crossing(seed)
    model = SoftSurvivalTree().fit(data.X, data.y)
    assert adjusted_rand_score(half, model.apply(data.X)) > 0.7


def slopes_apart(n: int) -> tuple[SurvivalData, np.ndarray]:
    """Two halves of one level in which a feature acts in opposite ways, and features of noise; true leaves (n,)."""
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.random((n, 5)), columns=[f"x{k}" for k in range(5)])
    half = (x["x0"] > 0.5).to_numpy()
    time = np.exp(np.where(half, 3.0, -3.0) * (x["x1"] - 0.5)) * rng.exponential(1, n)
    return survival_data(x, time=time, event=np.ones(n, dtype=bool)), half


def family_of(data: SurvivalData, grid: Grid) -> FamilyTrials:
    """Trials of Weibull leaves on the features as they are."""
    n_features = data.x.shape[1]
    split = SplitData(np.ascontiguousarray(data.x.double().numpy().T), tuple(range(n_features)), ())
    fold = make_folds(data, split, grid, 0)
    problem = make_problem(data, get_family("weibull"), weight=torch.as_tensor(fold.masks))
    return FamilyTrials("weibull", (problem,), fold, grid, Machine(torch.device("cpu")))


SLOPES = Grid(leaves=(1, 2), terms=(1,), ridges=(0.3,), shrinkage=((10.0, None), (10.0, 1.0)), n_folds=2)


def test_rules_are_sought_for_leaves_with_slopes_of_their_own():
    """The halves have one mean: leaves that share their slopes gain nothing by the true cut."""
    data, _ = slopes_apart(600)
    family = family_of(data, SLOPES)
    off, further = ((LinearRule((0,), (1.0,), cut),) for cut in (0.3, 0.25))
    true = (LinearRule((0,), (1.0,), 0.5),)
    own = Candidate("weibull", 1, 0.3, 10.0, 0.0, 2, 1, 1.0)

    def loss(rules):
        return loss_of(family, own, rules, family.n_folds - 1)

    sought = family.for_own_slopes(own, off)
    assert loss(sought) < loss(true) + 0.002 < loss(off) - 0.1
    assert loss(family.for_own_slopes(own, further)) < loss(true) + 0.002
    assert family.for_own_slopes(replace(own, slope_shrinkage=None), off) == off
    trial = Trial(own, np.zeros((1, 600)), off, (torch.zeros(1, 3, 7),), (off, further, off))
    shared, apart = (family.of_all_rows(replace(trial, grown_with=with_)).rules for with_ in (None, 1.0))
    assert loss(apart) < loss(shared) - 0.02


def test_of_two_searches_the_one_with_the_lower_held_out_loss_counts(monkeypatch):
    data, _ = slopes_apart(600)
    family = family_of(data, SLOPES)
    found = {t.candidate.slope_shrinkage: t for t in family.trees(lambda: False, lambda *_: None)}
    monkeypatch.setattr(trials, "MOST_OWN", 1)
    once = {t.candidate.slope_shrinkage: t for t in family_of(data, SLOPES).trees(lambda: False, lambda *_: None)}
    assert (found[None].grown_with, found[1.0].grown_with, once[1.0].grown_with) == (None, 1.0, None)
    assert found[1.0].mean < once[1.0].mean
    assert found[None].mean == once[None].mean


def many_leaves(n: int, depth: int) -> SurvivalData:
    """Times of every cell of a grid of features' halves differ; (n,) rows in 2**depth cells."""
    rng = np.random.default_rng(1)
    x = pd.DataFrame(rng.random((n, 4)), columns=[f"x{k}" for k in range(4)])
    cell = sum(2**k * (x[f"x{k}"] > 0.5).to_numpy() for k in range(depth))
    level = rng.permutation(np.linspace(-4, 4, 2**depth))
    return survival_data(x, time=np.exp(level[cell]) * rng.exponential(1, n), event=np.ones(n, dtype=bool))


def test_larger_trees_are_grown_on_the_largest_where_larger_trees_pay():
    usual = Grid(terms=(1,), ridges=(0.3,), shrinkage=((10.0, None),), n_folds=2)
    asked = []
    found = family_of(many_leaves(1500, 4), usual).trees(lambda: False, lambda what, _: asked.append(what))
    assert {t.candidate.leaves for t in found} == {2, 3, 4, 6, 8, 12, 16}
    assert asked[-1] == "weibull, depth 4"
    means = {t.candidate.leaves: t.mean for t in found}
    assert means[12] < means[8] - 0.1
    assert max(sum(rule is not None for rule in trial.rules) for trial in found) > 10
    few = family_of(many_leaves(600, 1), usual).trees(lambda: False, lambda *_: None)
    assert max(t.candidate.leaves for t in few) == 8  # two leaves are all there is
