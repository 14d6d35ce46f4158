"""OptimalCapacityPolicyTree: the best policy tree where a treatment is scarce."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray
from softsurv.errors import InvalidParameterError
from softsurv.estimators.separable.limits import SearchLimits
from softsurv.estimators.separable.measures import least_leaf
from softsurv.estimators.separable.policy import OutcomePolicyTree, read_rewards
from softsurv.estimators.separable.policy_tree import Rewards
from softsurv.estimators.separable.solve import Solved
from softsurv.estimators.shared.checks import number, one_of
from softsurv.estimators.shared.inputs import BinnedRows
from softsurv.estimators.shared.one_fit import one_fit_at_a_time
from softsurv.estimators.shared.progress import search_bar
from softsurv.exact.objectives.linear import LINEAR
from softsurv.exact.objectives.policy import METHODS, lost_rewards
from softsurv.exact.vector_search import VectorSearch
from softsurv.exact.vector_task import objectives
from softsurv.exact.whole_trees.constraint import constrained_optimum
from softsurv.results import FitReport

ROUNDING = 1e-9
"""A share above its limit by this relative amount still meets it: it is a ratio of sums."""


@dataclass(eq=False, repr=False)
class OptimalCapacityPolicyTree(OutcomePolicyTree):
    """Policy tree with the best mean score among those that give scarce treatments to few enough rows.

    Parameters
    ----------
    capacity : mapping from treatment to share
        Largest share of the training weight that may be given a treatment, in [0, 1]; others are not limited. At
        least one treatment must be left that all rows may be given. Without it this is an `OptimalPolicyTree`.
    method, max_depth, max_leaves, min_samples_leaf, min_weight_fraction_leaf, complexity, thresholds, max_levels,
    min_share, missing, path, time_limit, memory_limit, n_jobs, progress
        As in `OptimalPolicyTree`; ``path`` is for trees without capacity.

    Attributes
    ----------
    share_ : dict
        Share of the training weight that each treatment is given.
    treatments_, tree_, label_, objective_, lower_bound_, gap_, status_, report_, binarizer_
        As in `OptimalPolicyTree`.

    Notes
    -----
    Leaves are whole: a leaf is given one treatment. The share of a treatment is a sum over leaves, so the limit is a
    threshold on a sum (paper `streed`, appendix A.4). `softsurv.exact.whole_trees.constraint` finds the best tree.

    Examples
    --------
    >>> import numpy as np
    >>> from softsurv.estimators.separable.capacity_policy import OptimalCapacityPolicyTree
    >>> X = np.arange(8.0)[:, None]
    >>> scores = np.column_stack([np.zeros(8), X[:, 0]])
    >>> tree = OptimalCapacityPolicyTree({1: 0.25}, max_depth=1).fit(X, scores=scores)
    >>> tree.predict([[1.0], [6.0]]).tolist(), tree.share_
    ([0, 1], {0: 0.75, 1: 0.25})
    """

    capacity: Mapping[Any, float] | None = None
    method: str = "doubly_robust"
    max_depth: int = 3
    max_leaves: int | None = None

    @one_fit_at_a_time
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        treatment: Any = None,
        propensity: Any = None,
        predicted: Any = None,
        scores: Any = None,
        sample_weight: Any = None,
    ) -> OptimalCapacityPolicyTree:
        """Find the tree; arguments, errors and warnings as in `OptimalPolicyTree.fit`."""
        one_of("method", self.method, METHODS)
        tables = {"propensity": propensity, "predicted": predicted, "scores": scores}
        training = self._training(X, sample_weight, y=y, treatment=treatment, **tables)
        rewards = read_rewards(training, self.method, y, treatment, propensity, predicted, scores)
        self.treatments_ = rewards.treatments
        self._solve(training, within_capacity(rewards, self.capacity))
        return self


@dataclass(frozen=True)
class LimitedRewards(Rewards):
    """Rewards where some treatments may be given to a share of the weight only.

    Attributes
    ----------
    largest_share : dict
        By place of the treatment, in [0, 1).
    """

    largest_share: dict[int, float]

    def solve(self, rows: BinnedRows, limits: SearchLimits) -> Solved:
        """The best tree within the limits."""
        return solve_capacity(rows, self.scores, self.largest_share, limits)


def within_capacity(rewards: Rewards, capacity: Mapping[Any, float] | None) -> Rewards:
    """The rewards under the limits of ``capacity``, by name of the treatment. A limit of 1 is no limit."""
    names: NDArray[Any] = rewards.treatments
    if not isinstance(capacity, Mapping | None):
        raise InvalidParameterError(
            f"capacity must map treatments, {names.tolist()}, to the largest share of each, got {capacity!r}"
        )
    place = {str(name): k for k, name in enumerate(names.tolist())}  # a saved mapping has text as keys
    largest: dict[int, float] = {}
    for name, share in (capacity or {}).items():
        if str(name) not in place:
            raise InvalidParameterError(f"capacity must name treatments, {names.tolist()}, got {name!r}")
        number(f"capacity[{name!r}]", share, 0.0)
        if share > 1:
            raise InvalidParameterError(f"capacity[{name!r}] must be a share, at most 1, got {share:g}")
        if share < 1:
            largest[place[str(name)]] = float(share)
    if len(largest) == len(names):
        raise InvalidParameterError(
            f"capacity must leave a treatment that all rows may be given, got a share below 1 for each of "
            f"{names.tolist()}; leave out the one that is least scarce"
        )
    return LimitedRewards(names, rewards.scores, largest) if largest else rewards


def solve_capacity(rows: BinnedRows, scores: FloatArray, scarce: dict[int, float], limits: SearchLimits) -> Solved:
    """The policy tree that loses least under limits on shares."""
    total, k = float(rows.weight.sum()), scores.shape[1]
    lost = lost_rewards(scores, rows.weight)
    weights = np.zeros((k, 1 + len(scarce), k + 1))
    weights[np.arange(k), 0, np.arange(k)] = 1.0
    for d, treatment in enumerate(scarce):
        weights[treatment, 1 + d, k] = 1.0
    goals = objectives(
        LINEAR,
        weights,
        constant=[limits.complexity * total, *np.zeros(len(scarce))],
        constraint=np.eye(1 + len(scarce))[1:],
        limit=[share * (1 + ROUNDING) for share in scarce.values()],
    )
    if limits.limits_leaves:
        goals = goals.with_most_leaves(limits.most_leaves)
    least, size = least_leaf(rows, limits)
    search = VectorSearch(
        goals, rows.codes, rows.n_codes, rows.nominal, np.column_stack([lost, rows.weight / total]), limits.depth,
        min_leaf=least, size=size, memory_limit=limits.room.left, n_jobs=limits.n_jobs, stop=limits.stop, lists=True,
        cuts=True,
    )  # fmt: skip
    limits.room.check(search.held)
    with limits.stop as stop, search_bar(limits.progress) as bar:
        state = constrained_optimum(search, stop, progress=bar)
    shift = -float(rows.weight @ scores.max(axis=1)) / total
    report = FitReport(
        state.status, state.value / total + shift, state.bound / total + shift, stop.seconds,
        tuple(value / total + shift for value in state.trace), {"multipliers": state.multipliers.tolist()},
    )  # fmt: skip
    return Solved(state.tree.tree, state.tree.label, report)
