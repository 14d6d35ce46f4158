"""Where studies are kept: a journal file, SQLite, PostgreSQL, or memory."""

from __future__ import annotations

import logging
import os
import time
import warnings
import weakref
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, TrialState

from softsurv.errors import InvalidParameterError, SoftsurvError
from softsurv.tune.liveness import is_dead

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS, DATABASE_GRACE_SECONDS = 10, 60
"""How often a worker tells a database that it is alive, and after how long a silent one counts as dead."""

UNMARKED_SECONDS = 60.0
"""After so long a running trial without a mark counts as lost: between making and marking it, its process ended or its
database went away."""

RECORD = b'{"op_code":'
"""What each record of a journal begins with."""

SQLITE = b"SQLite format 3\0"
"""What each SQLite database begins with; a new one may be empty."""

CREATE_ATTEMPTS = 5
"""Workers that start together may all create the tables of a new database; all but one try again."""


class JournalLock(JournalFileOpenLock):
    """optuna's lock of a journal, which also drops the half record of a worker that was killed while writing."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._journal = Path(path)

    def acquire(self) -> bool:
        """Wait for the lock, then leave the journal ending with a whole record."""
        got = super().acquire()
        drop_half_record(self._journal)
        return got


def drop_half_record(path: Path) -> None:
    """Cut a file off after its last whole line."""
    if not path.exists():
        return
    with open(path, "rb+") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end > 0:
            first = max(0, end - 65536)
            file.seek(first)
            found = file.read(end - first).rfind(b"\n")
            end = first + found + 1 if found >= 0 else first
            if found >= 0:
                break
        if end < size:
            file.truncate(end)


class Database(RDBStorage):
    """optuna's database that closes its connections, and skips a heartbeat where the database cannot be reached."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        weakref.finalize(self, self.engine.dispose)  # Python 3.13 warns of a SQLite connection that nobody closed

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        weakref.finalize(self, self.engine.dispose)

    def record_heartbeat(self, trial_id: int) -> None:
        """Tell the database that the trial's worker is alive."""
        try:
            super().record_heartbeat(trial_id)
        except Exception as error:
            if not is_lost(error):
                raise
            logger.info("a heartbeat of trial id %d was not taken: %s", trial_id, error)


def is_lost(error: BaseException) -> bool:
    """Whether an error, or one of its causes, says that the database could not be reached or ended the session."""
    from sqlalchemy import exc

    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        if isinstance(one, exc.OperationalError | exc.InterfaceError | exc.DisconnectionError):
            return True
        seen.add(id(one))
        waiting += [one.__cause__, one.__context__]
    return False


