"""Sweeps over sorted rows: sums, leaf costs, and the best next split of both sides of a cut, by enumeration."""

import numpy as np
import pytest
from oracles.plain_cuts import cutting
from oracles.plain_search import body

from softsurv.exact.cuts.sweep import best_cut, leaf_sides, mark_sides, stump_sides
from softsurv.exact.objectives import relative_risk


def survival(n, causes=1):
    rng = np.random.default_rng(n)
    pairs = [relative_risk.statistics(rng.random(n) < 0.6, rng.exponential(size=n)) for _ in range(causes)]
    return {"task": relative_risk.TASK, "statistics": np.hstack(pairs)}


KINDS = {
    "two labels": {"levels": 6},
    "three labels": {"levels": 6, "statistics": np.random.default_rng(1).integers(0, 9, (20, 3)).astype(float)},
    "survival": {"levels": 6, **survival(20)},
    "two causes": {"levels": 6, **survival(20, 2)},
    "two labels, least size": {"levels": 6, "min_leaf": 5},
    "three labels, least size": {
        "levels": 6, "min_leaf": 5, "statistics": np.random.default_rng(1).integers(0, 9, (20, 3)).astype(float)
    },
    "survival, least size": {"levels": 6, "min_leaf": 5, **survival(20)},
}  # fmt: skip


def of_kind(kind):
    made = cutting(n=20, seed=3, nominal=[False, True, False], **KINDS[kind])
    assert made.cuts.two_labels == kind.startswith("two labels")
    assert made.cuts.few_labels == kind.startswith("three labels")
    return made


def best_split(made, rows, sized=True):
    """Least cost of some rows with one more split on any column, of two leaves; inf where there is none."""
    best = np.inf
    for f in range(len(made.cuts.code)):
        code = made.cuts.code[f, rows]
        for value in np.unique(code)[:-1]:
            best = min(
                best, sum(bare_cost(made, rows[code <= value if side else code > value], sized) for side in (0, 1))
            )
    return best


def bare_cost(made, rows, sized):
    stats = made.problem.stats[rows].sum(axis=0)
    if sized and made.found.problem.use_size and stats[-1] < made.problem.min_leaf:
        return np.inf
    return float(made.found.search.task.costs(stats[None, : made.problem.n_statistics])[0])


@pytest.mark.parametrize("kind", KINDS)
def test_running_sums_of_the_columns(kind):
    made = of_kind(kind)
    cuts, width = made.cuts, made.problem.stats.shape[1]
    for f in range(len(cuts.code)):
        order = cuts.order[f, : made.n]
        assert (np.diff(cuts.code[f, order]) >= 0).all()
        firsts = [0, *(np.flatnonzero(np.diff(cuts.code[f, order])) + 1), made.n]
        assert cuts.start[f, : cuts.n_codes[f] + 1].tolist() == firsts
        for at in (0, 7, made.n):
            run = cuts.run[f * (width + 2) : (f + 1) * (width + 2), at]
            np.testing.assert_allclose(run[:width], made.problem.stats[order[:at]].sum(axis=0), atol=1e-12)
            np.testing.assert_allclose(run[width], made.problem.floor[order[:at]].sum(), atol=1e-12)
            np.testing.assert_allclose(run[width + 1], cuts.worst[order[:at]].sum(), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_best_single_cut_of_a_column(kind):
    made = of_kind(kind)
    rows = made.found.rows
    for f in range(len(made.cuts.code)):
        value, cut, free = body(best_cut)(made.problem, made.cuts, 0, f, made.n)
        sized, unsized = (
            [sum(bare_cost(made, rows[part], s) for part in (left, ~left)) for left in made.column(f)] for s in (1, 0)
        )
        assert value == pytest.approx(min(sized, default=np.inf))
        assert free == pytest.approx(min(unsized, default=np.inf))
        assert not np.isfinite(value) or sized[cut] == pytest.approx(value)


@pytest.mark.parametrize("kind", KINDS)
def test_both_sides_of_every_cut_with_one_more_split(kind):
    made = of_kind(kind)
    rows, cuts = made.found.rows, made.cuts
    for f in range(len(cuts.code)):
        for cut, left in enumerate(made.column(f)):
            body(stump_sides)(made.problem, cuts, 0, f, cut, made.n, np.inf)
            for side, part in enumerate((rows[left], rows[~left])):
                assert cuts.leaf[side] == pytest.approx(bare_cost(made, part, True))
                assert cuts.leaf[2 + side] == pytest.approx(bare_cost(made, part, False))
                for place, sized in ((side, True), (2 + side, False)):
                    leaf = bare_cost(made, part, sized)
                    expected = min(best_split(made, part, sized), leaf)
                    assert min(cuts.stump[place], leaf) == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["two labels, least size", "three labels, least size", "survival, least size"])
def test_costs_under_a_least_size_are_there_where_they_may_be_below_the_limit(kind):
    made = of_kind(kind)
    rows, cuts, missing = made.found.rows, made.cuts, 0
    for f in range(len(cuts.code)):
        for cut, left in enumerate(made.column(f)):
            sides = [rows[left], rows[~left]]
            free = sum(min(best_split(made, part, False), bare_cost(made, part, False)) for part in sides)
            for limit in (free - 1e-9, free + 1e-6):
                body(stump_sides)(made.problem, cuts, 0, f, cut, made.n, limit)
                assert cuts.stump[2:].sum() >= free - 1e-9
                if limit > free:
                    for side, part in enumerate(sides):
                        leaf = bare_cost(made, part, True)
                        expected = min(best_split(made, part), leaf)
                        assert min(cuts.stump[side], leaf) == pytest.approx(expected, abs=1e-12)
                else:
                    missing += int(np.isinf(cuts.stump[:2]).all())
    assert (missing > 10) == ("labels" in kind)


def test_sides_are_marked_by_place():
    made = of_kind("survival")
    body(mark_sides)(made.cuts, 0, 0, 2, 6, made.n)
    order = made.cuts.order[0, : made.n]
    assert made.cuts.side[order].tolist() == [0, 0, 1, 1, 1, 1] + [0] * (made.n - 6)
    body(leaf_sides)(made.problem, made.cuts, 0, 0, 5, made.n)
    np.testing.assert_allclose(made.cuts.total[0], made.problem.stats[order[:5]].sum(axis=0))
    np.testing.assert_allclose(made.cuts.total.sum(axis=0), made.problem.stats[order].sum(axis=0))
