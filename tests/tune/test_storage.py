"""Where studies are kept: journals, databases and memory; trials whose worker ended, and errors of a lost database."""

from __future__ import annotations

import gc
import os
import pickle
from pathlib import Path

import optuna
import pytest
import sqlalchemy
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

from softsurv.errors import InvalidParameterError, SoftsurvError
from softsurv.tune.liveness import process_mark
from softsurv.tune.storage import (
    JournalLock,
    beats_folder,
    check_place,
    drop_half_record,
    fail_dead_trials,
    fail_own_trials,
    has_unmarked_trials,
    is_lost,
    open_storage,
)


@pytest.mark.parametrize("copied", [False, True])
def test_a_database_closes_its_connections(tmp_path, copied):
    storage = open_storage(f"sqlite:///{tmp_path}/study.db", None)
    if copied:
        storage = pickle.loads(pickle.dumps(storage))
    pool = storage.engine.pool
    assert pool.checkedin() > 0
    del storage
    gc.collect()
    assert pool.checkedin() == 0


def test_a_folder_that_is_not_there_is_made_for_a_journal_and_told_for_a_database(tmp_path):
    open_storage(tmp_path / "a" / "study.journal", None)
    assert (tmp_path / "a").is_dir()
    with pytest.raises(InvalidParameterError, match=r"in a folder that is there, got .*; make the folder .*/b'"):
        open_storage(f"sqlite:///{tmp_path}/b/study.db", None)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (
            "sqlite://study.db",
            r"three slashes before an SQLite file, got 'sqlite://study.db'; write sqlite:///study.db",
        ),
        ("sqlite:/study.db", r"got 'sqlite:/study.db'; write sqlite:////study.db"),
        (
            "sqlite:///trial.csv",
            r"new file or an SQLite database, got 'sqlite:///trial.csv', which is neither",
        ),
        ("sqlite:///.", r"got 'sqlite:///.', which is a folder; write sqlite:///./study.db"),
        ("nosuch://host/base", r"must be the URL of a database, got 'nosuch://host/base', which is none .*nosuch"),
        ("postgresql://me:secret@host:port/base", r"got 'postgresql://...@host:port/base', which is none"),
        ("study.db", r"got 'study.db'; write sqlite:///study.db"),
    ],
)
def test_a_url_that_no_trial_can_open_is_refused_at_once(url, words, tmp_path, monkeypatch):
    """It was tried five times, for three seconds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("softsurv.tune.storage.Database", None)
    (tmp_path / "trial.csv").write_text("age,months,died")
    with pytest.raises(InvalidParameterError, match=words) as caught:
        open_storage(url, None)
    assert "secret" not in str(caught.value)
    assert os.listdir(tmp_path) == ["trial.csv"]


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite:///new.db", "sqlite:///file:m?mode=memory"])
def test_places_that_may_be_opened_pass_and_nothing_is_made(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert check_place(url) is None
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content", [b"age,months,died\n61,3,1\n52,9,0", b"\xd5\x00\n", b"x"])
def test_a_file_that_is_no_journal_is_refused_and_stays(tmp_path, content):
    """A record was added to it, and its last line cut off where it had no end."""
    (tmp_path / "trial.csv").write_bytes(content)
    with pytest.raises(InvalidParameterError, match=r"must be a new file or the journal of a study, got .*trial.csv'"):
        open_storage(tmp_path / "trial.csv", None)
    assert (tmp_path / "trial.csv").read_bytes() == content


def test_a_folder_is_no_journal(tmp_path):
    """It was an IsADirectoryError."""
    with pytest.raises(InvalidParameterError, match=r"must name a file, got the folder .*; write .*/study.journal"):
        open_storage(tmp_path, None)


@pytest.mark.parametrize("record", ["no record", '{"op_cpde": 4}', '{"op_code": 4}', "[]", '{"op_code": "x"}'])
def test_a_damaged_journal_is_one_sentence(tmp_path, record):
    """A record that is JSON of other names was an unexpected KeyError."""
    path = tmp_path / "study.journal"
    optuna.create_study(storage=open_storage(path, None))
    path.write_bytes(path.read_bytes() + f"{record}\n{record}\n".encode())
    with pytest.raises(SoftsurvError, match=r"study.journal' is a damaged journal .*; restore it from a copy"):
        open_storage(path, None)


@pytest.mark.parametrize("begin", [b"", b'{"op', b'{"op_code":0,"wor'])
def test_a_journal_whose_first_record_was_cut_off_is_taken(tmp_path, begin):
    path = tmp_path / "study.journal"
    path.write_bytes(begin)
    optuna.create_study(study_name="s", storage=open_storage(path, None))
    assert optuna.load_study(study_name="s", storage=open_storage(path, None)).trials == []


def test_a_server_that_is_not_there_is_one_sentence():
    pytest.importorskip("psycopg2", reason="the driver psycopg2 is not installed")
    with pytest.raises(SoftsurvError, match=r"cannot be opened .*check the URL") as caught:
        open_storage("postgresql+psycopg2://me:secret@127.0.0.1:9/base", None)
    assert "secret" not in str(caught.value)


def test_a_missing_driver_is_one_sentence():
    with pytest.raises(SoftsurvError, match="needs a database driver"):
        open_storage("oracle+cx_oracle://me@127.0.0.1/base", None)


def test_a_half_written_record_is_dropped(tmp_path):
    path = tmp_path / "study.journal"
    study = optuna.create_study(study_name="s", storage=open_storage(path, None))
    study.enqueue_trial({"x": 1})
    whole = path.read_bytes()
    for cut in (whole[:-1], whole + b'{"op_code":4,"wor', whole + b"x" * 100_000):
        path.write_bytes(cut)
        storage = JournalStorage(JournalFileBackend(str(path), lock_obj=JournalLock(str(path))))
        again = optuna.load_study(study_name="s", storage=storage)
        again.set_user_attr("after", 1)
        reread = optuna.load_study(study_name="s", storage=open_storage(path, None))
        assert reread.user_attrs == {"after": 1}
        path.write_bytes(whole)
    empty = tmp_path / "empty"
    empty.write_bytes(b"no newline at all")
    drop_half_record(empty)
    assert empty.read_bytes() == b""


def test_trials_of_live_workers_are_left_alone(tmp_path):
    study = optuna.create_study(storage=open_storage(tmp_path / "study.journal", None))
    live, dead, young = study.ask(), study.ask(), study.ask()
    live.set_user_attr("worker", process_mark())
    dead.set_user_attr("worker", process_mark() | {"start": 1})
    assert fail_dead_trials(study, tmp_path) == [dead.number]
    assert [t.state.name for t in study.trials] == ["RUNNING", "FAIL", "RUNNING"]
    assert young.number == 2


def test_the_place_says_what_kind_of_storage(tmp_path):
    assert isinstance(open_storage(None, None), InMemoryStorage)
    kept = InMemoryStorage()
    assert open_storage(kept, tmp_path) is kept
    for place in (tmp_path / "deep" / "a.journal", str(tmp_path / "b.journal"), None):
        assert isinstance(open_storage(place, tmp_path), JournalStorage)
    assert (tmp_path / "deep").is_dir()
    assert isinstance(open_storage(f"sqlite:///{tmp_path}/c.db", None), RDBStorage)
    with pytest.raises(InvalidParameterError, match=r"storage must be a journal file or a URL, .* write sqlite:///"):
        open_storage("study.db", tmp_path)


def test_only_journals_need_files_of_workers(tmp_path):
    assert beats_folder(None, tmp_path) == tmp_path / "study.journal.workers"
    assert beats_folder("here.journal", None) == Path("here.journal.workers")
    assert beats_folder("sqlite:///a.db", tmp_path) is None
    assert beats_folder(None, None) is None
    assert beats_folder(InMemoryStorage(), tmp_path) is None


def test_own_trials_are_marked_as_failed_and_no_others():
    study = optuna.create_study()
    mine, other, young = study.ask(), study.ask(), study.ask()
    mine.set_user_attr("worker", process_mark("a"))
    other.set_user_attr("worker", process_mark("b"))
    fail_own_trials(study, process_mark("a"))
    assert [t.state.name for t in study.trials] == ["FAIL", "RUNNING", "RUNNING"]
    assert has_unmarked_trials(study)
    young.set_user_attr("worker", process_mark("b"))
    assert not has_unmarked_trials(study)


def test_a_lost_database_is_known_by_what_an_error_came_from():
    lost = sqlalchemy.exc.OperationalError("select", {}, Exception("gone"))
    wrapped, caused = RuntimeError("in optuna"), ValueError("outer")
    wrapped.__context__ = lost
    caused.__cause__ = wrapped
    assert is_lost(lost)
    assert is_lost(caused)
    assert not is_lost(sqlalchemy.exc.IntegrityError("insert", {}, Exception("twice")))
    round_trip = RuntimeError("a circle")
    round_trip.__context__ = other = ValueError("of errors")
    other.__context__ = round_trip
    assert not is_lost(round_trip)


@pytest.mark.parametrize("content", [b"", b"whole\n", b"a\nb\n"])
def test_whole_journals_stay(tmp_path, content):
    (tmp_path / "j").write_bytes(content)
    drop_half_record(tmp_path / "j")
    drop_half_record(tmp_path / "none")
    assert (tmp_path / "j").read_bytes() == content
    assert not (tmp_path / "none").exists()
