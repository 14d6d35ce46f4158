"""What leaves say: effects against the tree's own predictor, errors by the delta method, words against the curves."""

import math

import numpy as np
import pytest
import torch
from oracles.encoded import COLUMNS, SOURCES

from softsurv.data.encoding import OutputColumn, Source
from softsurv.hazards import get_family
from softsurv.trees.leaf_effects import (
    baseline_table,
    contrasts,
    effect_table,
    measure_of,
    shape_words,
    shares_slopes,
)
from softsurv.trees.soft_tree import SoftTree

USED = np.array([0, 1])


def tree_of(name, p=4, depth=1):
    rng = np.random.default_rng(2)
    tree = SoftTree(depth, p, get_family(name))
    with torch.no_grad():
        tree.leaves.copy_(torch.tensor(0.4 * rng.standard_normal(tree.leaves.shape)))
        log_time = torch.tensor(3.0 + 0.7 * rng.standard_normal(60))
        tree.time_scale.copy_(tree.family.fit_time_scale(log_time, torch.ones(60, dtype=torch.bool))[None])
    root = rng.standard_normal((2**depth, tree.leaves.shape[-1], 20)) / 20
    return tree, root @ root.transpose(0, 2, 1)


def spread(value):
    return np.full(len(COLUMNS), value)


@pytest.mark.parametrize(
    ("per", "deviation", "words", "encoded"),
    [("step", 0.7, "+10", 10 / 50), ("unit", 0.7, "+1", 1 / 50), ("sd", 0.7, "+35 (1 sd)", 0.7),
     ("step", 0.0, "+1", 1 / 50), ("sd", 0.0, "+1 (1 sd)", 1 / 50)],
)  # fmt: skip
def test_a_step_of_a_number_is_told_in_its_units(per, deviation, words, encoded):
    (age,) = [one for one in contrasts(COLUMNS, SOURCES, spread(deviation), per) if one.words.startswith("+")]
    assert (age.feature, age.words) == ("age", words)
    np.testing.assert_allclose(age.encoded, [encoded, 0, 0, 0])


def test_a_step_of_a_whole_number_is_one_at_least():
    """A tenth of a performance status from 0 to 3 is no difference of two patients."""
    asked = (("step",), ("step", ["age"]), ("sd", ["age"]))
    told = [contrasts(COLUMNS, SOURCES, spread(0.014), *how)[0].words for how in asked]
    assert told == ["+0.1", "+1", "+0.7 (1 sd)"]
    assert contrasts(COLUMNS, SOURCES, spread(0.7), "step", ["age"])[0].words == "+10"


def test_levels_are_against_the_first_and_missing_against_known():
    found = {one.words: one.encoded.tolist() for one in contrasts(COLUMNS, SOURCES, spread(0.7))}
    assert found["II vs I"] == [0, 1, 0, 0]
    assert found["III vs I"] == [0, 0, 1, 0]
    assert found["missing vs known"] == [0, 0, 0, 1]


def test_a_first_level_with_a_column_is_the_other_side_of_the_hidden_one():
    columns = [OutputColumn("sex=f", "sex", "level", "f")]
    (one,) = contrasts(columns, [Source("sex", ("f", "<m"), None)], np.ones(1))
    assert one.words == '"<m" vs f'  # a level that reads as an operator stands in quotes
    assert one.encoded.tolist() == [-1]
    every = [OutputColumn(f"sex={level}", "sex", "level", level) for level in ("f", "m")]
    (one,) = contrasts(every, [Source("sex", ("f", "m"), None)], np.ones(2))
    assert (one.words, one.encoded.tolist()) == ("m vs f", [-1, 1])


@pytest.mark.parametrize(
    ("name", "measure"), [("weibull", "hazard ratio"), ("loglogistic", "odds ratio of the event"),
                          ("lognormal", "shift in standard deviations")],
)  # fmt: skip
def test_effects_are_what_the_predictor_does(name, measure):
    tree, covariance = tree_of(name)
    asked = contrasts(COLUMNS, SOURCES, spread(0.7))
    table = effect_table(tree, USED, covariance, asked)
    assert measure_of(tree.family) == measure
    base, time = torch.full((1, 4), 0.3, dtype=torch.float64), torch.tensor([10.0], dtype=torch.float64)
    for leaf in USED:
        for one in asked:
            at = torch.full((1, 1), leaf)
            moved, own = (tree.predictor(x, time, at)[0].item() for x in (base + torch.tensor(one.encoded), base))
            row = table.loc[(leaf, one.feature, one.words)]
            g = np.concatenate([[0], one.encoded, np.zeros(tree.family.n_shape)])
            assert row["coefficient"] == pytest.approx(moved - own)
            assert row["standard_error"] == pytest.approx(np.sqrt(g @ covariance[leaf] @ g))
            scale = float if name == "lognormal" else math.exp
            assert row["effect"] == pytest.approx(scale(moved - own))
            assert row["upper"] == pytest.approx(scale(moved - own + 1.959964 * row["standard_error"]))


@pytest.mark.parametrize("name", ["exponential", "weibull", "lognormal"])
def test_a_time_ratio_is_the_ratio_of_survival_times(name):
    tree, covariance = tree_of(name)
    with torch.no_grad():
        tree.routing.zero_()
    asked = contrasts(COLUMNS, SOURCES, spread(0.7))
    table = effect_table(tree, USED, covariance, asked, measure="time")
    leaf = int(tree.apply_leaf(torch.zeros(1, 4, dtype=torch.float64)))
    for one in asked:
        x = torch.stack([torch.zeros(4, dtype=torch.float64), torch.tensor(one.encoded)])
        base, moved = tree.survival_time(x, 0.5)[0].tolist()
        assert table.loc[(leaf, one.feature, one.words), "effect"] == pytest.approx(moved / base, rel=1e-6)


