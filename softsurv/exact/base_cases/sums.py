"""The base case: the best trees of depth at most two over one subset, for every limit on leaves from 1 to 4.

For splits s and t of different features, the sums of the four cells (s and t, s and not t, ...) follow from one
two-dimensional histogram per pair of original features, cumulated (paper `surtree`, Algorithm 1, has one column per
split instead). Every cell's cost is computed once and serves both the tree with root s and that with root t.
Two splits of one ordered feature bound an interval; its sums are a difference of one-dimensional ones.

`recursion.py` calls `solve_two`.
"""

from __future__ import annotations

from softsurv.exact.base_cases.leaf_prices import best_roots, leaf_batch, price_sides
from softsurv.exact.entries import ADDRESS, LONG, entry
from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.subsets import STOP, Local, localise, order_by_bin, sum_sides
from softsurv.exact.kernels.views import call, ints_at
from softsurv.exact.kernels.words import higher, lower
from softsurv.exact.problem import SearchArrays


@shared_kernel
def _same_feature(problem, local, f):
    """Second splits on the feature of the first: intervals of an ordered feature, pairs of levels of a nominal one."""
    s0, s1, chained = local.split_start[f], local.split_start[f + 1], local.chained[f]
    side, leaf, stump, batch, cost = local.side, local.leaf, local.stump, local.batch, local.cost
    begin = s0 + 1
    while begin < s1 and local.control[STOP] == 0:
        end, n = begin, 0
        while end < s1 and n + end - s0 <= cost.shape[0]:
            for k in range(side.shape[0]):
                here = side[k, end] if chained else local.total[k] - side[k, end]
                for i in range(end - s0):
                    batch[k, n + i] = here - side[k, s0 + i]
            n += end - s0
            end += 1
        call(problem.calls.price, leaf_batch(problem, batch, n, cost))
        at = 0
        for s in range(begin, end):
            one, best = (leaf[1, s], stump[0, s]) if chained else (leaf[0, s], stump[1, s])
            for i in range(s - s0):
                best = lower(best, leaf[0, s0 + i] + cost[at + i])
            for i in range(s - s0):
                stump[1, s0 + i] = lower(stump[1, s0 + i], cost[at + i] + one)
            stump[0 if chained else 1, s] = best
            at += s - s0
        begin = end


@shared_kernel
def _gather_row(local, f, s):
    """Bring the sums over (left of s, bin c) of later features from the split before to split s, row by row."""
    width = local.side.shape[0]
    b1 = local.bin_start[f + 1]
    b = s - local.split_start[f]
    gather, active, stats = local.gather, local.active, local.stats
    if b == 0 or not local.chained[f]:
        for c in range(b1 * width, local.size[1] * width):
            gather[c] = 0.0
    for j in range(local.bucket[f, b], local.bucket[f, b + 1]):
        i = local.by_bin[f, j]
        a = local.n_active[i] - 1
        while a >= 0 and active[i, a] >= b1:
            at = active[i, a] * width
            for k in range(width):
                gather[at + k] += stats[i, k]
            a -= 1


@shared_kernel
def _expand_row(local, f, s, at):
    """Sums of (left of s, left of t) for all splits t of later features, into ``batch[:, at:]``."""
    width = local.side.shape[0]
    gather, batch = local.gather, local.batch
    shift = at - local.split_start[f + 1]
    for h in range(f + 1, local.size[0]):
        c0, c1 = local.bin_start[h], local.bin_start[h + 1]
        t0, t1 = local.split_start[h] + shift, local.split_start[h + 1] + shift
        for k in range(width):
            run = 0.0
            if local.chained[h]:
                for c in range(c1 - c0):
                    run += gather[(c0 + c) * width + k]
                    batch[k, t0 + c] = run
            else:
                for c in range(c1 - c0):
                    value = gather[(c0 + c) * width + k]
                    run += value
                    batch[k, t0 + c] = value
                if t1 - t0 > c1 - c0:
                    batch[k, t1 - 1] = local.side[k, s] - run


