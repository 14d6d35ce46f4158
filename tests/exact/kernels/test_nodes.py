"""Steps of the recursion: scans, bounds of sides, the cache and the incumbent, each by itself."""

from types import SimpleNamespace

import numpy as np
import pytest
from oracles.plain_python import plain
from oracles.plain_search import body, run_state, small

from softsurv.exact.bounds import Bounds
from softsurv.exact.kernels import nodes as kernels
from softsurv.exact.kernels.cache import new_cache

LOW, HIGH = np.uint64(11), np.uint64(2**63 + 5)


@pytest.fixture(scope="module")
def opened():
    """A search of which the base case and the scan of all rows have run."""
    found = small(n=20, levels=4, seed=2, bounds=Bounds(bits=False))
    body(kernels.scan)(found.problem, found.rows, len(found.rows), 0, found.nodes)
    found.problem.calls.solve_two(found.problem, found.rows, len(found.rows), 2, found.local)
    return found


def test_scan_sums_what_goes_left(opened):
    problem, nodes = opened.problem, opened.nodes
    for code in range(len(problem.feature_of)):
        left = opened.rows[opened.goes_left(code)[opened.rows]]
        np.testing.assert_array_equal(nodes.key[0, code], problem.keys[left].sum(axis=0, dtype=np.uint64))
        assert nodes.floor[0, code] == pytest.approx(problem.floor[left].sum())
        assert nodes.n_left[code] == len(left)
    assert nodes.total_floor[0] == pytest.approx(problem.floor[opened.rows].sum())


@pytest.mark.parametrize("n", [0, 1, 2, 7, 40])
def test_pairs_are_sorted_by_score_and_then_by_split(n):
    rng = np.random.default_rng(n)
    score, order = rng.integers(0, 5, n).astype(float), rng.permutation(n).astype(np.int32)
    expected = sorted(zip(score, order, strict=True))
    body(kernels.sort_up)(score, order, n)
    assert list(zip(score, order, strict=True)) == expected


def test_splits_rank_by_the_trees_below_them(opened):
    local, nodes = opened.local, opened.nodes
    body(kernels.rank_splits)(opened.problem, 0, nodes, local, 0.0)
    m = int(local.size[2])
    scores = {int(code): local.stump[:, s].sum() for s, code in enumerate(local.split_code[:m])}
    order = nodes.order[0, :m].tolist()
    assert sorted(order) == sorted(scores)
    assert order == sorted(order, key=lambda code: (scores[code], code))
    for s, code in enumerate(local.split_code[:m]):
        left, right = (local.stump[side ^ local.flipped[s], s] for side in range(2))
        if left != right:
            assert nodes.harder[0, code] == (right > left)


def test_rank_adds_what_the_test_of_a_split_costs(opened):
    local = opened.local
    prices = SimpleNamespace(test_of=np.array([0, 1, 2]))
    problem = SimpleNamespace(prices=prices, feature_of=opened.problem.feature_of)
    given = {name: getattr(local, name) for name in ("size", "stump", "split_code", "flipped")}
    dear = SimpleNamespace(**given, due=np.array([1e6, 0.0, 0.0]))
    body(kernels.rank_splits)(problem, 0, opened.nodes, dear, 2.0)
    features = opened.problem.feature_of[opened.nodes.order[0, : int(local.size[2])]]
    first = int((features == 0).sum())
    assert (features[-first:] == 0).all()
    assert (features[:-first] != 0).all()


def optimum(found, rows, depth, leaves):
    """Best cost of some rows, by the recursion without bounds from above."""
    cache, shared = run_state(found, leaves)
    problem = found.problem._replace(use_cache=False)
    return found.problem.calls.solve(
        problem, rows, len(rows), np.uint64(0), np.uint64(0), depth, leaves, np.inf, 1, found.nodes, found.local,
        found.lanes, cache, shared,
    )  # fmt: skip


def sides_of(found):
    for left, code in list(found.splits()):
        yield code, [found.rows[left[found.rows]], found.rows[~left[found.rows]]]


@pytest.mark.parametrize("look_ahead", [True, False])
def test_look_ahead_bounds_every_side_from_below(look_ahead):
    found = small(n=20, levels=4, seed=2, complexity=0.3, bounds=Bounds(bits=False, look_ahead=look_ahead))
    body(kernels.scan)(found.problem, found.rows, len(found.rows), 0, found.nodes)
    found.problem.calls.solve_two(found.problem, found.rows, len(found.rows), 2, found.local)
    body(kernels.rank_splits)(found.problem, 0, found.nodes, found.local, 0.0)
    body(kernels.look_ahead)(found.problem, 0, found.nodes, found.local, found.local.stump, 3)
    bound = np.full((2, len(found.problem.feature_of)), np.nan)
    body(kernels.reset_bounds)(0, found.nodes, bound, int(found.local.size[2]))
    for code, sides in sides_of(found):
        for side, rows in enumerate(sides):
            floor = found.problem.floor[rows].sum()
            ahead = min(optimum(found, rows, 3, 2), floor + 3 * 0.3)
            assert bound[side, code] == pytest.approx(ahead if look_ahead else floor)
            assert bound[side, code] <= optimum(found, rows, 3, 8) + 1e-9


