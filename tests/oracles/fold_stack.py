"""A stack of folds and settings, trained a little."""

import torch

from softsurv.hazards import get_family
from softsurv.soft.fit_stack import fit_anchors, make_stack
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.parallel import Machine
from softsurv.soft.problem import make_problem
from softsurv.soft.recipe import Candidate, Recipe, Training
from softsurv.soft.starts import start_routing

CPU = Machine(torch.device("cpu"))


SHORT = Training(joint=LbfgsSettings(max_iterations=8))


SETTINGS = [Candidate("weibull", 2, 0.3, 3.0, 1.0), Candidate("weibull", 2, 1.0, 0.0, 0.1)]


def folds_and_settings(tools, starts=("logrank", "random"), **options):
    """A stack of two folds, two settings and the starts, with its anchors."""
    data = tools.simulate(90)
    masks = torch.ones(2, 90, dtype=torch.float64)
    masks[0, :20] = masks[1, 60:] = 0
    problem, n = make_problem(data, get_family("weibull"), weight=masks), masks.sum(1)
    recipe = Recipe(get_family("weibull"), SETTINGS[0], starts, SHORT)
    routing = torch.stack([start_routing(starts, data, 2, range(len(starts)))] * 2)
    anchors = fit_anchors(problem, recipe, n, settings=SETTINGS)
    return make_stack(problem, recipe, routing, anchors.point[0], n, settings=SETTINGS, **options), anchors, n
