"""Compiled loops over the hazards of several causes in the leaves of a soft tree.

The linear predictor of cause k is z = a + b: a number of the row, and the baseline of its leaf at each time. So
exp(z) is a product of two numbers that are worked out once, and no loop needs an exponential for each row and time.
Tables are exp(a) as ``effect`` (N, K), and exp(b) of each leaf (G, K, T), which rises in time.

Where S = Phi(-z), no product gives the hazard: ``effect`` is a itself, and the tables are b.
"""

from __future__ import annotations

import math

import numpy as np

from softsurv.clamps import EXP_LIMIT
from softsurv.kernel_cache import njit
from softsurv.trees.link_codes import HAZARDS, ODDS, PROBIT

TOP = math.exp(EXP_LIMIT)
"""A proportional hazard is exp(z) up to here, and continues by its tangent (`softsurv.numerics.safe_exp`)."""

FAR_TAIL = 30.0
"""Beyond this Phi(-z) comes to the end of the range of floats. The series for its logarithm is exact to rounding."""

TIMES_AT_ONCE = 512
"""Times whose tables stay in the fastest memory."""

SERIES_RATIO, SERIES_RISE = 0.1, 0.25
"""Up to here the series of `_log_of_ratio` and `_mean_decay` are exact to rounding."""


@njit(cache=True, nogil=True, error_model="numpy")
def _log_of_ratio(more, base):
    """``log(1 + more / base)`` for more >= 0 and base > 0."""
    return math.log1p(more / base) if more > SERIES_RATIO * base else _series_of_ratio(more, base)


@njit(cache=True, nogil=True, error_model="numpy")
def _series_of_ratio(more, base):
    """The same where ``more`` is at most :data:`SERIES_RATIO` of ``base``, in a form that LLVM makes vectors of."""
    s = more / (2.0 * base + more)  # 2 atanh(s), with s <= 0.048: the first term left out is s^12 / 13 = 1e-17
    z = s * s
    return 2.0 * s * (1.0 + z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * (1 / 11))))))


@njit(cache=True, nogil=True, error_model="numpy")
def _mean_decay(rise):
    """``(1 - exp(-rise)) / rise``, 1 at 0."""
    return -math.expm1(-rise) / rise if rise > SERIES_RISE else _series_of_decay(rise)


@njit(cache=True, nogil=True, error_model="numpy")
def _series_of_decay(rise):
    """The same up to :data:`SERIES_RISE`, as `_series_of_ratio`."""
    # Taylor's series by Horner's rule: the first term left out is 0.25^12 / 13! = 1e-17
    p = 1.0 - rise * (1 / 12)
    p = 1.0 - rise * (1 / 11) * p
    p = 1.0 - rise * (1 / 10) * p
    p = 1.0 - rise * (1 / 9) * p
    p = 1.0 - rise * (1 / 8) * p
    p = 1.0 - rise * (1 / 7) * p
    p = 1.0 - rise * (1 / 6) * p
    p = 1.0 - rise * (1 / 5) * p
    p = 1.0 - rise * (1 / 4) * p
    p = 1.0 - rise * (1 / 3) * p
    return 1.0 - rise * (1 / 2) * p