def open_storage(storage: str | os.PathLike[str] | BaseStorage | None, output: Path | None) -> BaseStorage:
    """The storage of a study.

    Parameters
    ----------
    storage : str, path or optuna storage, optional
        A database URL, the path of a journal file, or None: the journal ``study.journal`` in ``output``, or
        memory where there is no output either.
    output : Path, optional

    Raises
    ------
    SoftsurvError
        If the database cannot be reached, its driver is not installed, or a journal is damaged.
    InvalidParameterError
        If `check_place` refuses the place.
    """
    if isinstance(storage, BaseStorage):
        return storage
    if storage is None and output is None:
        return InMemoryStorage()
    place = os.fspath(storage) if storage is not None else str(_default_journal(output))
    check_place(place)
    if "://" in place:
        return _open_database(place)
    path = Path(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return JournalStorage(JournalFileBackend(str(path), lock_obj=JournalLock(str(path))))
    except (ValueError, LookupError, TypeError, AssertionError) as error:  # no JSON, or JSON that is no record
        reason = f"{type(error).__name__}: {error}"
        raise SoftsurvError(
            f"storage {place!r} is a damaged journal ({reason}); restore it from a copy, or begin a new study elsewhere"
        ) from error


def check_place(place: str | os.PathLike[str]) -> None:
    """Refuse what can hold no study, as far as can be told before it is opened. Nothing is made, nobody is asked.

    Raises
    ------
    InvalidParameterError
        If a URL is none, or names no kind of database, or the SQLite file is none or has no folder; if the path of an
        SQLite file is given, which needs a URL, or that of a folder or of a file which is no journal.
    """
    place = os.fspath(place)
    if "://" in place:
        _refuse_urls(place)
        return
    if place.startswith("sqlite:") or Path(place).suffix in (".db", ".sqlite", ".sqlite3"):
        file = place.removeprefix("sqlite:")
        raise InvalidParameterError(f"storage must be a journal file or a URL, got {place!r}; write sqlite:///{file}")
    _refuse_other_files(Path(place))


def _refuse_urls(url: str) -> None:
    """Raise where no database can be opened by a URL, however often it is tried."""
    from sqlalchemy import exc, make_url

    try:
        parsed = make_url(url)
        parsed.get_dialect()
    except (exc.ArgumentError, ValueError) as error:
        reason = str(error).replace(url, public(url))
        raise InvalidParameterError(
            f"storage must be the URL of a database, got {public(url)!r}, which is none ({reason}); write "
            "sqlite:///study.db or postgresql+psycopg://user@host/base"
        ) from None
    if parsed.get_backend_name() != "sqlite":
        return
    if parsed.host:
        raise InvalidParameterError(
            f"storage must have three slashes before an SQLite file, got {url!r}; write sqlite:///{parsed.host}"
        )
    file = parsed.database or ":memory:"
    if file != ":memory:" and not file.startswith("file:"):
        _refuse_no_database(url, Path(file))


def _refuse_no_database(url: str, path: Path) -> None:
    """Raise where an SQLite file cannot be made, or is none."""
    if not path.parent.is_dir():
        raise InvalidParameterError(
            f"storage must be in a folder that is there, got {url!r}; make the folder {str(path.parent)!r}"
        )
    if path.is_dir():
        raise InvalidParameterError(f"storage must name a file, got {url!r}, which is a folder; write {url}/study.db")
    if path.is_file():
        with open(path, "rb") as file:
            begin = file.read(len(SQLITE))
        if begin and begin != SQLITE:
            raise InvalidParameterError(
                f"storage must be a new file or an SQLite database, got {url!r}, which is neither; choose another path"
            )


def _refuse_other_files(path: Path) -> None:
    """Raise where a file is there that is no journal: records would be added to somebody's table."""
    if path.is_dir():
        journal = str(path / "study.journal")
        raise InvalidParameterError(f"storage must name a file, got the folder {str(path)!r}; write {journal}")
    if not path.is_file():
        return
    with open(path, "rb") as file:
        begin = file.read(len(RECORD))
    if not RECORD.startswith(begin):  # a new journal is empty, and the first record may be half written
        raise InvalidParameterError(
            f"storage must be a new file or the journal of a study, got {str(path)!r}, which is neither; choose "
            "another path"
        )


def beats_folder(storage: str | os.PathLike[str] | BaseStorage | None, output: Path | None) -> Path | None:
    """The folder in which workers that share a journal file show that they are alive; None for other storages."""
    if isinstance(storage, BaseStorage) or (storage is None and output is None):
        return None
    place = os.fspath(storage) if storage is not None else str(_default_journal(output))
    return None if "://" in place else Path(f"{place}.workers")


def fail_dead_trials(study: optuna.Study, folder: Path | None) -> list[int]:
    """Mark the running trials whose process has ended as failed; returns their numbers.

    Trials of other machines in a database are left to optuna's heartbeats.
    """
    failed = []
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        if _has_ended(trial, folder):
            study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
            failed.append(trial.number)
    return failed


def fail_own_trials(study: optuna.Study, mark: Mapping[str, Any]) -> None:
    """Mark the running trials of this worker as failed, as it runs none at the moment."""
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        if trial.user_attrs.get("worker") == dict(mark):
            study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)


def has_unmarked_trials(study: optuna.Study) -> bool:
    """Whether a running trial has no mark: it is not marked yet, or never will be."""
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    return any("worker" not in trial.user_attrs for trial in running)


def _has_ended(trial: FrozenTrial, folder: Path | None) -> bool:
    mark = trial.user_attrs.get("worker")
    if mark is not None:
        return is_dead(mark, folder)
    started = trial.datetime_start
    if started is None:
        return False
    age = datetime.now(tz=started.tzinfo) - started
    return age > timedelta(seconds=UNMARKED_SECONDS)


def _default_journal(output: Path | None) -> Path:
    assert output is not None
    return output / "study.journal"


def _open_database(url: str) -> RDBStorage:
    """A database with heartbeats; tables are made where they are missing."""
    options = {} if url.startswith("sqlite") else {"pool_pre_ping": True}
    for attempt in range(CREATE_ATTEMPTS):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # the heartbeat's interface
                return Database(
                    url,
                    engine_kwargs=options,
                    heartbeat_interval=HEARTBEAT_SECONDS,
                    grace_period=DATABASE_GRACE_SECONDS,
                )
        except ImportError as error:
            raise SoftsurvError(f"storage {public(url)!r} needs a database driver: {error}; pip install it") from error
        except Exception as error:
            if attempt + 1 == CREATE_ATTEMPTS:
                reason = str(error).strip().splitlines()[0]
                remedy = "its folder is there" if url.startswith("sqlite") else "the server runs"
                raise SoftsurvError(
                    f"storage {public(url)!r} cannot be opened ({reason}); check the URL and that {remedy}"
                ) from error
            time.sleep(0.2 * 2**attempt)
    raise AssertionError("unreachable")


def public(url: str) -> str:
    """The URL without a password."""
    head, at, tail = url.rpartition("@")
    return f"{head.partition('://')[0]}://...@{tail}" if at else url
