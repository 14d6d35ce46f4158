"""Relative-risk deviance of a survival tree (papers `surtree`, eq. 9 and 20; LeBlanc & Crowley 1992).

With K competing causes a leaf has a relative risk theta_k for each, over the cause's own baseline, and costs the sum
over causes of -E_k log(E_k / H_k): the deviance of cause-specific hazards theta_k Lambda_k. The statistics are 2 K
sums. The cost is the minimum over the label (theta_1, ..., theta_K) of a loss that adds over rows, so it is
superadditive and every bound of `softsurv.exact.bounds` holds as for one cause. A cause counts c_k times where its two
columns are multiplied by c_k: -c E log(c E / (c H)) = c (-E log(E / H)).
"""

from __future__ import annotations

import numpy as np

from softsurv.exact.jit import FAST
from softsurv.exact.kernels.log_ratio import log_ratio
from softsurv.exact.prepare import check_weights
from softsurv.exact.task import Task
from softsurv.kernel_cache import njit


@njit(**FAST)
def leaf_costs(sums, n, out):
    """-ES log(ES / HS), and 0 without events (0 log 0 = 0); the sum of -log Lambda over events is a constant.

    With several causes, the sum of this over causes.
    """
    for i in range(n):
        events, hazard = sums[0, i], sums[1, i]
        events_or_one = events if events > 0.0 else 1.0
        hazard_or_one = hazard if hazard > 0.0 else 1.0
        out[i] = -events * log_ratio(events_or_one, hazard_or_one)
    for k in range(2, sums.shape[0], 2):
        for i in range(n):
            events, hazard = sums[k, i], sums[k + 1, i]
            events_or_one = events if events > 0.0 else 1.0
            hazard_or_one = hazard if hazard > 0.0 else 1.0
            out[i] -= events * log_ratio(events_or_one, hazard_or_one)


def plain_costs(sums: np.ndarray) -> np.ndarray:
    """The same of leaves (L, 2) in numpy, for tasks that have no other need to compile it."""
    events, hazard = sums[:, 0], sums[:, 1]
    theta = np.divide(events, hazard, out=np.ones(len(sums)), where=(events > 0.0) & (hazard > 0.0))
    return np.asarray(-events * np.log(theta))


TASK = Task("relative_risk", None, leaf_costs)
"""Two columns for each cause; the same compiled search for one cause and for several."""


MOST_REPEATS = 100
"""Weights that are up to so many times a common unit may be numbers of repeated rows."""

ALL_WHOLE = 2.0**52
"""From here on every double is a whole number."""

LOOKED_AT_FIRST = 64
"""So many weights tell nearly all units apart."""


def one_subject(weight: np.ndarray) -> float:
    """What one subject weighs, from the weights (N,) above 0.

    The constants that count subjects are the same for weights w and 10 w, and the same for numbers of repeated rows as
    for the rows themselves: one subject has the smallest weight. That is asked of whole numbers, and of weights that
    are up to `MOST_REPEATS` times a common unit, such as 2, 3 and 5 thousandths. Other weights come from a design, such
    as inverse probabilities, where one row of little weight would make all others count as many subjects: there it is
    the total weight over the effective number of subjects (Kish 1965), sum w^2 / sum w.
    """
    some = weight[weight > 0]
    least = float(some.min())
    times = some / least
    counts = bool(some.max() < ALL_WHOLE and (some == np.rint(some)).all())
    if counts or _have_a_unit(times):
        return least
    return float(np.sum(some * times) / np.sum(times))


def _have_a_unit(times: np.ndarray) -> bool:
    """Whether multiples of the smallest weight (N,) are whole multiples of a part of it, up to `MOST_REPEATS`."""
    parts = np.arange(1, int(MOST_REPEATS // times.max()) + 1)
    for part in parts[_are_whole(np.multiply.outer(parts, times[:LOOKED_AT_FIRST]))]:
        if _are_whole(part * times):
            return True
    return False


def _are_whole(values: np.ndarray) -> np.ndarray:
    """Whether all numbers (..., N) are whole but for rounding, (...)."""
    return np.asarray((np.abs(values - np.rint(values)) <= 1e-9 * values).all(axis=-1))


def baseline_hazard(baseline: np.ndarray, n: float) -> np.ndarray:
    """Nelson-Aalen at the training times (N,), 0 replaced by 1/(n + 1) as the reference implementation does."""
    return np.where(baseline > 0.0, baseline, 1.0 / (n + 1))


def statistics(event: np.ndarray, hazard: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Columns ES and HS: w * event and w * Lambda(t), (N, 2)."""
    w = np.ones(len(event)) if weight is None else weight
    check_weights(w)
    return np.column_stack([w * event, w * hazard])


def constant(event: np.ndarray, hazard: np.ndarray, weight: np.ndarray | None = None) -> float:
    """NLHS = -sum over events of w log Lambda(t): added to the leaf costs it gives the deviance of eq. 20."""
    w = np.ones(len(event)) if weight is None else weight
    observed = event.astype(bool)
    return float(-(w[observed] * np.log(hazard[observed])).sum())


def relative_risk(sums: np.ndarray, one: float = 1.0) -> np.ndarray:
    """theta of each leaf (L,) from its sums (L, 2): ES / HS, or without events 1 / (2 HS) (eq. 7; Appendix A).

    ``one`` is what `one_subject` weighs: half of it stands in for the events.
    """
    events, hazard = sums[:, 0], sums[:, 1]
    return np.where(events > 0, events, 0.5 * one) / hazard