def test_an_interval_bound_reaches_the_sides_that_contain_it():
    found = small(n=20, levels=4, seed=2, bounds=Bounds(bits=False), nominal=[False, True, False])
    problem, floor = found.problem, np.zeros(12)
    floor[:4] = [0.5, 1.0, 1.25, 2.0]
    bound = np.zeros((2, 12))
    body(kernels.raise_bounds)(problem, bound, floor, 1, 5.0, 7.0)
    np.testing.assert_allclose(bound[0, :4], [0.0, 5.0, 5.25, 6.0])
    np.testing.assert_allclose(bound[1, :4], [7.5, 7.0, 0.0, 0.0])
    bound[:] = 0.0
    body(kernels.raise_bounds)(problem, bound, np.zeros(12), 5, 5.0, 7.0)  # a level of a nominal feature: itself alone
    assert np.flatnonzero(bound.any(axis=0)).tolist() == [5]


@pytest.mark.parametrize(("left_most", "right_most"), [(4, 4), (2, 4), (4, 2)])
def test_similar_support_never_exceeds_what_a_side_costs(left_most, right_most):
    found = small(n=30, seed=3, features=4)
    assert found.problem.use_similar
    found.local.bits.wanted[0] = 1
    found.problem.calls.solve_two(found.problem, found.rows, len(found.rows), 2, found.local)
    body(kernels.rank_splits)(found.problem, 0, found.nodes, found.local, 0.0)
    body(kernels.keep_shared)(0, found.nodes, found.local)
    costs = {
        code: (optimum(found, sides[0], 2, left_most), optimum(found, sides[1], 2, right_most))
        for code, sides in sides_of(found)
    }
    found.problem.calls.solve_two(found.problem, found.rows, len(found.rows), 2, found.local)
    units, raised = found.problem.row_kinds, 0

    def most(rows):
        return float((units.kind_count[rows] @ units.worst).sum())

    for split, (left, right) in costs.items():
        bound = np.zeros((2, len(found.problem.feature_of)))
        body(kernels.raise_similar)(0, bound, split, left, right, left_most, right_most, len(costs), found.nodes)
        raised += int((bound > 0).sum())
        here = found.goes_left(split)[found.rows]
        for code, both in costs.items():
            there = found.goes_left(code)[found.rows]
            if left_most == right_most:  # a side costs what another does, less the most of the other's own rows
                near_left = max(left - most(found.rows[here & ~there]), right - most(found.rows[~here & ~there]))
                near_right = max(left - most(found.rows[here & there]), right - most(found.rows[~here & there]))
                np.testing.assert_allclose(bound[:, code], np.maximum([near_left, near_right], 0.0), atol=1e-9)
            assert bound[0, code] <= both[0] + 1e-9
            assert bound[1, code] <= both[1] + 1e-9
    assert raised > 0


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_leaves_are_shared_in_every_allowed_way_once(depth):
    for leaves in range(2, (1 << depth) + 1):
        most = 1 << (depth - 1)
        shares = [body(kernels.leaf_shares)(turn, leaves, most) for turn in range(leaves)]
        used = [one for one in shares if one != (0, 0)]
        possible = [(a, leaves - a) for a in range(1, leaves) if a <= most and leaves - a <= most]
        assert sorted(used) == possible
        assert abs(used[0][0] - used[0][1]) <= 1  # an even share comes first


@pytest.mark.parametrize(("given", "tight"), [((5, 3), (2, 3)), ((3, 8), (3, 8)), ((3, 20), (3, 8)), ((6, 5), (4, 5))])
def test_limits_with_nothing_to_spare(given, tight):
    assert body(kernels.limits)(*given) == tight


