"""What a recipe says: rounds, starts that are used, and solvers that there are."""

import pytest

from softsurv.errors import InvalidParameterError
from softsurv.hazards import get_family
from softsurv.soft.nodec import NodecSettings
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.recipe import SOLVERS, Candidate, Recipe, Training


@pytest.mark.parametrize(("solver", "depth", "rounds"), [("lbfgs", 2, 7), ("nodec", 2, 3), ("nodec", 0, 7)])
def test_rounds_at_most(solver, depth, rounds):
    """A tree without splits is fitted jointly by either solver."""
    training = Training(solver, LbfgsSettings(max_iterations=7), NodecSettings(max_sweeps=3))
    assert training.rounds(depth) == rounds


@pytest.mark.parametrize("solver", ["sgd", ""])
def test_other_solvers_are_refused(solver):
    with pytest.raises(InvalidParameterError, match=f"solver must be one of {', '.join(SOLVERS)}, got {solver!r}"):
        Training(solver)


def test_a_single_leaf_needs_one_start():
    starts, family = ("logrank", "kmeans", "random"), get_family("weibull")
    assert Recipe(family, Candidate("weibull", 2, 0.1), starts).used_starts == starts
    assert Recipe(family, Candidate("weibull", 0, 0.1), starts).used_starts == ("logrank",)
