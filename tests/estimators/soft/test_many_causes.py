"""Dense trees of causes and of subjects with several rows: as one stack, and with weights of the causes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from softsurv import SoftSurvivalTree, fit_many
from softsurv.data.readers import survival_data
from softsurv.soft.cross_validation import folds_of_content
from softsurv.tune import StudyObjective
from softsurv.tune.measures import fit_and_measure

DENSE = {"max_terms": None, "leaf": "weibull", "l2": 1.0, "routing_l2": 1.0, "max_iter": 600}
SETTINGS = [
    DENSE | {"depth": 1, "shrinkage": 10.0, "n_restarts": 2},
    DENSE | {"depth": 1, "shrinkage": 100.0, "n_restarts": 1},
    DENSE | {"depth": 0},
]


def rows_of(n=150, several=False, seed=0):
    """Two causes and a category; where ``several``, subjects whose first feature changes once."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.standard_normal((n, 2)), columns=["u", "v"]).assign(kind=rng.choice(["a", "b"], n))
    seal = rng.exponential(np.exp(-frame["u"]))
    motor = rng.exponential(np.exp(-2.0 * (frame["kind"] == "a")))
    end = rng.uniform(0.2, 3, n)
    time = np.minimum(np.minimum(seal, motor), end) + 1e-3
    cause = np.select([end <= np.minimum(seal, motor), seal < motor], ["", "seal"], "motor")
    if not several:
        return survival_data(frame, time=time, cause=cause)
    first = frame.assign(start=0.0, stop=time / 2, cause="", who=np.arange(n))
    then = frame.assign(start=time / 2, stop=time, cause=cause, who=np.arange(n), u=frame["u"] + 0.5)
    both = pd.concat([first, then]).sort_values(["who", "start"], ignore_index=True)
    return survival_data(both, start="start", stop="stop", cause="cause", id="who")


def assert_same(ours, alone, data):
    """Both stop within the optimiser's tolerance of one optimum."""
    assert ours.report_.objective == pytest.approx(alone.report_.objective, abs=2e-5)
    assert ours.candidate_ == alone.candidate_
    assert ours.cause_names_ == alone.cause_names_
    np.testing.assert_array_equal(ours.apply(data.X), alone.apply(data.X))
    times = np.quantile(data.time.numpy(), [0.2, 0.5, 0.8])
    states, expected = (tree.predict_state_probabilities(data.X, times) for tree in (ours, alone))
    np.testing.assert_allclose(states, expected, atol=5e-3)


@pytest.mark.filterwarnings("ignore:the fit took all its")
@pytest.mark.parametrize("weights", [None, "seal"])
@pytest.mark.parametrize("several", [False, True])
def test_settings_and_folds_as_one_stack_are_the_fits_one_by_one(several, weights):
    data = rows_of(several=several)
    settings = [setting | {"cause_weights": weights} for setting in SETTINGS]
    many = fit_many(data, settings=settings, n_folds=3, seed=1)
    assert many.together == (9, 9, 3)  # three starts of two settings on three folds; no starts without splits
    for k, (train, _) in enumerate(folds_of_content(data, 3, 1)):
        for setting, trees in zip(settings, many.estimators, strict=True):
            assert_same(trees[k], SoftSurvivalTree(**setting).fit(data.take(train)), many.held_out[k])


@pytest.mark.filterwarnings("ignore:the fit took all its")
def test_a_tree_of_a_stack_has_what_a_tree_alone_has():
    data = rows_of()
    (ours,) = fit_many(data, settings=SETTINGS[:1]).estimators[0]
    alone = SoftSurvivalTree(**SETTINGS[0]).fit(data)
    assert set(vars(ours)) == set(vars(alone))
    assert ours.export_text() == alone.export_text()
    found, expected = (tree.summary().effects["standard_error"] for tree in (ours, alone))
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.filterwarnings("ignore:column 'kind' has 1 level")
def test_a_fold_that_lacks_a_level_is_padded_cause_by_cause():
    data = rows_of()
    rare = data.X.assign(kind=np.where(np.arange(data.n) == 0, "c", data.X["kind"]))
    data = survival_data(rare, time=data.time.numpy(), cause=data.cause.numpy(), cause_names=data.cause_names)
    setting = SETTINGS[0] | {"n_restarts": 1}  # a start at random goes a long way, on which rounding decides
    trees = fit_many(data, settings=[setting], n_folds=3, seed=1).estimators[0]
    assert len({len(tree.encoded_names_) for tree in trees}) == 2  # one fold holds the only row of "c" out
    for tree, (train, test) in zip(trees, folds_of_content(data, 3, 1), strict=True):
        alone = SoftSurvivalTree(**setting).fit(data.take(train))
        assert_same(tree, alone, data.take(test))


