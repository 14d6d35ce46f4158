"""How many operators training asks of a device, where each would be the launch of a kernel, and what they move."""

import pytest
import torch
from oracles.operators import Operators

from softsurv.data.datasets import load_dataset
from softsurv.data.preprocess import Preprocessor
from softsurv.hazards import get_family
from softsurv.soft.fit_stack import FIRST_LEAVES, fit_anchors, fit_single_leaf, make_stack
from softsurv.soft.nodec import NodecSettings, nodec
from softsurv.soft.objective import Objective
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.optimisers import LbfgsSettings, minimise
from softsurv.soft.precondition import GramMetric
from softsurv.soft.problem import make_problem
from softsurv.soft.recipe import Candidate, Recipe
from softsurv.soft.restricted import fit_leaves
from softsurv.soft.starts import initial_leaves, random_routing, start_routing
from softsurv.soft.watch import never_waiting

TREES, ROWS = 4, 200


@pytest.fixture(autouse=True)
def as_on_a_device():
    """On a CPU the objective is compiled in one piece; a device runs it by operators."""
    with operators_alone():
        yield


TABLE = TREES * 4 * ROWS
"""Elements of a table (trees, leaves, rows) at depth 2."""


class Counted:
    """A function that counts its evaluations."""

    def __init__(self, function, calls):
        self.function, self.calls = function, calls

    def value_and_gradient(self, *point):
        self.calls.append(1)
        return self.function.value_and_gradient(*point)

    def take(self, trees):
        return Counted(self.function.take(trees), self.calls)


def stack(tools, family):
    """Objective and start of a few trees of depth 2."""
    data = tools.simulate(ROWS)
    problem = make_problem(data, get_family(family), n_trees=TREES)
    routing = random_routing(data.x.numpy(), 2, range(TREES))
    leaves = initial_leaves(fit_single_leaf(problem).point[0], 2, range(TREES))
    return Objective(problem, 2, tools.penalties_for(problem)), routing, leaves


def of_a_round(objective, routing, leaves):
    """Operators, and tables moved, of one round of L-BFGS, from two runs of different length."""
    metric, found = GramMetric(objective.problem, 3, 4), []
    for steps in (4, 8):
        calls, settings = [], LbfgsSettings(max_iterations=steps, ftol=0.0, gtol=0.0)
        with Operators(TABLE) as operators:
            minimise(Counted(objective, calls), (routing, leaves), settings, metric)
        found.append((operators.total, operators.tables, len(calls)))
    (few, less, short), (many, more, long) = found
    return (many - few) / (long - short), (more - less) / (long - short)


@pytest.mark.parametrize(
    ("family", "most", "tables"),
    [("loglogistic", 120, 34), ("weibull", 125, 38), ("lognormal", 160, 70), ("spline_po", 140, 47)],
)
def test_a_round_of_quasi_newton_steps(tools, family, most, tables):
    operators, moved = of_a_round(*stack(tools, family))
    assert operators <= most
    assert moved <= tables


@pytest.mark.parametrize("family", ["loglogistic", "lognormal"])
def test_a_run_of_nodec_on_real_data(family):
    """Ten sweeps of 20 trees of depth 2; 82,752 operators when every subproblem was solved by L-BFGS of the time."""
    data = load_dataset("gbsg2")
    data = data.with_features(Preprocessor().fit(data.X).transform(data.X))
    recipe = Recipe(get_family(family), Candidate(family, 2, 1.0, 3.0, 1.0), ("random",) * 20)
    n = torch.tensor([float(data.n)], dtype=torch.float64)
    problem = make_problem(data, recipe.family)
    routing = start_routing(recipe.starts, data, 2, range(20))
    trees = make_stack(problem, recipe, routing[None], fit_anchors(problem, recipe, n).point[0], n)
    start = trees.objective, trees.routing, fit_leaves(trees.objective, trees.routing, trees.leaves, FIRST_LEAVES)
    with never_waiting(), Operators() as operators:
        found = nodec(*start, NodecSettings())
    assert len(found.trace) >= 8
    assert operators.total <= 20_000
    rounds = LbfgsSettings(max_iterations=20, ftol=1e-6)
    others = nodec(*start, NodecSettings(branch=rounds, leaf=rounds))
    assert found.objective.mean() <= others.objective.mean()
    assert found.objective.amin() <= others.objective.amin()


def test_the_counter_counts_what_makes_values_and_no_views():
    x = torch.ones(3, 4)
    with Operators(12) as operators:
        y = (x.view(4, 3).mT + 1).exp_()
        y[0].sum()
    assert dict(operators.seen) == {"add": 1, "exp_": 1, "sum": 1}
    assert operators.tables == 2 + 2  # add reads and writes a table, exp_ too; the sum reads a row
