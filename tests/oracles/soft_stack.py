"""Stacks of soft trees whose curvature is at hand."""

from softsurv.hazards import family_names, get_family
from softsurv.soft.objective import Objective
from softsurv.soft.problem import join_problems, make_problem

CURVED = [name for name in family_names() if name not in ("gompertz",)]


def stack(tools, family, groups=1, trees=2, depth=2):
    """Objective, routing and leaves of some trees for each group of rows."""
    parts = [make_problem(tools.simulate(70 + 9 * k, seed=k), get_family(family), n_trees=trees) for k in range(groups)]
    problem = join_problems(parts) if groups > 1 else parts[0]
    objective = Objective(problem, depth, tools.penalties_for(problem))
    return objective, *tools.random_parameters(objective)
