"""Where raw tables come from: files of a folder, of the cache and of the net; SurvSet; frames with named outcomes."""

from __future__ import annotations

import hashlib
import logging
import warnings

import pandas as pd
import pytest

from softsurv.data import sources
from softsurv.data.datasets import load_dataset
from softsurv.errors import SoftsurvError


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


def test_text_is_stripped_and_made_categorical(tmp_path, monkeypatch):
    (tmp_path / "rows.csv").write_bytes(b"x,arm\n1, new \n,old\n3,\n")
    file = sources.of_folder("none", "rows.csv", hashlib.sha256((tmp_path / "rows.csv").read_bytes()).hexdigest())
    monkeypatch.setenv(sources.FOLDER_VARIABLE, str(tmp_path))
    frame = sources.from_csv(file)
    assert frame["arm"].cat.categories.tolist() == ["new", "old"]
    assert frame.isna().sum().tolist() == [1, 1]
    assert frame["x"].dtype == float


def test_a_frame_becomes_data_without_a_word_on_zero_times():
    frame = pd.DataFrame({"t": [0.0, 2.0], "died": [1, 0], "sex": ["f", "m"], "x": [1.0, 2.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = sources.as_data("small", frame, "t", "died", group="sex")
    assert (data.name, data.feature_names, data.group_names) == ("small", ["x"], ("f", "m"))
    assert data.n_zero_times == 1
