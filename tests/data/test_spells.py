"""Cuts of a history that change nothing leave the data as they were."""

from __future__ import annotations

import numpy as np
import pandas as pd
from oracles.cut_rows import cut_rows

from softsurv.data.readers import survival_data
from softsurv.data.spells import observed


def whole(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.normal(60, 9, n), "kind": rng.choice(["a", "b", None], n)})
    X.loc[rng.random(n) < 0.2, "age"] = np.nan
    return survival_data(X, time=rng.exponential(5, n) + 0.1, cause=np.resize([1, 0, 2], n), weight=rng.random(n) + 0.1)


def test_cut_rows_become_the_rows_they_were_cut_from():
    data, cut = whole(), cut_rows(whole())
    assert cut.n > data.n
    assert cut.joined().fingerprint() == data.fingerprint()


def test_late_entries_and_subjects_of_several_rows_stay():
    late = survival_data({"x": [1.0, 2.0]}, start=[0.0, 1.0], stop=[3.0, 4.0], event=[1, 0], id=["a", "b"])
    assert late.joined().subject is None
    assert late.joined().entry.tolist() == [0.0, 1.0]
    changes = survival_data({"x": [1.0, 2.0]}, start=[0.0, 3.0], stop=[3.0, 4.0], event=[0, 1], id=["a", "a"])
    assert changes.joined() is changes


def test_observation_goes_on_where_covariates_change():
    rows = survival_data({"x": [1, 2, 3]}, start=[2, 4, 1], stop=[4, 9, 5], event=[0, 0, 1], id=[7, 7, 8])
    found = observed(rows)
    assert found.entry.tolist() == [2.0, 1.0]
    assert found.time.tolist() == [9.0, 5.0]
    data = whole()
    assert observed(data) is data
