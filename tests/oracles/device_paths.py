"""What runs on a device beside the training of one tree, path by path: each gives tensors, on any device.

In `tests/gpu` the test of CUDA compares a device with the CPU, and its twin a second device that any machine has.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from oracles.looks import Looks
from oracles.rounds import Round, rounds_taken
from oracles.spells import rows_of_kind
from oracles.valleys import START, VALLEYS, WithHole
from torch import Tensor

from softsurv import SoftSurvivalTree, fit_many
from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData
from softsurv.hazards import get_family
from softsurv.metrics.stacked import StackedFold
from softsurv.nonparametric import censoring_survival
from softsurv.numerics import with_intercept
from softsurv.soft import groups
from softsurv.soft.bfgs import BfgsSettings, minimise_dense
from softsurv.soft.cross_validation import cross_validate_many, make_folds
from softsurv.soft.group_lasso import GroupLasso, fit_sparse
from softsurv.soft.objective import Objective
from softsurv.soft.optimisers import LbfgsSettings, minimise
from softsurv.soft.parallel import Machine
from softsurv.soft.penalties import Penalties, no_penalties
from softsurv.soft.precondition import GramMetric
from softsurv.soft.problem import join_problems, make_problem
from softsurv.soft.recipe import Candidate, Recipe, Training
from softsurv.soft.stacked_kmeans import kmeans_starts
from softsurv.soft.stacked_logrank import logrank_start
from softsurv.soft.streaming.axis import make_axis
from softsurv.soft.streaming.distributed import Ranks
from softsurv.soft.streaming.objective import StreamedObjective
from softsurv.soft.streaming.placed import PlacedChunks
from softsurv.soft.streaming.store import ChunkStore, gather_outcomes
from softsurv.sparse import leaf_fit, lost, train
from softsurv.sparse import trials as sparse_trials
from softsurv.tune import Range, StudyObjective, study

N, P = 60, 3
FAMILY = get_family("weibull")
FEW = LbfgsSettings(max_iterations=3, ftol=0.0)
ONE = LbfgsSettings(max_iterations=1)
DENSE = {
    "max_terms": None,
    "solver": "lbfgs",
    "leaf": "weibull",
    "depth": 1,
    "l2": 1.0,
    "routing_l2": 1.0,
    "n_restarts": 1,
    "max_iter": 6,
}


def rows():
    """Some rows as data."""
    rng = np.random.default_rng(0)
    x = rng.random((N, P))
    time = rng.exponential(np.exp(-2 * x[:, 0])) + 0.01
    return survival_data(pd.DataFrame(x), time=time, event=rng.random(N) < 0.7)


def measures(device: str) -> list[Tensor]:
    """Concordance, AUC and Brier score of a stack of models."""
    data, rng = rows(), np.random.default_rng(1)
    time, event = data.time.numpy(), data.event.numpy()
    fold = {"time": time, "event": event, "entry": None, "upper": None, "weight": rng.random(N)}
    level = torch.tensor(np.round(rng.standard_normal((2, N, 1)), 1), device=device)
    plan = StackedFold(censoring_survival(time, event), fold, level, np.arange(N) % 2 == 0)
    return [plan.measures(lambda times: level + times.log(), 2)]


def clusters(device: str) -> list[Tensor]:
    """k-means starts of two sets of rows."""
    x = np.random.default_rng(2).standard_normal((2, N, P))
    return [kmeans_starts(with_intercept(torch.tensor(x)).to(device), 2, (0, 1))]


def logrank(device: str) -> list[Tensor]:
    """A log-rank start."""
    data = rows()
    columns = (data.x.double(), data.time, data.event, data.time[data.event].unique())
    return [logrank_start(*(value.to(device) for value in columns), 2)]


def trials(device: str) -> list[Tensor]:
    """Scores of two settings on two folds: starts, fits and measures."""
    training = Training(joint=FEW)
    recipes = [
        Recipe(FAMILY, Candidate("weibull", 1, ridge, 30.0, 1.0), ("random", "logrank"), training)
        for ridge in (1.0, 10.0)
    ]
    found = cross_validate_many(make_folds(rows(), 2), recipes, Machine(torch.device(device)))
    scores = [[fold[name] for name in ("harrell_c", "uno_c", "cd_auc", "ibs")] for one in found for fold in one.folds]
    return [torch.tensor(scores)]


def trials_of_kind(kind: str, device: str) -> list[Tensor]:
    """Scores of two settings on two folds of other outcomes, by cause where there are causes."""
    measured = ("harrell_c",) if "histories" in kind else ("harrell_c", "cd_auc", "ibs")
    goal = StudyObjective(rows_of_kind(kind, N), measures=measured, n_folds=2, space=DENSE, device=device)
    settings = [DENSE | {"shrinkage": s, "init": "random", "max_iter": 3, "device": device} for s in (3.0, 30.0)]
    found = goal.cross_validate_many([SoftSurvivalTree(**setting) for setting in settings])
    names = measured if "histories" in kind else (*measured, "fairness")
    scores = [[fold[name] for name in names] for one in found for fold in one.folds]
    by_cause = [list(own.values()) for one in found for fold in one.folds for own in fold.get("causes", {}).values()]
    known = [[-1.0 if value is None else float(value) for value in values] for values in by_cause]
    return [torch.tensor(scores), torch.tensor(known)]


def causes(device: str) -> list[Tensor]:
    """Scores by cause, with late entries and groups."""
    return trials_of_kind("late causes", device)


def histories(device: str) -> list[Tensor]:
    """Scores of subjects with several rows, by cause."""
    return trials_of_kind("histories of causes", device)


def table(device: str) -> list[Tensor]:
    """The table of many settings, of rows with one kind of event and with causes."""
    settings = [DENSE | {"shrinkage": s, "device": device, "max_iter": 3} for s in (3.0, 30.0)]
    found = [fit_many(rows_of_kind(kind, N), settings=settings, n_folds=2) for kind in ("events", "causes")]
    numbers = [f"{name}{end}" for name in ("harrell_c", "uno_c", "cd_auc", "ibs") for end in ("", "_se")]
    return [torch.as_tensor(one.table()[numbers].to_numpy()) for one in found]


def many(device: str) -> list[Tensor]:
    """Estimators of many settings, and what they predict."""
    settings = [DENSE | {"shrinkage": s, "device": device} for s in (3.0, 30.0)]
    found = fit_many(rows(), settings=settings)
    return [torch.as_tensor(tree.predict(rows().X)) for (tree,) in found.estimators]


def batch(device: str) -> list[Tensor]:
    """Values of a study in one batch."""
    space = DENSE | {"shrinkage": Range(1.0, 30.0), "init": "random"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = study(
            rows(), n_trials=2, n_folds=2, batch=2, space=space, device=device, sampler="random", refit=False,
            measures=("harrell_c", "ibs"), compare_default=False, progress=False,
        )  # fmt: skip
    return [torch.tensor([trial.values for trial in found.study.trials])]


def streamed(device: str) -> list[Tensor]:
    """A pass over the chunks of a table, of which the first stays on the device."""
    data = rows()
    x, time, event = data.x.double().numpy(), data.time.numpy(), data.event.numpy()
    with ChunkStore(1000) as store:
        for part in (slice(0, 25), slice(25, 50), slice(50, N)):
            store.append(x[part], time[part], event[part], None)
        axis = make_axis(FAMILY, *gather_outcomes(store, Ranks()))
        like = torch.full((1, 2, P + 1 + FAMILY.n_shape), 0.1, dtype=torch.float64).to(device)
        with PlacedChunks(store, axis, like, room=2000) as chunks:
            objective = StreamedObjective(chunks, 1, no_penalties(1, like.shape[-1], like), Ranks(), 1)
            routing = torch.ones(1, 1, P + 1, dtype=torch.float64).to(device)
            passes = [objective.value_and_gradient(routing, like) for _ in range(2)]
    return [value for one in passes for value in one]


def joint_training(device: str) -> tuple[Objective, tuple[Tensor, Tensor], GramMetric]:
    """Objective, start and metric of two trees of depth 1."""
    data = rows()
    problem = make_problem(data, FAMILY, n_trees=2, device=device)
    rng = np.random.default_rng(3)
    routing, leaves = (torch.tensor(rng.standard_normal(size)).to(device) for size in ((2, 1, 4), (2, 2, 5)))
    one = problem.weight.new_full((2,), 0.1)
    objective = Objective(problem, 1, Penalties(one, one, one, torch.zeros_like(leaves[:, :1]), one))
    return objective, (routing, leaves), GramMetric(problem, 1, 2)


def rounds(device: str) -> list[Tensor]:
    """Rounds of joint training."""
    objective, start, metric = joint_training(device)
    found = minimise(objective, start, LbfgsSettings(max_iterations=6, ftol=0.0), metric)
    return [found.loss, *found.point]


def bfgs(device: str) -> list[Tensor]:
    """Rounds of the paper's BFGS, from start to end: trees leave one by one, and one start has no value."""
    start = START.clone()
    start[1, 0] = 5.0005
    found = minimise_dense(WithHole(VALLEYS.steepness.to(device)), (start.to(device),), BfgsSettings(max_iterations=40))
    return [found.loss, *found.point]