@pytest.mark.parametrize("several", [False, True])
def test_a_study_trains_its_folds_as_one_stack_and_measures_the_same(several):
    data = rows_of(several=several)
    goal = StudyObjective(data, n_folds=3, interest="seal")
    models = [SoftSurvivalTree(**setting) for setting in SETTINGS]
    for model, found in zip(models, goal.cross_validate_many(models), strict=True):
        assert found.together == (9 if model.depth else 3)
        for (train, test), fold in zip(goal._rows, found.folds, strict=True):
            alone = fit_and_measure(model, data.take(train), data.take(test), "seal")
            assert fold["harrell_c"] == pytest.approx(alone["harrell_c"], abs=2e-3)
            assert fold["n"] == alone["n"]


@pytest.mark.filterwarnings("ignore:the fit took all its")
@pytest.mark.parametrize("how", [{}, {"solver": "nodec"}, {"init": "exact"}, {"init": "random"}], ids=str)
def test_a_tree_of_the_cause_of_interest_routes_as_a_tree_of_it_alone(how):
    data = rows_of(300)
    setting = SETTINGS[0] | {"n_restarts": 1} | how
    ours = SoftSurvivalTree(**setting, cause_weights="seal").fit(data)
    alone = SoftSurvivalTree(**setting).fit(data.of_cause("seal"))
    assert ours.report_.objective == pytest.approx(alone.report_.objective, abs=1e-6)
    np.testing.assert_array_equal(ours.apply(data.X), alone.apply(data.X))
    seal = ours.cause_names_.index("seal")
    for name in ("routing", "leaves"):
        found, expected = (getattr(tree, name).detach() for tree in (ours.cause_trees_[seal], alone.tree_))
        np.testing.assert_allclose(found, expected, atol=0.02)


@pytest.mark.filterwarnings("ignore:the fit took all its")
@pytest.mark.parametrize("weights", ["seal", {"seal": 1.0, "motor": 1e-3}], ids=str)
def test_leaves_of_a_cause_that_hardly_counts_are_at_their_optimum(weights):
    """Given the routing, no step of the other cause's leaves lowers its penalised loss."""
    from softsurv.soft.objective import Objective
    from softsurv.soft.penalties import tree_penalties
    from softsurv.soft.problem import make_problem

    data = rows_of(300)
    tree = SoftSurvivalTree(**SETTINGS[0], cause_weights=weights).fit(data)
    motor = tree.cause_trees_[tree.cause_names_.index("motor")]
    encoded = data.with_features(tree.preprocessor_.transform(data.X)).of_cause("motor")
    problem = make_problem(encoded, motor.family)
    one_leaf = SoftSurvivalTree(**DENSE, depth=0).fit(data)
    anchor, leaves = (one.cause_trees_[one.cause_names_.index("motor")].leaves.detach() for one in (one_leaf, tree))
    strength = problem.weight.new_full((1,), 1.0 / data.n)
    penalties = tree_penalties(strength, 10 * strength, strength, 0 * strength, anchor)
    objective = Objective(problem, 1, penalties)
    _, gradient = objective.leaf_value_and_gradient(leaves, objective.reach(motor.routing.detach()))
    assert float(gradient.abs().max()) < 1e-4


@pytest.mark.filterwarnings("ignore:the fit took all its")
def test_weights_are_times_that_the_likelihood_counts():
    """Twice the weights and half the routing penalty's strength: the same tree, twice the objective."""
    data = rows_of(300)
    plain = SoftSurvivalTree(**SETTINGS[1]).fit(data)
    weights = {"seal": 2.0, "motor": 2.0}
    twice = SoftSurvivalTree(**SETTINGS[1] | {"routing_l2": 2.0}, cause_weights=weights).fit(data)
    assert twice.report_.objective == pytest.approx(2 * plain.report_.objective, abs=2e-5)
    np.testing.assert_array_equal(twice.apply(data.X), plain.apply(data.X))
    tilted = SoftSurvivalTree(**SETTINGS[1], cause_weights={"seal": 20.0, "motor": 1.0}).fit(data)
    seal, motor = (np.abs(tilted.tree_.routing.detach().numpy()[0, 0, 1:])[k] for k in (0, -1))
    assert seal > motor  # u parts the seals, kind the motors
