"""The family of leaves is chosen once more where the rules of a tree say that another one fits."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from softsurv.data.preprocess import Preprocessor
from softsurv.data.readers import survival_data
from softsurv.hazards import get_family
from softsurv.soft.parallel import Machine
from softsurv.sparse import fit
from softsurv.sparse.causes import SEPARATOR
from softsurv.sparse.choose import try_all
from softsurv.sparse.fit import split_data
from softsurv.sparse.folds import Grid
from softsurv.sparse.prefer import surpass
from softsurv.sparse.trials import FamilyTrials

GRID = Grid(leaves=(1, 2), ridges=(0.3,), terms=(1,), shrinkage=((10.0, None), (10.0, 1.0), (1.0, 0.1)), more_leaves=())
FAMILIES = ("spline_po", "weibull")


def two_weibull(n=1200, seed=1):
    """Two regressions with shapes and slopes of their own: in one leaf they look like proportional odds."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.random((n, 3)), columns=list("abc"))
    high = (X["a"] > 0.5).to_numpy()
    scale = np.exp(np.where(high, -1.5, 1.5) * (X["b"].to_numpy() - 0.5))
    time = scale * rng.weibull(np.where(high, 2.5, 0.8))
    return X, time, rng.exponential(3.0, n)


def with_causes(n=1200):
    """The same with events of a second cause, of proportional odds."""
    X, first, _ = two_weibull(n)
    rng = np.random.default_rng(2)
    second = np.exp(0.4 * rng.logistic(size=len(X)) + np.where(X["a"] > 0.5, 1.5, 0.0))
    return survival_data(X, time=np.minimum(first, second), cause=np.where(first < second, 1, 2))


def encoded(data):
    encoder = Preprocessor()
    return data.with_features(encoder.fit_transform(data.X)), encoder.columns_


def tried(data, grid=GRID):
    rows, columns = encoded(data)
    split = split_data(rows.x.numpy(), columns)
    of_each = [[get_family(name) for name in FAMILIES]] * data.n_causes
    return try_all(rows, split, of_each, grid, 0, Machine(torch.device("cpu")))


@pytest.fixture(scope="module")
def found():
    X, time, censored = two_weibull()
    return tried(survival_data(X, (time <= censored, np.minimum(time, censored))))


def families_of(trials, trees):
    """Families of the trials with more than one leaf, or with one."""
    return {trial.candidate.family for trial in trials if bool(trial.candidate.depth) == trees}


def test_trees_are_sought_with_the_family_that_fits_in_their_leaves(found):
    single = [trial for trial in found.trials if not trial.candidate.depth]
    assert min(single, key=lambda trial: trial.mean).candidate.family == "spline_po"
    assert found.of_family.name == "weibull"
    assert families_of(found.trials, trees=True) == {"weibull"}
    assert families_of(found.trials, trees=False) == set(FAMILIES)


def test_trees_that_were_given_up_stay_in_the_table(found):
    assert families_of(found.given_up, trees=True) == {"spline_po"}
    best = {
        name: min(row["loss"] for row in found.table(found.trials[0]) if row["family"] == name) for name in FAMILIES
    }
    assert best["weibull"] < best["spline_po"]
    told = {row["family"] for row in found.table(found.trials[0]) if row["depth"]}
    assert told == set(FAMILIES)


def test_trees_of_another_family_have_the_depth_that_is_asked_for(monkeypatch):
    """Time ends after the shallow ones: better as they are, they are no answer to ``depth=2``."""
    X, time, censored = two_weibull()
    whole, asked = FamilyTrials.trees, []

    def cut_off(self, stop, tell):
        asked.append(self.name)
        found = whole(self, stop, tell)
        return [one for one in found if one.candidate.leaves == 2] if self.name == "weibull" else found

    monkeypatch.setattr(FamilyTrials, "trees", cut_off)
    data = survival_data(X, (time <= censored, np.minimum(time, censored)))
    found = tried(data, replace(GRID, leaves=(2, 3), depth=2))
    assert asked == ["spline_po", "weibull"]
    assert {trial.candidate.depth for trial in found.trials} == {2}
    assert families_of(found.trials, trees=True) == {"spline_po"}
    assert surpass(found.given_up, found.trials)


def test_the_family_stays_where_it_fits():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((600, 2)), columns=list("ab"))
    time = rng.logistic(size=600) * 0.3 + np.where(X["a"] > 0.5, 1.0, -1.0)
    found = tried(survival_data(X, (np.ones(600, bool), np.exp(time))))
    assert found.of_family.name == "spline_po"
    assert not found.given_up


def test_each_cause_has_the_family_that_fits_in_the_leaves():
    found = tried(with_causes())
    assert found.of_family.name == SEPARATOR.join(["weibull", "spline_po"])
    assert families_of(found.trials, trees=True) == {found.of_family.name}
    # one leaf is that of the families which do best in it: trees were compared with a worse one
    assert families_of(found.trials, trees=False) == {found.of_one_leaf.name} == {SEPARATOR.join(["spline_po"] * 2)}
    assert {found.of_family.name, found.of_one_leaf.name} <= found.problems.keys()


@pytest.mark.parametrize("choice_rows", [None, 600])
def test_a_single_leaf_of_causes_is_of_its_own_families(monkeypatch, choice_rows):
    """Also where the trees that it is preferred to are of others."""
    monkeypatch.setattr("softsurv.sparse.fit.preferred", lambda trials, *how: (trials[0], "of course"))
    settled, settle = [], fit.settle
    monkeypatch.setattr("softsurv.sparse.fit.settle", lambda *how: settled.append(how[1].name) or settle(*how))
    rows, columns = encoded(with_causes())
    families = [get_family(name) for name in FAMILIES]
    made = fit.fit_rules(rows, columns, families, GRID, machine=Machine(torch.device("cpu")), choice_rows=choice_rows)
    assert made.tried.of_family.name != made.tried.of_one_leaf.name
    assert [tree.family.name for tree in made.trees] == ["spline_po", "spline_po"]
    assert settled == [made.tried.of_one_leaf.name]
