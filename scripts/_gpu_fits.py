"""Stacks of fits that `bench_gpu.py` times: joint training of 60 quasi-Newton steps at most from random starts."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import torch

from softsurv.data.survival_data import SurvivalData
from softsurv.hazards import get_family
from softsurv.soft.capacity import stack_size
from softsurv.soft.fit_stack import FIRST_LEAVES, fit_single_leaf
from softsurv.soft.objective import Objective
from softsurv.soft.optimisers import LbfgsSettings, minimise
from softsurv.soft.parallel import map_parts
from softsurv.soft.penalties import Penalties
from softsurv.soft.precondition import GramMetric
from softsurv.soft.problem import make_problem
from softsurv.soft.recipe import Training
from softsurv.soft.restricted import fit_leaves
from softsurv.soft.starts import initial_leaves, random_routing

FEATURES = 20
TRAINING = Training(joint=LbfgsSettings(max_iterations=60, ftol=1e-7))
NONE = "not measured"


def wait(device: torch.device) -> None:
    """Until the device has done what it was asked."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def simulate(rows: int, seed: int = 0) -> SurvivalData:
    """Weibull times through a split; a third of the rows is censored."""
    rng = np.random.default_rng(seed)
    x = rng.random((rows, FEATURES))
    event_time = np.exp(-2 * x[:, 0] * (x[:, 1] > 0.5)) * rng.weibull(1.3, rows) + 1e-4
    censoring = rng.exponential(2.0, rows)
    return SurvivalData(pd.DataFrame(x), np.minimum(event_time, censoring), event_time <= censoring)


class Bench:
    """Everything that training takes, made before the clock starts."""

    def __init__(self, data: SurvivalData, leaf: str, depth: int, trees: int, device: torch.device) -> None:
        family = get_family(leaf)
        problem = make_problem(data, family, n_trees=trees, device=device)
        one = problem.weight.new_full((trees,), 1 / data.n)
        anchor = fit_single_leaf(make_problem(data, family, device=device), one[:1]).point[0].expand(trees, -1, -1)
        self.objective = Objective(problem, depth, Penalties(0 * one, one, 0.1 * one, anchor, 0 * one))
        self.routing = random_routing(data.x.numpy(), depth, range(trees)).to(anchor)
        leaves = initial_leaves(anchor, depth, list(range(trees)))
        self.leaves = fit_leaves(self.objective, self.routing, leaves, FIRST_LEAVES)
        self.metric = GramMetric(problem, 2**depth - 1, 2**depth)
        size = stack_size(data.n, 2**depth, data.x.shape[1] + 1, device)
        self.parts = [slice(first, min(first + size, trees)) for first in range(0, trees, size)]
        self.device = device

    def run(self, workers: int) -> tuple[float, torch.Tensor]:
        """Seconds to train all trees, and their objectives."""
        everyone = torch.arange(len(self.routing), device=self.device)

        def fit(part: slice) -> torch.Tensor:
            rows = everyone[part]
            start, metric = (self.routing[rows], self.leaves[rows]), self.metric.take(rows)
            return minimise(self.objective.take(rows), start, TRAINING.joint, metric).loss

        wait(self.device)
        started = time.perf_counter()
        objectives = torch.cat(map_parts(fit, self.parts, workers))
        wait(self.device)
        return time.perf_counter() - started, objectives.cpu()