def lasso(device: str) -> list[Tensor]:
    """Rounds of the group lasso: one tree comes to name nothing, and leaves the stack."""
    objective, start, _ = joint_training(device)
    strength = torch.tensor([0.05, 50.0], dtype=torch.float64)
    penalty = GroupLasso(torch.arange(P).to(device), strength.to(device))
    return list(fit_sparse(objective, *start, penalty, max_iterations=12, tolerance=1e-2))


def paper(device: str) -> list[Tensor]:
    """A tree by the paper's preset: NODEC-DR with BFGS."""
    given = {"preset": "paper", "depth": 1, "leaf": "weibull", "n_restarts": 1, "max_iter": 1}
    tree = SoftSurvivalTree(device=device, **given).fit(rows().take(np.arange(24)))
    return [tree.tree_.routing.detach(), tree.tree_.leaves.detach()]


def uneven_groups(device: str) -> list[Tensor]:
    """Rounds of some trees of two sets of rows, three of the one and one of the other: rows repeated, or lying once."""
    data = rows()
    parts = [data.take(np.arange(k, N - k)) for k in (0, 5)]
    problem = join_problems([make_problem(part, FAMILY, n_trees=3, device=device) for part in parts])
    rng = np.random.default_rng(5)
    start = [torch.tensor(rng.standard_normal(size)).to(device) for size in ((6, 1, 4), (6, 2, 5))]
    one = problem.weight.new_full((6,), 0.1)
    objective = Objective(problem, 1, Penalties(one, one, one, torch.zeros_like(start[1][:, :1]), one))
    trees, found = torch.tensor([0, 1, 2, 4]), []
    chosen = tuple(part.index_select(0, trees.to(device)) for part in start)
    for most in (groups.REPEATED, 0):
        with patch.object(groups, "REPEATED", most):
            part = objective.take(trees)
            metric = GramMetric(problem, 1, 2).take(trees)
            end = minimise(part, chosen, FEW, metric)
        found += [end.loss, *end.point]
    return found


