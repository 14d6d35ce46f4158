"""Every data set of the catalogue states the truth about itself; files come from folder, cache or net."""

from __future__ import annotations

import hashlib
import logging

import numpy as np
import pandas as pd
import pytest

from softsurv.data import sources
from softsurv.data.datasets import DATASETS, list_datasets, load_dataset
from softsurv.data.preprocess import Preprocessor
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, SoftsurvError

SST_PAPER = [
    "aids", "aids_death", "aids2", "churn", "credit", "dialysis", "employee", "flchain", "framingham", "gbsg2",
    "maintenance", "uissurv", "unempdur", "veterans", "whas500",
]  # fmt: skip


OF_THE_PAPER = sorted(name for name, info in DATASETS.items() if info.paper)


_absent: dict[str, str] = {}  # sets whose file could not be had: no second wait for the network


def load(name: str, variant: str | None = None) -> SurvivalData:
    """A data set, or a skip where its file is neither here nor to be downloaded."""
    if name not in _absent:
        try:
            return load_dataset(name, variant)
        except SoftsurvError as error:
            if "could not be downloaded" not in str(error) and "could not be found" not in str(error):
                raise
            _absent[name] = str(error)
    pytest.skip(_absent[name])


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


def leaks(data: SurvivalData) -> list[str]:
    """Features whose value, or being missing, tells the event, or which often equal the time."""
    time, event = data.time.numpy(), data.event.numpy()
    found = []
    for column in data.X:
        values = data.X[column]
        gone = values.isna().to_numpy()
        tells = gone.any() and abs(np.corrcoef(gone, event)[0, 1]) > 0.5
        numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float)
        copies = len(np.unique(time)) > 50 and np.mean(numbers == time) > 0.05
        rate = pd.Series(event).groupby(values.astype(str).to_numpy()).agg(["mean", "size"])
        pure = rate.loc[rate["mean"].isin([0.0, 1.0]) & (rate["size"] > 30), "size"].sum() > 0.5 * data.n
        if tells or copies or pure:
            found.append(column)
    return found


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


def test_the_table_states_everything_and_loads_nothing(monkeypatch):
    monkeypatch.setattr(sources, "find_file", lambda file: pytest.fail("the table opened a file"))
    table = list_datasets()
    assert table.index.tolist() == sorted(DATASETS)
    assert table.loc["gbsg2", ["n", "p", "events", "censoring_percent"]].tolist() == [686, 8, 299, 56.4]
    for column in ("source", "event", "time_unit", "dropped"):
        assert table[column].str.len().gt(0).all()


@pytest.mark.parametrize(
    ("name", "variant", "match"),
    [
        ("gbsg3", None, "name must be one of aids, aids2, .* or survset:<name>, got 'gbsg3'"),
        (7, None, "got 7"),
        (["gbsg2"], None, "name must be one of"),
        ("gbsg2", "full", "variant of 'gbsg2' must be None or one of paper, got 'full'"),
        ("survset:gbsg2", None, "got 'gbsg2'; close ones: GBSG2"),
        ("survset:ova", "paper", "variant of 'survset:ova' must be None or one of raw"),
        ("mgus2", "paper", "variant of 'mgus2' must be None, as there is no other, got 'paper'"),
    ],
)
def test_unknown_names_and_variants_are_named(name, variant, match):
    with pytest.raises(InvalidParameterError, match=match):
        load_dataset(name, variant)


def test_survset_tables():
    data = load_dataset("survset:ova")
    assert (data.n, data.name) == (358, "survset:ova")
    assert "num_karn" in data.feature_names  # held as a number and as a factor: prefixes stay
    assert "fac_karn" in data.feature_names
    assert "figo" in data.feature_names
    assert load_dataset("survset:GBSG2").n == 686


def test_an_empty_level_of_survset_is_missing_as_it_is_after_a_csv_file(tmp_path):
    ekg = load_dataset("survset:prostate").X["ekg"]
    assert ekg.isna().sum() == 8
    ekg.to_csv(tmp_path / "ekg.csv", index=False)
    again = pd.read_csv(tmp_path / "ekg.csv")["ekg"]
    assert again.isna().equals(ekg.isna())
    assert set(again.dropna()) == set(ekg.cat.categories)


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