@shared_kernel
def _other_features(problem, local, f):
    """First splits on feature f with second splits on later features, and the reverse."""
    s0, s1 = local.split_start[f], local.split_start[f + 1]
    side, stump, cost, batch = local.side, local.stump, local.cost, local.batch
    w = local.size[2] - s1
    chunk = higher(1, lower(s1 - s0, cost.shape[0] // (4 * w)))
    for begin in range(s0, s1, chunk):
        if local.control[STOP] != 0:
            break
        end = lower(begin + chunk, s1)
        for s in range(begin, end):
            _gather_row(local, f, s)
            _expand_row(local, f, s, 4 * w * (s - begin))
        # a loop of its own: vector loads right behind the scalar stores of a running sum would wait for them
        for s in range(begin, end):
            a = 4 * w * (s - begin)
            for k in range(side.shape[0]):
                here, rest = side[k, s], local.total[k] - side[k, s]
                for t in range(w):
                    both = batch[k, a + t]
                    other = side[k, s1 + t] - both
                    batch[k, a + w + t] = here - both
                    batch[k, a + 2 * w + t] = other
                    batch[k, a + 3 * w + t] = rest - other
        call(problem.calls.price, leaf_batch(problem, batch, 4 * w * (end - begin), cost))
        if problem.branching:
            _charge(problem, local, f, begin, end, w)
            continue
        for s in range(begin, end):
            a = 4 * w * (s - begin)
            best_left, best_right = stump[0, s], stump[1, s]
            for t in range(w):
                best_left = lower(best_left, cost[a + t] + cost[a + w + t])
                best_right = lower(best_right, cost[a + 2 * w + t] + cost[a + 3 * w + t])
            stump[0, s], stump[1, s] = best_left, best_right
            for t in range(w):
                stump[0, s1 + t] = lower(stump[0, s1 + t], cost[a + t] + cost[a + 2 * w + t])
                stump[1, s1 + t] = lower(stump[1, s1 + t], cost[a + w + t] + cost[a + 3 * w + t])


@shared_kernel
def _charge(problem, local, f, begin, end, w):
    """The last step of `_other_features` where rows pay for the second test, once the first has been made."""
    prices, s1, stump, cost = problem.prices, local.split_start[f + 1], local.stump, local.cost
    weight, total = local.side[prices.column], local.total[prices.column]
    first = prices.test_of[local.origin[f]]
    for s in range(begin, end):
        a = 4 * w * (s - begin)
        for h in range(f + 1, local.size[0]):
            second = prices.test_of[local.origin[h]]
            then, before = local.after[first, second], local.after[second, first]
            for u in range(local.split_start[h], local.split_start[h + 1]):
                t = u - s1
                both, here, there, neither = cost[a + t], cost[a + w + t], cost[a + 2 * w + t], cost[a + 3 * w + t]
                stump[0, s] = lower(stump[0, s], both + here + weight[s] * then)
                stump[1, s] = lower(stump[1, s], there + neither + (total - weight[s]) * then)
                stump[0, u] = lower(stump[0, u], both + there + weight[u] * before)
                stump[1, u] = lower(stump[1, u], here + neither + (total - weight[u]) * before)


@entry(SearchArrays, ADDRESS, LONG, LONG, Local)
def solve_two(problem, at, n, depth, local):
    """Trees of depth two. Best trees over n rows: ``local.value[1:5]``, first splits ``local.root[2:5]``.

    With ``depth`` 1 those with one split: up to ``local.value[2]`` and ``local.root[2]``.
    """
    rows = ints_at(at, (n,))
    localise(problem, rows, n, local)
    if depth > 1:
        order_by_bin(problem, rows, local)
    sum_sides(local)
    price_sides(problem, local)
    for f in range(local.size[0] if depth > 1 else 0):
        _same_feature(problem, local, f)
        if local.split_start[f + 1] < local.size[2]:
            _other_features(problem, local, f)
    best_roots(problem, local)
