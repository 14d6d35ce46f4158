"""Fits of leaves in whole compiled rounds against the rounds of torch's operators."""

import numpy as np
import pytest
import torch
from oracles.simulated import simulate, with_everything

from softsurv.hazards import family_names, get_family
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.problem import join_problems, make_problem
from softsurv.soft.row_kernels import BLOCK
from softsurv.sparse import fit_kernels
from softsurv.sparse.fit_rounds import ROUNDS_A_SORT, mostly_zero, parted, rounds_of
from softsurv.sparse.leaf_fit import LeafObjective, LeafPenalties, fit_leaves
from softsurv.sparse.leaf_metric import leaf_metric
from softsurv.stopping import StopSignal

KNOWN = {"exponential", "weibull", "loglogistic", "spline_ph", "spline_po"}
ROWS, TREES, LEAVES = BLOCK + 41, 3, 3


def penalties(n_trees, slopes):
    ridge = torch.linspace(0.01, 0.3, n_trees).double()
    return LeafPenalties(ridge, 0.02 * torch.ones_like(ridge), torch.full_like(ridge, slopes))


def some_leaf(n_trees, rows, seed=0):
    """A leaf for each row; the last tree's last leaf is empty."""
    leaf = torch.randint(0, LEAVES, (n_trees, rows), generator=torch.Generator().manual_seed(seed))
    leaf[-1] = leaf[-1].clamp(max=LEAVES - 2)
    return leaf


def assert_same(problem, slopes, rounds):
    leaf, settings = some_leaf(problem.n_trees, problem.design.shape[1]), LbfgsSettings(max_iterations=rounds)
    found = fit_leaves(problem, leaf, LEAVES, penalties(problem.n_trees, slopes), settings=settings)
    with operators_alone():
        expected = fit_leaves(problem, leaf, LEAVES, penalties(problem.n_trees, slopes), settings=settings)
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(found.point[0], expected.point[0], rtol=1e-6, atol=1e-8)
    assert torch.equal(found.converged, expected.converged)


@pytest.mark.parametrize("slopes", [torch.inf, 0.05])
@pytest.mark.parametrize("family", sorted(KNOWN))
def test_a_few_rounds_are_those_of_operators(family, slopes):
    weight = torch.ones(TREES, ROWS).double()
    weight[1, ::5] = 0  # a fold's held-out rows
    problem = make_problem(simulate(ROWS), get_family(family), weight=weight)
    assert_same(problem, slopes, 6)


@pytest.mark.parametrize("slopes", [torch.inf, 0.05])
def test_groups_of_other_lengths(slopes):
    parts = [make_problem(simulate(n, seed=n), get_family("spline_ph"), n_trees=2) for n in (90, 71)]
    assert_same(join_problems(parts), slopes, 6)


def test_wide_tables_have_the_diagonal_of_the_metric(monkeypatch):
    monkeypatch.setattr("softsurv.soft.gram.MAX_COLUMNS", 2)
    monkeypatch.setattr("softsurv.sparse.leaf_metric.MAX_COLUMNS", 2)
    problem = make_problem(simulate(ROWS), get_family("spline_ph"), n_trees=2)
    assert leaf_metric(_leaves(problem), torch.zeros(2, problem.family.n_shape).double()).inverse.dim() == 2
    assert_same(problem, torch.inf, 6)


def with_levels(n, n_levels, seed=0):
    """Rows with a column of 0 and 1 for each level of a category, some between the numbers."""
    data, level = simulate(n, seed=seed), np.random.default_rng(seed).integers(0, n_levels, n)
    frame = data.X.copy()
    for k in range(n_levels):
        frame.insert(k % 3, f"level {k}", (level == k).astype(float))
    return data._derive({"X": frame})


@pytest.mark.parametrize("slopes", [torch.inf, 0.05])
@pytest.mark.parametrize("family", ["exponential", "weibull", "spline_po"])
def test_columns_that_are_mostly_zero_are_skipped_where_they_are(family, slopes, monkeypatch):
    weight = torch.ones(TREES, ROWS).double()
    weight[1, ::5] = 0
    problem = make_problem(with_levels(ROWS, 70), get_family(family), weight=weight)
    assert parted(problem.design, mostly_zero(problem.design)[0])[1].shape[-1] == 4  # the ones and the numbers
    assert_same(problem, slopes, 6)
    monkeypatch.setattr("softsurv.sparse.fit_rounds.PRODUCTS_A_CALL", 1)  # one tree a call
    assert_same(problem, slopes, 6)


def test_groups_have_their_own_numbers_other_than_zero(monkeypatch):
    parts = [make_problem(with_levels(n, 70, n), get_family("spline_ph"), n_trees=2) for n in (200, 171)]
    problem = join_problems(parts)
    (place, begin, column, value), dense = parted(problem.design, mostly_zero(problem.design)[0])
    table = torch.zeros_like(problem.design).numpy()
    table[:, :, place[: dense.shape[-1]]] = dense.numpy()
    for g, starts in enumerate(begin):
        for row in range(len(starts) - 1):
            some = slice(starts[row], starts[row + 1])
            table[g, row, column[some]] = value[some]
    np.testing.assert_array_equal(table, problem.design.numpy())
    assert_same(problem, torch.inf, 6)
    monkeypatch.setattr("softsurv.sparse.fit_rounds.PRODUCTS_A_CALL", 1)
    assert_same(problem, torch.inf, 6)