@njit(cache=True, nogil=True, error_model="numpy")
def _normal_hazard(z):
    """``-log Phi(-z)``."""
    if z < 0.0:
        return -math.log1p(-0.5 * math.erfc(-z * math.sqrt(0.5)))  # Phi(z), to any depth
    if z < FAR_TAIL:
        return -math.log(0.5 * math.erfc(z * math.sqrt(0.5)))
    q = 1.0 / (z * z)  # the first term left out is 945 / 30^10 = 2e-12, of a sum above 450
    return (
        0.5 * z * z
        + math.log(z * math.sqrt(2.0 * math.pi))
        - math.log1p(-q * (1.0 - q * (3.0 - q * (15.0 - q * 105.0))))
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _hazard(odds, exponential):
    """Cumulative hazard from exp(z)."""
    if odds:
        return math.log1p(exponential)
    return exponential if exponential <= TOP else TOP * (1.0 + (math.log(exponential) - EXP_LIMIT))


@njit(cache=True, nogil=True, error_model="numpy")
def _careful_rise(odds, effect, before, more):
    """How much the cumulative hazard rises while the exponential of the baseline rises by ``more``."""
    if odds:
        return _log_of_ratio(effect * more, 1.0 + effect * before)
    return _hazard(False, effect * (before + more)) - _hazard(False, effect * before)


@njit(cache=True, nogil=True, error_model="numpy")
def _find_normal_rises(effect, before, more, rise):
    """Rise (T,) of the hazard of a cause, probit. A hazard that the time before has left is not worked out again."""
    first, last, low, high = math.nan, math.nan, 0.0, 0.0
    for t in range(before.size):
        if before[t] != first:
            low = high if before[t] == last else _normal_hazard(effect + before[t])
        first, last = before[t], before[t] + more[t]
        high = _normal_hazard(effect + last) if more[t] > 0.0 else low
        rise[t] = high - low


@njit(cache=True, nogil=True, error_model="numpy")
def _find_rises(link, effect, before, more, rises, whole):
    """Rise of each hazard (K, T), and of all together (T,), from tables ``before`` and their rise ``more`` (K, T)."""
    n, odds = before.shape[1], link == ODDS
    whole[:n] = 0.0
    for k in range(effect.size):
        a, begin, step, rise, far = effect[k], before[k], more[k], rises[k], 0
        if link == PROBIT:
            _find_normal_rises(a, begin, step, rise)
        elif odds:
            for t in range(n):
                rise[t] = _series_of_ratio(a * step[t], 1.0 + a * begin[t])
                far += a * step[t] > SERIES_RATIO * (1.0 + a * begin[t])
        else:
            for t in range(n):
                rise[t] = a * step[t]
                far += a * (begin[t] + step[t]) > TOP
        if far > 0:
            for t in range(n):
                if odds or a * (begin[t] + step[t]) > TOP:
                    rise[t] = _careful_rise(odds, a, begin[t], step[t])
        for t in range(n):
            whole[t] += rise[t]


@njit(cache=True, nogil=True, error_model="numpy")
def _find_decay(whole, decay):
    """`_mean_decay` of each (T,)."""
    far = 0
    for t in range(whole.size):
        decay[t] = _series_of_decay(whole[t])
        far += whole[t] > SERIES_RISE
    if far > 0:
        for t in range(whole.size):
            if whole[t] > SERIES_RISE:
                decay[t] = _mean_decay(whole[t])


@njit(cache=True, nogil=True, error_model="numpy")
def _follow(link, effect, points, steps, first, last, left, risen, work):
    """Fill in survival (P + 1,) and incidences (K, P + 1) of a row at the points of the grid, of some causes alone.

    ``points`` (K, P + 1) begins with time 0, ``steps`` (K, P) are its rises. ``work`` is that of `_places`.
    """
    rises, whole, decay = work
    n = steps.shape[1]
    left[0] = 1.0
    risen[:, 0] = 0.0
    for start in range(0, n, TIMES_AT_ONCE):
        size = min(n - start, TIMES_AT_ONCE)
        part = slice(start, start + size)
        _find_rises(link, effect, points[:, part], steps[:, part], rises, whole)
        _find_decay(whole[:size], decay)
        after = points[:, start + 1 : start + size + 1]
        survival = left[start + 1 : start + size + 1]
        _sum_hazards(link, effect, after, survival)
        for t in range(size):
            survival[t] = 1.0 / (1.0 + survival[t]) if link == ODDS else math.exp(-survival[t])
        for t in range(size):
            decay[t] *= left[start + t]
        for k in range(first, last):
            found, rise, sofar = risen[k], rises[k], risen[k, start]
            for t in range(size):
                sofar += decay[t] * rise[t]
                found[start + t + 1] = sofar


@njit(cache=True, nogil=True, error_model="numpy")
def _places(n_causes):
    """Arrays for the times that are worked on at once: rises (K, T), their sums, and factors (T,)."""
    return np.empty((n_causes, TIMES_AT_ONCE)), np.empty(TIMES_AT_ONCE), np.empty(TIMES_AT_ONCE)


@njit(cache=True, nogil=True, error_model="numpy")
def fill_incidences(link, effect, leaf, points, steps, place, before, more, survival, found):
    """Fill in survival (N, T) and incidences (N, T, K) of each row in its leaf.

    ``points`` (G, K, P + 1) and ``steps`` (G, K, P) are the grid, ``place`` (T,) the number of its points up to each
    time, ``before`` (G, K, T) the tables there, and ``more`` (G, K, T) by how much they have risen since.
    """
    n, n_causes = effect.shape
    left, risen = np.empty(points.shape[2]), np.empty((n_causes, points.shape[2]))
    work = _places(n_causes)
    rises, whole, decay = work
    for i in range(n):
        g = leaf[i]
        _follow(link, effect[i], points[g], steps[g], 0, n_causes, left, risen, work)
        for start in range(0, place.size, TIMES_AT_ONCE):
            size = min(place.size - start, TIMES_AT_ONCE)
            part = slice(start, start + size)
            _find_rises(link, effect[i], before[g][:, part], more[g][:, part], rises, whole)
            _find_decay(whole[:size], decay)
            for t in range(size):
                p = place[start + t]
                survival[i, start + t] = left[p] * math.exp(-whole[t])
                for k in range(n_causes):
                    found[i, start + t, k] = min(risen[k, p] + left[p] * decay[t] * rises[k, t], 1.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _incidence_at(link, effect, cause, left, risen, place, before, more, work, value):
    """Fill in the incidence (T,) of a cause for a row that `_follow` has followed; tables (K, T) of its leaf."""
    rises, whole, decay = work
    _find_rises(link, effect, before, more, rises, whole)
    _find_decay(whole[: place.size], decay)
    own, sofar = rises[cause], risen[cause]
    for t in range(place.size):
        value[t] = min(sofar[place[t]] + left[place[t]] * decay[t] * own[t], 1.0)


@njit(cache=True, nogil=True, error_model="numpy")
def own_incidences(link, effect, leaf, cause, points, steps, place, before, more, rows, found):
    """Fill in the incidence (E,) of a cause for the row of each event at its time; tables as in `fill_incidences`."""
    left, risen = np.empty(points.shape[2]), np.empty((effect.shape[1], points.shape[2]))
    work = _places(effect.shape[1])
    for e in range(rows.size):
        i, g, here = rows[e], leaf[rows[e]], slice(e, e + 1)
        _follow(link, effect[i], points[g], steps[g][:, : place[e]], cause, cause + 1, left, risen, work)
        at = place[here], before[g][:, here], more[g][:, here]
        _incidence_at(link, effect[i], cause, left, risen, at[0], at[1], at[2], work, found[here])


@njit(cache=True, nogil=True, error_model="numpy")
def compare_incidences(
    link, effect, leaf, cause, points, steps, place, before, more, own, first, last, mass, begin, end, lower, equal
):
    """Add to lower and equal (E,) the masses of the rows from ``begin`` to ``end`` with less, or as much, incidence.

    Row j is compared with the events from ``first[j]`` to before ``last[j]``, whose own incidences are ``own`` (E,).
    """
    left, risen = np.empty(points.shape[2]), np.empty((effect.shape[1], points.shape[2]))
    work, value = _places(effect.shape[1]), np.empty(TIMES_AT_ONCE)
    for j in range(begin, end):
        if first[j] >= last[j]:
            continue
        g = leaf[j]
        _follow(link, effect[j], points[g], steps[g][:, : place[last[j] - 1]], cause, cause + 1, left, risen, work)
        for start in range(first[j], last[j], TIMES_AT_ONCE):
            here = slice(start, min(start + TIMES_AT_ONCE, last[j]))
            at = place[here], before[g][:, here], more[g][:, here]
            _incidence_at(link, effect[j], cause, left, risen, at[0], at[1], at[2], work, value)
            _compare(value, own[here], mass[j], lower[here], equal[here])


@njit(cache=True, nogil=True, error_model="numpy")
def _compare(value, own, mass, lower, equal):
    """Add the mass of a row where its value is below an event's own, or the same, all (T,)."""
    for t in range(own.size):
        lower[t] += mass * (value[t] < own[t])
        equal[t] += mass * (value[t] == own[t])


@njit(cache=True, nogil=True, error_model="numpy")
def _sum_hazards(link, effect, table, found):
    """Fill in the hazard (T,) of all causes of a row, from ``table`` (K, T); with odds, exp of the hazard less 1."""
    n, odds = table.shape[1], link == ODDS
    found[:n] = 0.0
    for k in range(effect.size):
        a, level = effect[k], table[k]
        if link == PROBIT:
            for t in range(n):
                found[t] += _normal_hazard(a + level[t])
        elif odds:
            for t in range(n):
                found[t] += a * level[t] + found[t] * (a * level[t])  # no 1 to round a small number away
        else:
            for t in range(n):
                found[t] += a * level[t]
    if link == HAZARDS and found[n - 1] > TOP:  # seldom: the last is the largest
        for t in range(n):
            found[t] = 0.0
            for k in range(effect.size):
                found[t] += _hazard(False, effect[k] * table[k, t])


@njit(cache=True, nogil=True, error_model="numpy")
def compare_hazards(link, effect, leaf, table, rows, first, last, mass, begin, end, lower, equal):
    """As `compare_incidences`, by the hazard of all causes; ``table`` (G, K, E) at the events of the ``rows`` (E,)."""
    own, value = np.empty(rows.size), np.empty(TIMES_AT_ONCE)
    for e in range(rows.size):
        _sum_hazards(link, effect[rows[e]], table[leaf[rows[e]]][:, e : e + 1], own[e : e + 1])
    for start in range(0, rows.size, TIMES_AT_ONCE):
        for j in range(begin, end):
            here = slice(max(first[j], start), min(last[j], start + TIMES_AT_ONCE))
            if here.start < here.stop:
                _sum_hazards(link, effect[j], table[leaf[j]][:, here], value)
                _compare(value, own[here], mass[j], lower[here], equal[here])


@njit(cache=True, nogil=True, error_model="numpy")
def fill_hazards(link, effect, leaf, table, found):
    """Fill in the hazard (N, T) of all causes of each row, from ``table`` (G, K, T)."""
    for i in range(leaf.size):
        for start in range(0, table.shape[2], TIMES_AT_ONCE):
            here = slice(start, min(start + TIMES_AT_ONCE, table.shape[2]))
            _sum_hazards(link, effect[i], table[leaf[i]][:, here], found[i, here])
        if link == ODDS:
            for t in range(table.shape[2]):
                found[i, t] = math.log1p(found[i, t])
