"""OptimalCapacityPolicyTree: the best policy tree where a treatment is scarce."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.data.binarize import DEFAULT_THRESHOLDS
from softsurv.errors import InvalidParameterError
from softsurv.estimators.checks import number
from softsurv.estimators.pareto_solvers import least_leaf
from softsurv.estimators.policy import OptimalPolicyTree
from softsurv.estimators.separable import Training
from softsurv.estimators.solvers import Limits, Solved
from softsurv.exact.objectives.linear import LINEAR
from softsurv.exact.objectives.policy import lost_rewards
from softsurv.exact.vector_search import VectorSearch
from softsurv.exact.vector_task import objectives
from softsurv.exact.whole_trees.constraint import constrained_optimum
from softsurv.results import FitReport
from softsurv.stopping import StopSignal

FloatArray = NDArray[np.float64]

ROUNDING = 1e-9
"""A share above its limit by this relative amount still meets it: it is a ratio of sums."""


class OptimalCapacityPolicyTree(OptimalPolicyTree):
    """Policy tree with the best mean score among those that give scarce treatments to few enough rows.

    Parameters
    ----------
    capacity : mapping from treatment to share
        Largest share of the training weight that may be given a treatment, in [0, 1]; others are not limited. At
        least one treatment must be left that all rows may be given. Without it this is an `OptimalPolicyTree`.
    method, max_depth, max_leaves, min_samples_leaf, min_weight_fraction_leaf, complexity, thresholds, max_levels,
    min_share, path, time_limit, memory_limit, n_jobs, progress
        As in `OptimalPolicyTree`; ``path``, ``n_jobs`` and ``progress`` are for trees without capacity.

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
    >>> from softsurv.estimators.capacity_policy import OptimalCapacityPolicyTree
    >>> X = np.arange(8.0)[:, None]
    >>> scores = np.column_stack([np.zeros(8), X[:, 0]])
    >>> tree = OptimalCapacityPolicyTree({1: 0.25}, max_depth=1).fit(X, scores=scores)
    >>> tree.predict([[1.0], [6.0]]).tolist(), tree.share_
    ([0, 1], {0: 0.75, 1: 0.25})
    """

    def __init__(
        self,
        capacity: Mapping[Any, float] | None = None,
        method: str = "doubly_robust",
        max_depth: int = 3,
        max_leaves: int | None = None,
        *,
        min_samples_leaf: int = 1,
        min_weight_fraction_leaf: float = 0.0,
        complexity: float = 0.0,
        thresholds: Any = DEFAULT_THRESHOLDS,
        max_levels: int | None = None,
        min_share: float = 0.0,
        path: bool = False,
        time_limit: float | None = 60.0,
        memory_limit: float = 1e9,
        n_jobs: int | None = 1,
        progress: bool = False,
    ) -> None:
        super().__init__(
            method,
            max_depth,
            max_leaves,
            min_samples_leaf=min_samples_leaf,
            min_weight_fraction_leaf=min_weight_fraction_leaf,
            complexity=complexity,
            thresholds=thresholds,
            max_levels=max_levels,
            min_share=min_share,
            path=path,
            time_limit=time_limit,
            memory_limit=memory_limit,
            n_jobs=n_jobs,
            progress=progress,
        )
        self.capacity = capacity

    def _solve(self, training: Training, table: FloatArray, limits: Limits) -> Solved:
        """The best tree for a table of scores (N, K)."""
        scarce = self._limited(table.shape[1])
        return solve_capacity(training, table, scarce, limits) if scarce else super()._solve(training, table, limits)

    def _keep(self, training: Training, solved: Solved, limits: Limits) -> None:
        super()._keep(training, solved, limits)
        given = np.bincount(self.label_, self.leaf_weight_, len(self.treatments_)) / self.leaf_weight_.sum()
        self.share_ = dict(zip(self.treatments_.tolist(), given.tolist(), strict=True))

    def _own_state(self) -> dict[str, Any]:
        return {**super()._own_state(), "share": list(self.share_.values())}

    def _restore_own(self, state: dict[str, Any]) -> None:
        super()._restore_own(state)
        self.share_ = dict(zip(self.treatments_.tolist(), state["share"], strict=True))

    def _limited(self, n_treatments: int) -> dict[int, float]:
        """Limits by place of the treatment."""
        place = {str(name): k for k, name in enumerate(self.treatments_.tolist())}  # a saved mapping has text as keys
        for name, share in (self.capacity or {}).items():
            if str(name) not in place:
                raise InvalidParameterError(f"capacity must name treatments, {self.treatments_.tolist()}, got {name!r}")
            number(f"capacity[{name!r}]", share, 0.0)
            if share > 1:
                raise InvalidParameterError(f"capacity[{name!r}] must be a share, at most 1, got {share:g}")
        return {place[str(name)]: float(share) for name, share in (self.capacity or {}).items() if share < 1}


def solve_capacity(training: Training, table: FloatArray, scarce: dict[int, float], limits: Limits) -> Solved:
    """The policy tree that loses least under limits on shares."""
    rows = training.rows
    total, k = float(rows.weight.sum()), table.shape[1]
    lost = lost_rewards(table, rows.weight)
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
    if limits.leaves is not None and limits.leaves < 1 << limits.depth:
        goals = goals.with_most_leaves(limits.leaves)
    least, size = least_leaf(rows, limits)
    search = VectorSearch(
        goals, rows.codes, rows.n_codes, rows.nominal, np.column_stack([lost, rows.weight / total]), limits.depth,
        min_leaf=least, size=size, memory_limit=limits.memory_limit,
    )  # fmt: skip
    with StopSignal(limits.seconds) as stop:
        state = constrained_optimum(search, stop)
    shift = -float(rows.weight @ table.max(axis=1)) / total
    report = FitReport(
        state.status, state.value / total + shift, state.bound / total + shift, stop.seconds,
        tuple(value / total + shift for value in state.trace), {"multipliers": state.multipliers.tolist()},
    )  # fmt: skip
    return Solved(state.tree.tree, state.tree.label, report)