def test_a_large_table_of_levels_is_small_without_its_zeros(monkeypatch):
    problem = make_problem(with_levels(ROWS, 70), get_family("weibull"))
    monkeypatch.setattr("softsurv.sparse.fit_rounds.MOST_NUMBERS", 5 * ROWS)
    assert _takes(problem)
    monkeypatch.setattr("softsurv.sparse.fit_rounds.MANY_COLUMNS", 1000)
    assert not _takes(problem)


def test_a_table_that_stays_too_large_is_not_laid_out(monkeypatch):
    def parted_(*_):
        raise AssertionError("memory is taken for a table that no loop reads")

    problem = make_problem(with_levels(ROWS, 70), get_family("weibull"))
    monkeypatch.setattr("softsurv.sparse.fit_rounds.parted", parted_)
    monkeypatch.setattr("softsurv.sparse.fit_rounds.MOST_NUMBERS", 5 * ROWS - 1)
    assert not _takes(problem)


def test_a_table_whose_every_column_is_mostly_zero():
    design = torch.zeros(1, 16, 64).double()
    design[0, 3, 5], design[0, 3, 7], design[0, 15, 0] = 2.0, -1.0, 3.0
    few, numbers = mostly_zero(design)
    (place, begin, column, value), dense = parted(design, few)
    assert numbers == 3
    assert dense.shape == (1, 16, 0)
    np.testing.assert_array_equal(place, np.arange(64))
    np.testing.assert_array_equal(begin[0], np.repeat([0, 2, 3], [4, 12, 1]))
    np.testing.assert_array_equal(column, [5, 7, 0])
    np.testing.assert_array_equal(value, [2.0, -1.0, 3.0])


def _leaves(problem):
    leaf = some_leaf(problem.n_trees, problem.design.shape[1])
    return LeafObjective(problem, leaf, LEAVES, penalties(problem.n_trees, torch.inf)).leaves


def _takes(problem):
    metric = leaf_metric(_leaves(problem), torch.zeros(problem.n_trees, problem.family.n_shape).double())
    return rounds_of(_leaves(problem), metric) is not None


@pytest.mark.parametrize("family", family_names())
def test_other_families_and_censorings_take_operators(family):
    assert _takes(make_problem(simulate(40), get_family(family))) == (family in KNOWN)
    assert not _takes(make_problem(with_everything(), get_family(family)))


def test_tables_that_are_too_large_to_be_laid_out_again(monkeypatch):
    problem = make_problem(simulate(40), get_family("weibull"))
    assert _takes(problem)
    monkeypatch.setattr("softsurv.sparse.fit_rounds.MOST_NUMBERS", 10)
    assert not _takes(problem)


def test_the_clock_is_looked_at_between_calls(monkeypatch):
    monkeypatch.setattr("softsurv.sparse.fit_rounds.PRODUCTS_A_CALL", 1)  # one tree a call
    problem = make_problem(simulate(ROWS), get_family("weibull"), n_trees=TREES)
    start = torch.zeros(TREES, 1 + LEAVES, problem.design.shape[-1] + problem.family.n_shape).double()
    with StopSignal(0.0) as budget:
        end = fit_leaves(problem, some_leaf(TREES, ROWS), LEAVES, penalties(TREES, torch.inf), start, budget=budget)
    assert torch.equal(end.point[0], start)


@pytest.fixture
def calls(monkeypatch):
    """The trees and rounds of each call of the compiled loop, where rounds of all trees are too long for one."""
    monkeypatch.setattr("softsurv.sparse.fit_rounds.PRODUCTS_A_CALL", 1)
    seen, loop = [], fit_kernels.fit_rounds

    def counted(state, limits, rounds, *tables):
        seen.append((len(state[0]), rounds))
        loop(state, limits, rounds, *tables)

    monkeypatch.setattr(fit_kernels, "fit_rounds", counted)
    return seen


@pytest.mark.parametrize("slopes", [torch.inf, 0.05])
def test_where_rounds_are_long_each_tree_has_calls_of_several(calls, slopes):
    problem = make_problem(simulate(ROWS), get_family("spline_ph"), n_trees=TREES)
    assert_same(problem, slopes, ROUNDS_A_SORT - 2)
    assert set(calls) == {(1, ROUNDS_A_SORT)}
    assert len(calls) <= 2 * TREES  # rows are sorted in every call: not in every round


def test_trees_apart_in_groups_of_two(calls):
    parts = [make_problem(simulate(n, seed=n), get_family("spline_ph"), n_trees=2) for n in (90, 71)]
    assert_same(join_problems(parts), torch.inf, 6)
    assert {trees for trees, _ in calls} == {1}


def test_the_clock_is_looked_at_between_trees(calls):
    problem = make_problem(simulate(ROWS), get_family("weibull"), n_trees=TREES)

    class EndsAfterACall:
        exhausted = property(lambda self: len(calls) > 0)

    leaf = some_leaf(TREES, ROWS)
    fit_leaves(problem, leaf, LEAVES, penalties(TREES, torch.inf), budget=EndsAfterACall())
    assert calls == [(1, ROUNDS_A_SORT)]