def test_leaves_that_share_their_slopes_have_one_row():
    tree, _ = tree_of("weibull")
    with torch.no_grad():
        tree.leaves[0, 1, 1:5] = tree.leaves[0, 0, 1:5]
    asked = contrasts(COLUMNS, SOURCES, spread(0.7))
    assert set(effect_table(tree, USED, None, asked).index.get_level_values("leaf")) == {"all"}
    assert set(effect_table(tree, USED, None, asked, "time").index.get_level_values("leaf")) == {0, 1}
    assert effect_table(tree, USED, None, asked)[["standard_error", "lower", "upper"]].isna().all(axis=None)
    assert shares_slopes(tree.leaves[0], 4)
    assert not shares_slopes(tree.leaves[0, :1], 4)


def test_the_typical_median_and_its_interval_are_the_delta_method():
    tree, covariance = tree_of("loglogistic")
    typical = np.array([[0.2, 1.0, 0.0, 0.0], [0.6, 0.0, 1.0, 1.0]])
    table = baseline_table(tree, USED, covariance, typical)
    for leaf in USED:
        x = torch.tensor(typical[leaf])[None]
        log_median = math.log(table["median"][leaf])
        time = torch.tensor([log_median], dtype=torch.float64).exp().requires_grad_(True)
        z = tree.predictor(x, time, torch.full((1, 1), leaf))[0].squeeze()
        assert z.item() == pytest.approx(0.0, abs=1e-9)  # odds of one
        by_leaves, by_time = torch.autograd.grad(z, (tree.leaves, time))
        g = by_leaves[0, leaf].numpy() / (by_time.item() * time.item())  # implicit: d log median by the parameters
        error = np.sqrt(g @ covariance[leaf] @ g)
        assert math.log(table["median_upper"][leaf]) - log_median == pytest.approx(1.959964 * error, rel=1e-6)
        assert log_median - math.log(table["median_lower"][leaf]) == pytest.approx(1.959964 * error, rel=1e-6)
    assert baseline_table(tree, USED, None, typical)["median_lower"].isna().all()
    alike = [baseline_table(tree, USED, covariance, row) for row in (typical[1], typical[[1, 1]])]
    assert alike[0].equals(alike[1])  # one row for all leaves


def test_a_median_of_which_nothing_is_known_has_an_infinite_upper_end():
    """Weights that sum to next to nothing make errors of hundreds."""
    tree, covariance = tree_of("loglogistic")
    table = baseline_table(tree, USED, 1e12 * covariance, np.zeros((2, 4)))
    assert table["median_upper"].tolist() == [np.inf, np.inf]
    assert table["median_lower"].tolist() == [0.0, 0.0]


def hazards_of(tree, leaf, times):
    """Log H, z and the hazard of a row of zeros in a leaf, by the tree's predictor."""
    time = torch.tensor(times, dtype=torch.float64, requires_grad=True)
    at = torch.full((1, 1), leaf)
    z = tree.predictor(torch.zeros(1, 4, dtype=torch.float64), time, at)[0][0, 0]
    total = tree.family.link.cumulative_hazard(z)[0]
    (hazard,) = torch.autograd.grad(total.sum(), time)
    return total.log().detach().numpy(), z.detach().numpy(), hazard.numpy()


@pytest.mark.parametrize("leaf", [0, 1])
def test_shapes_are_those_of_the_curves(leaf):
    times = [5.0, 6.0]
    log_h, _, _ = hazards_of(tree_of("weibull")[0], leaf, times)
    slope = np.diff(log_h)[0] / math.log(6 / 5)
    assert shape_words(tree_of("weibull")[0], leaf) == f"Weibull shape {slope:.3g}"
    for name, words, form in (
        ("loglogistic", "log-logistic shape", lambda s: s), ("lognormal", "log-normal sigma", lambda s: 1 / s)
    ):  # fmt: skip
        z = hazards_of(tree_of(name)[0], leaf, times)[1]
        assert shape_words(tree_of(name)[0], leaf) == f"{words} {form(np.diff(z)[0] / math.log(6 / 5)):.3g}"
    hazard = hazards_of(tree_of("gompertz")[0], leaf, times)[2]
    assert (
        shape_words(tree_of("gompertz")[0], leaf) == f"hazard grows by {hazard[1] / hazard[0] - 1:.3g} a unit of time"
    )


@pytest.mark.parametrize("rate", [2.0, 699.0, 701.0, 1000 * math.log(10) - 1e-4, 5e4])
def test_a_hazard_that_grows_beyond_floats_is_told(rate):
    """The unit of time may be long beside the times: their mean is a part of a thousand here."""
    tree, _ = tree_of("gompertz")
    with torch.no_grad():
        tree.time_scale[0, 0] = math.log(1e-3)
        tree.leaves[0, 0, -1] = rate * 1e-3
    number = shape_words(tree, 0).removeprefix("hazard grows by ").removesuffix(" a unit of time")
    digits, _, power = number.partition("e+")
    assert float(digits) < 10
    assert math.log(float(digits)) + int(power or 0) * math.log(10) == pytest.approx(
        rate + math.log1p(-math.exp(-rate)), abs=0.01
    )


def test_families_without_one_number_say_what_they_are():
    assert shape_words(tree_of("exponential")[0], 0) == "constant hazard"
    assert shape_words(tree_of("spline_ph")[0], 0) == "spline of log hazard, 2 inner knots"
    tree, _ = tree_of("weibull")
    tree.family.name = "own"
    value = tree.leaves[0, 0, -1].item()
    assert shape_words(tree, 0) == f"own shape {value:.3g}"
