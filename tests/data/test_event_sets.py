"""Data sets of event histories: their causes and subjects, and what a raw variant gives away."""

import numpy as np
import pandas as pd
import pytest
from oracles.data_sets import leaks, load


@pytest.mark.parametrize(
    ("name", "causes", "subjects"),
    [
        ("mgus2", {"malignancy": 115, "death": 860}, 1384),
        ("pbc_transplant", {"transplant": 25, "death": 161}, 418),
        ("pbcseq", {"transplant": 29, "death": 140}, 312),
        ("heart_transplant", {}, 103),
        ("cgd", {}, 128),
        ("survset:follic", {"1": 272, "2": 76}, 541),
        ("survset:heart", {}, 103),
    ],
)
def test_event_histories(name, causes, subjects):
    data = load(name)
    assert data.summary()["causes"] == causes
    assert data.n_subjects == subjects
    assert data.recurrent == (name == "cgd")
    assert not {"cause", "start", "stop", "time2", "enum"} & set(data.feature_names)


def test_the_raw_visits_of_pbcseq_give_deaths_away():
    assert "ascites" in leaks(load("pbcseq", "raw"))
    data, raw = load("pbcseq"), load("pbcseq", "raw")
    first = np.unique(data.subject.numpy(), return_index=True)[1]
    pd.testing.assert_frame_equal(data.X.iloc[first], raw.X.iloc[first])
    same = raw.X["bili"].notna()
    assert (data.X["bili"] == raw.X["bili"])[same].all()


def test_the_two_sources_of_stanfords_heart_transplants_agree():
    ours, theirs = load("heart_transplant"), load("survset:heart")
    np.testing.assert_array_equal(ours.time, theirs.time)
    np.testing.assert_array_equal(ours.event, theirs.event)
    np.testing.assert_allclose(ours.X["age"], theirs.X["age"])


def test_the_number_of_an_infection_is_in_the_raw_variant_alone():
    data, raw = load("cgd"), load("cgd", "raw")
    assert set(raw.feature_names) - set(data.feature_names) == {"enum"}
    np.testing.assert_array_equal(data.time, raw.time)


def test_a_missing_value_of_a_visit_is_that_of_the_visit_before_and_of_no_other_patient():
    data, raw = load("pbcseq"), load("pbcseq", "raw")
    order = np.lexsort((data.entry.numpy(), data.subject.numpy()))
    who, filled, given = data.subject.numpy()[order], data.X["chol"].to_numpy()[order], raw.X["chol"].to_numpy()[order]
    last, previous = np.nan, None
    for k in range(len(order)):
        last = np.nan if who[k] != previous else last
        last = last if np.isnan(given[k]) else given[k]
        assert filled[k] == last or (np.isnan(filled[k]) and np.isnan(last))
        previous = who[k]
    assert np.isnan(given).sum() > np.isnan(filled).sum() > 0
