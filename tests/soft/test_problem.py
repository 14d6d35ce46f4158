"""Laying out data for training: layout, times at zero, weights, groups, padding."""

import numpy as np
import pandas as pd
import pytest
import torch

from softsurv.data.survival_data import SurvivalData
from softsurv.errors import DataWarning, InvalidParameterError
from softsurv.hazards import get_family
from softsurv.soft.problem import floor_times, join_problems, make_problem

WEIBULL = get_family("weibull")


def test_layout(tools):
    data = tools.simulate(n=30, p=4)
    problem = make_problem(data, WEIBULL, n_trees=5)
    assert (problem.n_trees, problem.n_groups) == (5, 1)
    assert problem.design.shape == (1, 30, 5)
    assert (problem.design[..., 0] == 1).all()
    torch.testing.assert_close(problem.design[0, :, 1:], data.x)
    torch.testing.assert_close(problem.event[0, 0], data.event.double())
    torch.testing.assert_close(problem.weight.sum((1, 2)), torch.ones(5, dtype=torch.float64))
    assert problem.entry_features is None
    assert problem.upper_features is None


def test_weights_are_the_datas_times_the_folds_and_sum_to_one(tools):
    own = np.random.default_rng(0).uniform(0.5, 2, 30)
    data = tools.simulate(n=30, weight=own)
    folds = torch.tensor(np.random.default_rng(1).random((3, 30)) < 0.6)
    weight = make_problem(data, WEIBULL, weight=folds).weight[:, 0]
    expected = folds * torch.tensor(own)
    torch.testing.assert_close(weight, expected / expected.sum(1, keepdim=True))


def test_clock_is_that_of_the_uncensored_log_times(tools):
    data = tools.simulate(n=40)
    log_time = data.time[data.event].log()
    time_scale = make_problem(data, WEIBULL).time_scale[0]
    torch.testing.assert_close(time_scale, torch.stack([log_time.mean(), log_time.std(correction=0)]))


def test_zero_times_are_floored_at_half_the_smallest_positive():
    assert floor_times(torch.tensor([0.0, 4.0, 2.0])).tolist() == [1.0, 4.0, 2.0]
    assert floor_times(torch.zeros(3)).tolist() == [1.0, 1.0, 1.0]


def test_rows_are_told_apart_by_what_is_known_of_them():
    with pytest.warns(DataWarning, match="time is 0 in 1 of 4 rows"):
        data = SurvivalData(
            pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0]}),
            time=[2.0, 0.0, 3.0, 0.0],
            event=[True, False, False, False],
            entry=[1.0, 0.0, 0.0, 0.0],
            upper=[np.inf, 5.0, 6.0, np.inf],
        )
    problem = make_problem(data, WEIBULL)
    assert problem.truncated.flatten().tolist() == [True, False, False, False]
    assert problem.interval.flatten().tolist() == [False, True, True, False]
    assert problem.started.flatten().tolist() == [True, False, True, False]
    for features in (problem.features, problem.entry_features, problem.upper_features):
        assert torch.isfinite(features).all()


@pytest.mark.parametrize("name", ["weibull", "spline_ph"])
def test_clock_of_interval_censored_data_is_that_of_where_the_events_are(name):
    rng = np.random.default_rng(0)
    time = rng.weibull(1.5, 200) * 1000
    x, never = pd.DataFrame(index=range(200)), np.zeros(200, bool)
    exact = make_problem(SurvivalData(x, time, ~never), get_family(name)).time_scale
    narrow = make_problem(SurvivalData(x, 0.99 * time, never, upper=1.01 * time), get_family(name)).time_scale
    torch.testing.assert_close(narrow, exact, rtol=0, atol=0.02)
    past = make_problem(SurvivalData(x, 0 * time, never, upper=time), get_family(name)).time_scale
    assert abs(float(past[0, 0] - exact[0, 0])) < 1
    assert float(past[0, 1]) == pytest.approx(float(exact[0, 1]), rel=0.01)


def grouped(tools, everything=False):
    """Two data sets of different length as one problem of two groups with three trees each."""
    make = tools.with_everything if everything else tools.simulate
    parts = [make_problem(make(n, seed=k), WEIBULL, n_trees=3) for k, n in enumerate((20, 28))]
    return parts, join_problems(parts)


@pytest.mark.parametrize("everything", [False, True])
def test_joined_problems_pad_with_rows_without_weight(tools, everything):
    parts, joined = grouped(tools, everything)
    assert (joined.n_groups, joined.n_trees) == (2, 6)
    assert joined.design.shape == (2, 28, 4)
    assert (joined.weight[:3, :, 20:] == 0).all()
    torch.testing.assert_close(joined.weight.sum((1, 2)), torch.ones(6, dtype=torch.float64))
    torch.testing.assert_close(joined.features[0, :, :20], parts[0].features[0])
    torch.testing.assert_close(joined.features[1], parts[1].features[0])
    torch.testing.assert_close(joined.time_scale, torch.cat([p.time_scale for p in parts]))


def test_problems_that_know_different_things_do_not_join(tools):
    plain, rich = make_problem(tools.simulate(20), WEIBULL), make_problem(tools.with_everything(20), WEIBULL)
    with pytest.raises(InvalidParameterError, match="entry_features"):
        join_problems([plain, rich])


def test_take_keeps_any_trees(tools):
    one = make_problem(tools.simulate(20), WEIBULL, weight=torch.rand(4, 20, dtype=torch.float64))
    torch.testing.assert_close(one.take(torch.tensor([3, 1])).weight, one.weight[[3, 1]])
    _, joined = grouped(tools)
    second = joined.take(torch.tensor([3, 4, 5]))
    assert (second.n_groups, second.n_trees) == (1, 3)
    torch.testing.assert_close(second.design[0], joined.design[1])
    torch.testing.assert_close(second.weight, joined.weight[3:])
    uneven = joined.take(torch.tensor([2, 3, 5]))
    assert (uneven.n_groups, uneven.n_trees, uneven.sizes) == (2, 3, (1, 2))
    torch.testing.assert_close(uneven.weight, joined.weight[[2, 3, 5]])
    assert uneven.design is joined.design  # rows lie once
    per_tree = uneven.per_tree(uneven.time_scale)
    torch.testing.assert_close(per_tree, joined.time_scale[[0, 1, 1]])
    torch.testing.assert_close(uneven.even_event, joined.event[[0, 1, 1]])
    one_each = uneven.take(torch.tensor([0, 2]))
    assert (one_each.n_groups, one_each.n_trees, one_each.sizes) == (2, 2, None)
    torch.testing.assert_close(one_each.weight, joined.weight[[2, 5]])
    twice = uneven.repeat(2)
    assert twice.sizes == (2, 4)
    torch.testing.assert_close(twice.per_tree(twice.time_scale), joined.time_scale[[0, 0, 1, 1, 1, 1]])


def test_per_tree_repeats_groups(tools):
    _, joined = grouped(tools)
    per_tree = joined.per_tree(joined.time_scale)
    torch.testing.assert_close(per_tree, joined.time_scale[[0, 0, 0, 1, 1, 1]])