def count_rounds(device: str, steps: int) -> list[Round]:
    """The rounds of a minimisation of so many steps."""
    objective, start, metric = joint_training(device)
    with rounds_taken() as found:
        minimise(objective, start, LbfgsSettings(max_iterations=steps, ftol=0.0), metric)
    return found


@contextmanager
def few_rounds_of_leaves() -> Iterator[None]:
    """While open, leaves of rules, and the dense tree that they are compared with, take a round or some."""

    def cut_off(function, start, settings, metric, budget):
        return minimise(function, start, ONE, metric, budget)

    with ExitStack() as patches:
        patches.enter_context(patch.object(leaf_fit, "minimise", cut_off))
        patches.enter_context(patch.object(lost, "ROUNDS", ONE))
        yield


def tree_of_rules(device: str, data: SurvivalData | None = None) -> SoftSurvivalTree:
    """A tree of rules, from its start to its standard errors."""
    given = {"depth": 1, "leaf": "weibull", "max_terms": 1, "l2": 1.0, "shrinkage": 10.0}
    with few_rounds_of_leaves():
        return SoftSurvivalTree(device=device, **given).fit(rows_with_a_split() if data is None else data)


def rows_with_a_split():
    """Rows whose hazard rises where the first feature is above one half."""
    rng = np.random.default_rng(4)
    x = rng.random((N, P))
    time = rng.exponential(np.exp(-3 * (x[:, 0] > 0.5))) + 0.01
    return survival_data(pd.DataFrame(x), time=time, event=rng.random(N) < 0.8)


def rules(device: str) -> list[Tensor]:
    """The tree of rules, its standard errors, and what it loses against a dense tree."""
    tree = tree_of_rules(device)
    details = tree.report_.details["lost_likelihood"]
    found = [tree.tree_.routing, tree.tree_.leaves, torch.tensor(tree.covariance_)]
    return [*(value.detach() for value in found), torch.tensor([details["one_curve"], details["rules"]])]


def rules_of_causes(device: str) -> list[Tensor]:
    """The same of two causes."""
    data, cause = rows_with_a_split(), 1 + (np.arange(N) % 3 == 0)
    data = survival_data(data.X, time=data.time.numpy(), cause=np.where(data.event.numpy(), cause, 0))
    return [one.detach() for tree in tree_of_rules(device, data).cause_trees_ for one in (tree.routing, tree.leaves)]


def looks_at_rules(device: str) -> tuple[Counter[str], int]:
    """Where the host reads a device while a tree of rules is fitted there.

    And how often it needs something: after each fit of the leaves where rules are sought, for each score of candidates,
    and for each start from a common model.
    """
    needs = Counter[str]()

    def counting(module, name):
        function = getattr(module, name)

        def counted(*given, **named):
            needs[name] += 1
            return function(*given, **named)

        return patch.object(module, name, counted)

    with ExitStack() as patches:
        for module, name in ((train, "fit_causes"), (sparse_trials, "fit_causes"), (train, "corrections")):
            patches.enter_context(counting(module, name))
        looks = patches.enter_context(Looks())
        tree_of_rules(device)
    return looks.seen, needs.total()


ON_HOST = "sparse/on_host.as_one"
"""The one way to the host where rules are sought and candidates are scored: one wait, whatever the tables."""

ONCE = {
    "causes._hazards", "finish.soft_trees", "covariance.information", "lost.lost_likelihood",
    "fit.fit_rules",
}  # fmt: skip
"""Reads of one tree, when it is known: splits that change nothing, sharpness, standard errors."""


ALL = (
    measures, clusters, logrank, trials, causes, histories, table, many, batch, streamed, rounds, uneven_groups,
    bfgs, lasso, paper, rules, rules_of_causes,
)  # fmt: skip
PATHS: dict[str, Callable[[str], list[Tensor]]] = {one.__name__: one for one in ALL}
