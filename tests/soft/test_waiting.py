"""Training as on a GPU, on the CPU: the host does not ask the device for a value inside a sweep.

The operators that make a host wait are known by name, so a look at every operator shows them without a device;
`tests/gpu` asks the device itself.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from oracles.device_paths import PATHS
from oracles.looks import Waits, slow_looks
from oracles.rounds import rounds_taken
from oracles.spells import rows_of_kind

from softsurv import SoftSurvivalTree
from softsurv.errors import InvalidParameterError, NumericalError
from softsurv.hazards import get_family
from softsurv.metrics.evaluate import MEASURES
from softsurv.metrics.stacked import StackedFold
from softsurv.soft import gram, logistic, problem
from softsurv.soft.bfgs import BfgsSettings
from softsurv.soft.cross_validation import cross_validate_many, make_folds
from softsurv.soft.fit_stack import fit_single_leaf
from softsurv.soft.group_lasso import GroupLasso, fit_sparse
from softsurv.soft.logistic import fit_logistic
from softsurv.soft.newton import NewtonSettings
from softsurv.soft.nodec import NodecSettings, nodec
from softsurv.soft.objective import Objective
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.optimisers import LbfgsSettings, minimise
from softsurv.soft.precondition import GramMetric
from softsurv.soft.problem import join_problems, make_problem
from softsurv.soft.recipe import Candidate, Recipe, Training
from softsurv.soft.starts import initial_leaves, random_routing
from softsurv.soft.watch import never_waiting
from softsurv.trees.soft_tree import SoftTree
from softsurv.tune import StudyObjective

ON_THE_HOST = {("nonzero", "minimise"), ("_local_scalar_dense", "fit_logistic")}
"""What reads a copy that is on the host already."""

BETWEEN_SWEEPS = {("nonzero", "nodec")}
"""Of a copy on the host too."""


@pytest.fixture
def as_on_a_device():
    with never_waiting(), operators_alone():
        yield


def stack(tools, family, groups=1, fair=False):
    """Objective and start of three trees per group."""
    seeds, sets = (0, 1, 2), [tools.simulate(90 + 5 * k, seed=k) for k in range(groups)]
    problems = [make_problem(data, get_family(family), n_trees=3) for data in sets]
    problem = join_problems(problems) if groups > 1 else problems[0]
    routing = torch.cat([random_routing(data.x.numpy(), 2, seeds) for data in sets])
    leaves = torch.cat([initial_leaves(fit_single_leaf(p).point[0], 2, seeds) for p in problems])
    return Objective(problem, 2, tools.penalties_for(problem)), routing, leaves


@pytest.mark.parametrize("family", ["weibull", "spline_ph"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("inner", [NewtonSettings(), LbfgsSettings(max_iterations=20)], ids=["newton", "lbfgs"])
def test_a_sweep_does_not_wait(tools, family, groups, inner, as_on_a_device):
    objective, routing, leaves = stack(tools, family, groups)
    with Waits() as waits:
        nodec(objective, routing, leaves, NodecSettings(max_sweeps=2, branch=inner, leaf=inner))
    assert waits.seen <= ON_THE_HOST | BETWEEN_SWEEPS, waits.seen
    assert ("nonzero", "nodec") in waits.seen  # the recorder works


def test_rounds_of_the_papers_bfgs_do_not_wait(tools, as_on_a_device):
    inner = BfgsSettings(max_iterations=12)
    objective, routing, leaves = stack(tools, "weibull")
    with Waits() as waits:
        nodec(objective, routing, leaves, NodecSettings(max_sweeps=1, branch=inner, leaf=inner))
    of_copies = {("nonzero", "_round_by_round"), ("_local_scalar_dense", "_minimise_together")}
    assert waits.seen <= ON_THE_HOST | BETWEEN_SWEEPS | of_copies, waits.seen


@pytest.mark.parametrize("solver", ["lbfgs", "nodec"])
def test_trials_do_not_come_back_before_their_scores(tools, solver, as_on_a_device):
    """Starts, fits and measures of all folds; then one look whether a fit left the finite numbers."""
    folds, recipes = make_folds(tools.simulate(90), 2), recipes_of(solver)
    for fold in folds:
        assert fold.rows.data.time.device.type == "cpu"  # what is read of the rows on the host lies there
    with Waits() as waits:
        cross_validate_many(folds, recipes)
    of_rows = {(name, ours) for name in ("index", "_local_scalar_dense") for ours in ("time_floor", "fit_time_scale")}
    of_copies = {("_local_scalar_dense", "two_means")}
    last = ("_local_scalar_dense", "refuse_infinite")
    assert waits.seen - {last} <= ON_THE_HOST | BETWEEN_SWEEPS | of_copies | of_rows, waits.seen
    assert last in waits.seen  # the recorder works


@pytest.mark.parametrize("kind", ["late causes", "histories", "histories of causes"])
def test_trials_of_other_outcomes_do_not_come_back_before_their_scores(kind, as_on_a_device):
    """Measures by cause, and of subjects with several rows; the rows themselves are read on the host."""
    data = rows_of_kind(kind)
    goal = StudyObjective(data, measures=("harrell_c",), n_folds=2, space={"max_terms": [None]}, device="cpu")
    how = {"max_terms": None, "leaf": "weibull", "depth": 1, "l2": 1.0, "routing_l2": 1.0, "max_iter": 3}
    models = [SoftSurvivalTree(**how, shrinkage=s, init="random", device="cpu") for s in (1.0, 10.0)]
    with Waits() as waits:
        found = goal.cross_validate_many(models)
    of_rows = {(name, ours) for name in ("index", "_local_scalar_dense") for ours in ("time_floor", "fit_time_scale")}
    of_rows |= {("_unique2", "n_subjects"), ("_unique2", "two_groups"), ("equal", "two_groups")}
    last = ("_local_scalar_dense", "refuse_infinite")
    assert waits.seen - {last} <= ON_THE_HOST | of_rows, waits.seen
    assert last in waits.seen  # the recorder works
    assert all(0 < fold["harrell_c"] < 1 for one in found for fold in one.folds)


def recipes_of(solver):
    """Two settings, with a start of each kind."""
    training = Training(solver=solver, joint=LbfgsSettings(max_iterations=12), nodec=NodecSettings(max_sweeps=2))
    candidates = (Candidate("weibull", 2, ridge, 3.0, 1.0) for ridge in (1.0, 10.0))
    return [Recipe(get_family("weibull"), one, ("logrank", "random", "kmeans"), training) for one in candidates]


def test_scores_are_those_of_the_way_of_a_cpu(tools):
    folds, recipes = make_folds(tools.simulate(90), 2), recipes_of("nodec")
    random = [replace(recipe, starts=("random", "logrank")) for recipe in recipes]
    random.insert(1, replace(random[0], candidate=replace(random[0].candidate, depth=1)))  # of another stack
    expected = cross_validate_many(folds, random)
    with never_waiting(), operators_alone():
        found = cross_validate_many(folds, random)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.together == theirs.together
        for one, other in zip(ours.folds, theirs.folds, strict=True):
            assert [one[name] for name in MEASURES] == pytest.approx([other[name] for name in MEASURES], rel=1e-6)


def test_a_fit_that_failed_is_told_before_its_scores(tools, as_on_a_device, monkeypatch):
    folds, recipes = make_folds(tools.simulate(90), 2), recipes_of("lbfgs")
    measures = StackedFold.measures
    monkeypatch.setattr(StackedFold, "measures", lambda *a: torch.nan * measures(*a))
    with pytest.raises(InvalidParameterError, match="must not be NaN"):
        cross_validate_many(folds, recipes)

    def fails(loss):
        raise NumericalError("the single-leaf fit left the finite numbers")

    monkeypatch.setattr("softsurv.soft.ended.refuse_infinite", fails)
    with pytest.raises(NumericalError):
        cross_validate_many(folds, recipes)


def test_the_group_lasso_does_not_wait(tools, as_on_a_device):
    objective, routing, leaves = stack(tools, "weibull")
    lasso = GroupLasso(torch.arange(objective.columns - 1), torch.full((3,), 0.05, dtype=torch.float64))
    assert lasso.thresholds.shape == (3, objective.columns - 1)  # once for a lasso
    with Waits() as waits:
        fit_sparse(objective, routing, leaves, lasso, max_iterations=20)
    assert waits.seen == {("nonzero", "fit_sparse")}, waits.seen  # of a copy


def test_the_group_lasso_does_not_wait_where_trees_leave(tools, as_on_a_device):
    objective, routing, leaves = stack(tools, "weibull")
    lasso = GroupLasso(torch.arange(objective.columns - 1), torch.tensor([0.05, 50.0, 0.2], dtype=torch.float64))
    assert lasso.thresholds.shape == (3, objective.columns - 1)
    with Waits() as waits:
        fit_sparse(objective, routing, leaves, lasso, max_iterations=100)
    assert waits.seen == {("nonzero", "fit_sparse")}, waits.seen


def test_empty_branches_are_collapsed_without_waiting(tools, as_on_a_device):
    data = tools.simulate(60)
    tree = SoftTree(2, data.x.shape[1], get_family("weibull"), n_trees=2)
    torch.nn.init.normal_(tree.routing)
    with torch.no_grad():
        tree.routing[:, 0, 0] = 1e3  # every row goes left at the root
    with Waits() as waits:
        tree.collapse_empty(data.x.double())
    assert not waits.seen
    assert (tree.routing[:, 2] == 0).all()  # no row comes there


def test_a_late_look_changes_only_the_time(tools):
    objective, routing, leaves = stack(tools, "weibull", 2)
    in_time = nodec(objective, routing, leaves, NodecSettings(max_sweeps=2))
    with never_waiting():
        late = nodec(objective, routing, leaves, NodecSettings(max_sweeps=2))
    torch.testing.assert_close(late.objective, in_time.objective, rtol=1e-9, atol=1e-10)


def test_a_late_look_costs_no_step_of_a_regression(tools, monkeypatch):
    """Of the seven or so that the regressions of branch nodes take."""
    rng, calls, value = np.random.default_rng(0), [], logistic._value
    design = torch.cat([torch.ones(1, 80, 1), torch.tensor(rng.standard_normal((1, 80, 3)))], -1).double()
    labels = (design[:, None, :, 1] + torch.tensor(rng.standard_normal((2, 2, 80))) > 0).double()
    mass, ridge = torch.full((2, 2, 80), 1 / 80).double(), torch.full((2, 2, 1), 1e-3).double()
    monkeypatch.setattr(logistic, "_value", lambda *given: calls.append(1) or value(*given))
    with operators_alone():
        expected = fit_logistic(design, mass, labels, ridge)
        steps = len(calls)
        with never_waiting():
            found = fit_logistic(design, mass, labels, ridge)
    assert 4 <= steps <= 10
    assert len(calls) == 2 * steps
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.parametrize("steps", [3, 6, 7, 20])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_late_look_costs_no_round_in_which_nothing_moves(tools, groups, steps):
    """However short a minimisation is, and though the stack narrows on the way: in each round something moves."""
    objective, routing, leaves = stack(tools, "weibull", groups)
    metric, rule = GramMetric(objective.problem, 3, 4), LbfgsSettings(max_iterations=steps, ftol=1e-3)
    with operators_alone():
        with rounds_taken() as in_time:
            expected = minimise(objective, (routing, leaves), rule, metric)
        with never_waiting(), rounds_taken() as late:
            found = minimise(objective, (routing, leaves), rule, metric)
    assert all(one.moving for one in in_time + late)
    assert len(late) == len(in_time)
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-9, atol=1e-10)


def test_a_look_that_never_arrives_in_time_costs_one_round(tools):
    """As where a device is behind its host: then the host waits for the look of the round before."""
    objective, routing, leaves = stack(tools, "weibull")
    metric, rule = GramMetric(objective.problem, 3, 4), LbfgsSettings(max_iterations=7, ftol=1e-3)
    with operators_alone(), rounds_taken() as in_time:
        minimise(objective, (routing, leaves), rule, metric)
    with operators_alone(), slow_looks(), rounds_taken() as late:
        minimise(objective, (routing, leaves), rule, metric)
    assert len(late) == len(in_time) + 1
    assert [one.moving > 0 for one in late].count(False) == 1


@pytest.mark.parametrize(("groups", "tolerance"), [(1, 1e-6), (2, 1e-2), (2, 1e-6)])
def test_the_inverse_gram_matrix_is_kept_over_sweeps(tools, groups, tolerance, monkeypatch):
    """Also where trees, and whole groups, leave the stack."""
    objective, routing, leaves = stack(tools, "weibull", groups)
    inner, calls, widths = LbfgsSettings(max_iterations=5), [], []
    monkeypatch.setattr(problem, "inverse_gram", lambda design: calls.append(1) or gram.inverse_gram(design))
    take = Objective.take
    monkeypatch.setattr(Objective, "take", lambda self, trees: widths.append(len(trees)) or take(self, trees))
    settings = NodecSettings(max_sweeps=8, patience=1, tolerance=tolerance, branch=inner, leaf=inner)
    found = nodec(objective, routing, leaves, settings)
    assert len(found.trace) >= 2
    assert min(widths) < len(routing)  # some left
    assert len(calls) == 1


@pytest.mark.filterwarnings("ignore:the fit took all its", "ignore:the single-leaf fit")  # they are cut off
@pytest.mark.parametrize("path", PATHS)
def test_what_is_found_does_not_depend_on_how_soon_a_look_arrives(path):
    with operators_alone(), never_waiting():
        expected = PATHS[path]("cpu")
    with operators_alone(), slow_looks():
        found = PATHS[path]("cpu")
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)
