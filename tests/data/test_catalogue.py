"""Every data set of the catalogue states the truth about itself, and gives no outcome away."""

from __future__ import annotations

import pandas as pd
import pytest
from oracles.data_sets import leaks, load

from softsurv.data.datasets import DATASETS, load_dataset
from softsurv.data.preprocess import Preprocessor

SST_PAPER = [
    "aids", "aids_death", "aids2", "churn", "credit", "dialysis", "employee", "flchain", "framingham", "gbsg2",
    "maintenance", "uissurv", "unempdur", "veterans", "whas500",
]  # fmt: skip


OF_THE_PAPER = sorted(name for name, info in DATASETS.items() if info.paper)


def test_the_catalogue_has_the_papers_sets():
    assert set(DATASETS) >= {*SST_PAPER, "unemployment"}


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_contract(name):
    info, data = DATASETS[name], load(name)
    summary = data.summary()
    stated = (info.n, info.p, info.events, info.zero_times)
    assert tuple(summary[key] for key in ("n", "p", "events", "zero_times")) == stated
    assert data.name == info.name == name
    assert not {"pid", "id", "time", "event"} & set(data.feature_names)
    assert data.fingerprint() == load(name).fingerprint()
    encoded = Preprocessor().fit_transform(data.X)
    assert len(encoded) == data.n
    assert not encoded.isna().to_numpy().any()
    train, test = data.split(0.2, seed=0)
    assert data.recurrent or abs(test.n_events - 0.2 * data.n_events) <= 1  # subjects stay whole
    assert train.n + test.n == data.n
    assert info.load.__doc__


@pytest.mark.parametrize("name", OF_THE_PAPER)
def test_paper_variant_matches_the_paper_or_the_note_says_why(name):
    info, data = DATASETS[name], load(name, "paper")
    n, p, censoring = info.paper
    same = data.n == n and data.X.shape[1] == p and abs(data.summary()["censoring_percent"] - censoring) < 0.06
    assert same or info.note


def test_where_the_paper_variant_differs_from_the_paper():
    """The known list of slips in the printed table: a change here is news."""
    differs = set()
    for name in OF_THE_PAPER:
        info, data = DATASETS[name], load(name, "paper")
        found = (data.n, data.X.shape[1], data.summary()["censoring_percent"])
        if found != pytest.approx(info.paper, abs=0.06):
            differs.add(name)
    assert differs == {"aids_death", "employee", "flchain", "uissurv", "unemployment"}


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_no_default_feature_gives_the_outcome_away(name):
    assert leaks(load(name)) == []


def test_the_leaks_of_the_paper_variants_are_found():
    assert leaks(load_dataset("flchain", "paper")) == ["chapter"]
    assert leaks(load_dataset("whas500", "paper")) == ["los"]


def test_flchain_has_no_cause_of_death_unless_asked_for():
    assert "chapter" not in load_dataset("flchain").feature_names
    paper = load_dataset("flchain", variant="paper")
    assert "chapter" in paper.feature_names
    alive = ~paper.event.numpy()
    assert paper.X["chapter"].isna().to_numpy()[alive].all()  # why it is a leak
    assert "chapter" in DATASETS["flchain"].dropped
    assert "chapter" in load_dataset.__doc__
    assert "chapter" in DATASETS["flchain"].load.__doc__
    assert "chapter" not in load_dataset("survset:flchain").feature_names
    assert "chapter" in load_dataset("survset:flchain", variant="raw").feature_names


def test_whas500_has_no_length_of_stay_unless_asked_for():
    assert "los" not in load_dataset("whas500").feature_names
    paper = load_dataset("whas500", variant="paper")
    assert int(((paper.X["los"].to_numpy() == paper.time.numpy()) & paper.event.numpy()).sum()) == 40


def test_the_two_aids_endpoints_share_features_and_nothing_else():
    first, second = load_dataset("aids"), load_dataset("aids_death")
    pd.testing.assert_frame_equal(first.X, second.X)
    assert (first.time <= second.time).all()
    assert first.n_events > second.n_events


def test_employee_duplicates():
    raw, data = load("employee", "raw"), load("employee")
    assert raw.n - data.n == raw.summary()["duplicate_rows"] == 3008
    assert data.summary()["duplicate_rows"] == 0
    assert "promotion_last_5years" not in load("employee", "paper").feature_names


def test_framingham_paper_variant_holds_complete_rows():
    data, paper = load_dataset("framingham"), load_dataset("framingham", "paper")
    assert data.summary()["missing_cells"] == 42
    assert paper.summary()["missing_cells"] == 0


def test_credit_reads_none_as_a_level():
    assert load("credit").X.isna().to_numpy().sum() == 0
    assert "None" in set(load("credit").X["other_debtors"])
    assert "real_estate" in set(load("credit").X["property"])  # blanks are stripped


def test_unemployment_has_a_group_that_is_no_feature():
    data = load_dataset("unemployment")
    assert data.group_names == ("male", "female")
    assert data.group.shape == (452,)
    assert "sex" not in data.feature_names
