"""Local search over whole trees: what it says of a tree is true, it keeps the limits, what follows is still exact."""

import fuzz_exact
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.two_classes import error_search, few, tiny

from softsurv.exact.kernels.tree_rows import AREA, F1, MATTHEWS
from softsurv.exact.objectives.linear import ERRORS
from softsurv.exact.problem import sum_by_group
from softsurv.exact.tree import LabelledTree
from softsurv.exact.vector_search import VectorSearch
from softsurv.exact.whole_trees.auc import AucSearch
from softsurv.exact.whole_trees.auc_kernels import curve_area
from softsurv.exact.whole_trees.improve import LocalSearch
from softsurv.exact.whole_trees.measures import MEASURES, maximise
from softsurv.results import Status
from softsurv.stopping import StopSignal

seeds = st.integers(0, 10_000)
LOSSES = {AREA: "area", F1: "f1", MATTHEWS: "mcc"}


def many_codes(seed, depth, **how):
    """A search over ordered and nominal features, with weights, and its codes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 5, (150, 5)).astype(np.int32)
    label = (codes @ rng.normal(size=5) + rng.normal(size=150) > 0).astype(int)
    label[:2] = 0, 1
    weight = rng.integers(1, 6, 150) / 2
    statistics = np.where(np.arange(2) == label[:, None], weight[:, None], 0.0)
    return VectorSearch(ERRORS, codes, np.full(5, 5), np.arange(5) > 2, statistics, depth, **how)


def loss_by_definition(kind, leaves, share, price):
    """From the sums (L, 2) of leaves; the labels of a measure are the best of all."""
    negatives, positives = leaves.sum(axis=0)
    if kind == AREA:
        return curve_area(leaves, share, positives, negatives) / share + price * len(leaves)
    called = (np.arange(1 << len(leaves))[:, None] >> np.arange(len(leaves))) & 1
    points = zip(positives - called @ leaves[:, 1], called @ leaves[:, 0], strict=True)
    best = max(MEASURES[LOSSES[kind]](np.array(v), positives, negatives) for v in points)
    return 1 - best + price * len(leaves)


@few
@given(seeds, st.integers(1, 4), st.sampled_from(list(LOSSES)), st.sampled_from([1.0, 0.3]),
       st.sampled_from([0.0, 0.01]), st.sampled_from([16, 5, 2]), st.sampled_from([1, 12]))  # fmt: skip
def test_trees_keep_the_limits_and_have_the_loss_that_is_said(seed, depth, kind, share, price, most, min_leaf):
    search = many_codes(seed, depth, min_leaf=min_leaf)
    most = min(most, 1 << depth)
    local = LocalSearch(search, kind, most, StopSignal(), share=share, price=price)
    search.use(np.array([1.0, 0.7]))
    start = search.best(StopSignal(), leaves=most).tree.tree
    loss, tree = local.improved(start), local.tree
    leaf = LabelledTree(tree, np.zeros(tree.n_leaves, int)).leaf_of(search.codes, search.nominal)
    sums = sum_by_group(search.statistics, leaf, tree.n_leaves)
    np.testing.assert_allclose(tree.sums[tree.leaves, :2], sums)
    assert loss == pytest.approx(loss_by_definition(kind, sums, share, price))
    assert loss <= loss_by_definition(kind, start.sums[start.leaves, :2], share, price) + 1e-9
    assert tree.n_leaves <= most
    assert tree.depth <= depth
    assert np.bincount(leaf, minlength=tree.n_leaves).min() >= min_leaf


@few
@given(seeds, st.integers(0, 3), st.sampled_from(["auc", *MEASURES]), st.sampled_from([None, 3]),
       st.sampled_from([1, 4]))  # fmt: skip
def test_a_search_that_begins_so_is_still_exact(seed, depth, name, leaves, min_leaf):
    """A first split that leaves too few rows on a side is no start."""
    columns, label, _ = tiny(seed)

    def best(search):
        if name == "auc":
            result = AucSearch(search, leaves=leaves).solve(StopSignal())
            return result.loss, result.bound, result.status
        result = maximise(name, search, StopSignal(), leaves)
        np.testing.assert_allclose(search.value(result.candidate.tree), result.candidate.v)
        return result.value, result.bound, result.status

    plain = best(error_search(columns, label, depth, min_leaf=min_leaf))
    with fuzz_exact.taken_for_long():
        value, bound, status = best(error_search(columns, label, depth, min_leaf=min_leaf))
    assert status == Status.OPTIMAL
    assert value == pytest.approx(plain[0])
    assert bound == pytest.approx(plain[0])


def test_many_starts_end_at_the_optimum_here():
    """Depth three of 80 rows: the best of all starts is the best of all trees, as the exact search says."""
    columns, label, _ = tiny(3, n=80, splits=7)
    exact = AucSearch(error_search(columns, label, 3)).solve(StopSignal())
    search = error_search(columns, label, 3)
    local = LocalSearch(search, AREA, 8, StopSignal())
    negatives, positives = search.totals
    losses = list(local.first_trees([np.array([1 / positives, 1 / negatives])]))
    assert exact.status == Status.OPTIMAL
    assert len(losses) > 5
    assert min(losses) == pytest.approx(exact.loss)


def test_it_ends_with_its_work_or_the_time():
    search = many_codes(0, 4)
    directions = [np.ones(2)]
    everything = len(list(LocalSearch(search, MATTHEWS, 16, StopSignal()).first_trees(directions)))
    few_trees = len(list(LocalSearch(search, MATTHEWS, 16, StopSignal(), work=1e5).first_trees(directions)))
    no_time = len(list(LocalSearch(search, MATTHEWS, 16, StopSignal(0.0)).first_trees(directions)))
    assert everything > few_trees >= 1
    assert no_time == 1


@pytest.mark.parametrize(("depth", "seconds", "searches"), [(2, None, 2), (3, None, 2), (4, None, 6), (2, 0.0, 1)])
def test_it_searches_no_more_and_no_deeper_than_its_trees_need(monkeypatch, depth, seconds, searches):
    """Below the horizon there is nothing to grow; and each search after the time limit would have its time of grace."""
    search, asked = many_codes(0, depth), []
    best = VectorSearch.best
    monkeypatch.setattr(VectorSearch, "best", lambda *args, **how: asked.append(how["depth"]) or best(*args, **how))
    list(LocalSearch(search, MATTHEWS, 1 << depth, StopSignal(seconds)).first_trees([np.ones(2), np.array([1.0, 2.0])]))
    assert len(asked) == searches
    assert max(asked) == max(depth - 1, 2)


def test_trees_of_depth_three_begin_with_every_first_split():
    """The search of depth two before them says which are promising."""
    search = many_codes(0, 3)
    local = LocalSearch(search, MATTHEWS, 8, StopSignal())
    large = int(local._is_large.sum())
    assert large > 10
    assert len(list(local.first_trees([np.ones(2)]))) == 1 + large