def test_the_cache_answers_with_an_optimum_or_a_bound():
    cache, keep, look = new_cache(1e5), body(kernels.keep), body(kernels.look_up)
    keep(True, LOW, HIGH, 3, 6, 4.0, kernels.UNKNOWN, cache)
    assert look(True, cache, LOW, HIGH, 3, 6, 3.5) == (True, 4.0, kernels.UNKNOWN)
    assert look(True, cache, LOW, HIGH, 3, 6, 4.5) == (False, 4.0, kernels.UNKNOWN)
    keep(True, LOW, HIGH, 3, 6, 3.0, kernels.UNKNOWN, cache)  # a weaker bound changes nothing
    assert look(True, cache, LOW, HIGH, 3, 6, 3.5)[1] == 4.0
    keep(True, LOW, HIGH, 3, 6, 5.0, 17.0, cache)
    assert look(True, cache, LOW, HIGH, 3, 6, np.inf) == (True, 5.0, 17.0)
    assert look(True, cache, LOW, HIGH, 3, 5, np.inf) == (False, -np.inf, kernels.UNKNOWN)
    assert look(False, cache, LOW, HIGH, 3, 6, np.inf) == (False, -np.inf, kernels.UNKNOWN)


def test_values_of_depth_two_serve_two_to_four_leaves():
    cache = new_cache(1e5)
    body(kernels.store_two)(False, LOW, HIGH, np.arange(5.0), cache)
    assert cache.used[0] == 0
    body(kernels.store_two)(True, LOW, HIGH, np.array([0.0, 9.0, 6.0, 4.0, 3.0]), cache)
    look = body(kernels.look_up)
    assert [look(True, cache, LOW, HIGH, 2, leaves, np.inf)[:2] for leaves in (2, 3, 4)] == [
        (True, 6.0), (True, 4.0), (True, 3.0),
    ]  # fmt: skip
    assert not look(True, cache, LOW, HIGH, 2, 1, np.inf)[0]


def test_of_equally_good_solutions_the_first_in_rank_is_kept():
    offer = body(kernels.offer_solution)
    shared = SimpleNamespace(
        best=np.array([10.0]), choice=np.array([kernels.UNKNOWN]), rank=np.array([-1]), lock=np.zeros(1, np.int64)
    )
    assert offer(shared, 3.0, kernels.UNKNOWN, 0, 0.1)[0] == 10.0  # no tree, no offer
    assert offer(shared, 8.0, 5.0, 4, 0.1) == (8.0, 5.0, 4)
    assert offer(shared, 8.05, 6.0, 7, 0.1) == (8.0, 5.0, 4)
    assert offer(shared, 8.05, 7.0, 2, 0.1) == (8.05, 7.0, 2)
    assert offer(shared, 7.0, 8.0, 9, 0.1) == (7.0, 8.0, 9)
    assert shared.lock[0] == 0


def test_bounds_of_the_root_are_shown_for_every_share_of_leaves(opened):
    shared = SimpleNamespace(bound=np.zeros((3, 2, len(opened.problem.feature_of))))
    bound = np.arange(2.0 * len(opened.problem.feature_of)).reshape(2, -1) + 1.0
    body(kernels.show_bounds)(shared, bound, opened.local)
    divides = np.isin(np.arange(bound.shape[1]), opened.local.split_code[: opened.local.size[2]])
    np.testing.assert_array_equal(shared.bound, np.repeat(np.where(divides, bound, 0.0)[None], 3, axis=0))


@pytest.mark.parametrize("leaves", range(2, 9))
def test_best_share_of_leaves_between_two_sides(leaves):
    two = np.random.default_rng(leaves).random((2, 5, 3))
    value, left = body(kernels.best_leaf_shares)(two, 1, leaves)
    options = {a: two[0, a, 1] + two[1, min(leaves - a, 4), 1] for a in range(1, 5) if 1 <= leaves - a <= 4}
    assert value == min(options.values())
    assert options[left] == value


def test_a_node_of_depth_three_starts_from_what_is_known(opened):
    problem, nodes, local = opened.problem, opened.nodes, opened.local
    key, cache = problem.keys[opened.rows].sum(axis=0, dtype=np.uint64), new_cache(1e5)
    code = int(local.split_code[1])
    right = key - nodes.key[0, code]
    plain(kernels.store_two)(True, *right, np.array([0.0, 9.0, 6.0, 4.0, 3.0]), cache)
    body(kernels.open_three)(problem, len(opened.rows), *key, 0, nodes, local, cache)
    assert nodes.known[1, code] == 1
    assert nodes.two[1, 2:, code].tolist() == [6.0, 4.0, 3.0]
    assert sum(nodes.known[side, one] for one, _ in sides_of(opened) for side in range(2)) == 1
    for s, (left, one) in enumerate(opened.splits()):
        n_left = int(left[opened.rows].sum())
        assert nodes.fewer[s] == (2 * n_left <= len(opened.rows))
        for side in range(2):
            part = opened.rows[left[opened.rows] == (side == 0)]
            assert nodes.two[side, 1, one] == pytest.approx(opened.cost(part))