def test_every_survset_table_loads():
    from SurvSet.data import SurvLoader

    tables = SurvLoader().df_ds
    names = set(tables.loc[tables["n_num"] < 600, "ds"])
    assert len(names) > 50
    for name in sorted(names):
        assert load_dataset(f"survset:{name}").n_events > 0


@pytest.fixture
def small_file(tmp_path, monkeypatch):
    """A file on a file:// net, an empty cache, and no folder."""
    import platformdirs

    net = tmp_path / "net" / "small.csv"
    net.parent.mkdir()
    net.write_bytes(b"a,b\n1, x \n2,y\n")
    monkeypatch.delenv(sources.FOLDER_VARIABLE, raising=False)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda app: tmp_path / "cache" / app)
    return sources.DataFile("small.csv", hashlib.sha256(net.read_bytes()).hexdigest(), net.as_uri())


def test_a_file_is_downloaded_once_and_then_cached(small_file, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    path = sources.find_file(small_file)
    assert path == tmp_path / "cache" / "softsurv" / "small.csv"
    (tmp_path / "net" / "small.csv").unlink()
    assert sources.find_file(small_file) == path
    assert len([r for r in caplog.records if "downloading" in r.message]) == 1
    assert [p.name for p in path.parent.iterdir()] == ["small.csv"]  # no half-written file left
    assert sources.from_csv(small_file)["b"].tolist() == ["x", "y"]


def test_a_damaged_cache_is_fetched_again(small_file):
    path = sources.find_file(small_file)
    path.write_bytes(b"a,b\n1")
    assert sources.find_file(small_file).read_bytes() == b"a,b\n1, x \n2,y\n"


@pytest.mark.parametrize("under", ["", "pysurvival"])
def test_the_folder_comes_first(small_file, tmp_path, monkeypatch, under):
    folder = tmp_path / "mine" / under
    folder.mkdir(parents=True)
    (folder / "small.csv").write_bytes((tmp_path / "net" / "small.csv").read_bytes())
    monkeypatch.setenv(sources.FOLDER_VARIABLE, str(tmp_path / "mine"))
    assert sources.find_file(small_file) == folder / "small.csv"
    (folder / "small.csv").write_bytes(b"edited")
    with pytest.raises(SoftsurvError, match=r"must have the sha256 .* got another content; replace it by"):
        sources.find_file(small_file)


def test_a_folder_without_the_file_falls_through_to_the_cache(small_file, tmp_path, monkeypatch):
    monkeypatch.setenv(sources.FOLDER_VARIABLE, str(tmp_path))
    assert sources.find_file(small_file).parent == tmp_path / "cache" / "softsurv"


def test_a_folder_that_does_not_exist_is_named(small_file, tmp_path, monkeypatch):
    monkeypatch.setenv(sources.FOLDER_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(SoftsurvError, match=r"SOFTSURV_DATA must name an existing folder, got .*nowhere"):
        sources.find_file(small_file)


def test_no_network_is_one_sentence_with_the_remedy(small_file, tmp_path):
    (tmp_path / "net" / "small.csv").unlink()
    with pytest.raises(
        SoftsurvError, match=r"small\.csv could not be downloaded .* by hand .* SOFTSURV_DATA"
    ) as caught:
        sources.find_file(small_file)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "cache").exists()


def test_a_file_of_one_folder_alone_is_never_downloaded(monkeypatch):
    monkeypatch.delenv(sources.FOLDER_VARIABLE, raising=False)
    monkeypatch.setattr(sources, "_cached", lambda file: pytest.fail("the cache was asked"))
    with pytest.raises(
        SoftsurvError, match=r"mgus2\.csv could not be found: .* folder 'event-history' of a folder named"
    ):
        load_dataset("mgus2")


def test_a_changed_download_is_refused(small_file, tmp_path):
    (tmp_path / "net" / "small.csv").write_bytes(b"something else")
    with pytest.raises(SoftsurvError, match="as downloaded differs from the recorded checksum"):
        sources.find_file(small_file)
    assert not (tmp_path / "cache").exists()


def test_the_four_files_are_fetched_from_pysurvival():
    for file in (sources.CHURN, sources.CREDIT, sources.EMPLOYEE, sources.MAINTENANCE):
        assert file.url == f"https://raw.githubusercontent.com/square/pysurvival/master/pysurvival/datasets/{file.name}"
        assert len(file.sha256) == 64
