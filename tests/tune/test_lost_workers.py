"""Workers that are really killed: the study stays usable, their trials are marked, nothing is run twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import optuna
import pytest
import sqlalchemy

from softsurv.errors import SoftsurvError
from softsurv.tune import StudyObjective, storage, worker
from softsurv.tune.storage import open_storage
from softsurv.tune.worker import StudyPlan

optuna.logging.set_verbosity(optuna.logging.WARNING)
WORKER = Path(__file__).with_name("_worker.py")


class Workers:
    """Starts and waits for worker processes."""

    def __init__(self):
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        self.parent = subprocess.Popen(
            [sys.executable, str(WORKER)],
            env=environment,
            cwd=WORKER.parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _ask(self, *request):
        self.parent.stdin.write(json.dumps(request) + "\n")
        self.parent.stdin.flush()
        return int(self.parent.stdout.readline())

    def start(self, storage, output, n_trials, seconds, begun):
        arguments = [None if v is None else str(v) for v in (storage, output)]
        return self._ask("start", [*arguments, n_trials, seconds, str(begun)])

    def wait(self, number):
        return self._ask("wait", number)

    def kill(self, number):
        os.kill(number, signal.SIGKILL)
        assert self.wait(number) == -signal.SIGKILL

    def close(self):
        self.parent.stdin.close()
        self.parent.wait()
        self.parent.stdout.close()


@pytest.fixture(scope="module")
def workers():
    """A parent of workers."""
    made = Workers()
    yield made
    made.close()


def wait_for(condition, seconds=60.0):
    """Until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the worker did not get there in time"
        time.sleep(0.02)


def lines(path):
    return path.read_text().split() if path.exists() else []


def kill_in_mid_trial_and_resume(workers, storage, output, tmp_path):
    """Kill a worker in its third trial, run the same command again; returns the study."""
    begun = tmp_path / "begun"
    victim = workers.start(storage, output, 5, 0.3, begun)
    wait_for(lambda: len(lines(begun)) == 3)
    workers.kill(victim)
    assert workers.wait(workers.start(storage, output, 5, 0.0, begun)) == 0
    study = optuna.load_study(study_name="softsurv", storage=open_storage(storage, Path(output)))
    assert lines(begun) == [str(k) for k in range(6)]  # each trial was begun once
    return study


def outcomes(study):
    """State of each trial, in their order."""
    return [trial.state.name for trial in sorted(study.trials, key=lambda trial: trial.number)]


KILLED_AND_RESUMED = ["COMPLETE", "COMPLETE", "FAIL", "COMPLETE", "COMPLETE", "COMPLETE"]
"""Outcomes of trials where a worker is killed in its third and its like resumes."""


def test_killed_worker_journal(workers, tmp_path):
    assert outcomes(kill_in_mid_trial_and_resume(workers, None, tmp_path / "out", tmp_path)) == KILLED_AND_RESUMED


def test_killed_worker_sqlite(workers, tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    assert outcomes(kill_in_mid_trial_and_resume(workers, storage, tmp_path / "out", tmp_path)) == KILLED_AND_RESUMED


@pytest.mark.parametrize("kind", ["journal", "sqlite"])
def test_two_workers_share_and_survive_the_loss_of_one(workers, tmp_path, kind):
    begun, out = tmp_path / "begun", tmp_path / "out"
    storage = None if kind == "journal" else f"sqlite:///{tmp_path}/study.db"
    victim, other = (workers.start(storage, out, 8, 0.2, begun) for _ in range(2))
    wait_for(lambda: len(lines(begun)) >= 4)
    workers.kill(victim)
    assert workers.wait(other) == 0  # which has replaced the trial of the lost one
    study = optuna.load_study(study_name="softsurv", storage=open_storage(storage, out))
    states = Counter(t.state.name for t in study.trials)
    assert states["COMPLETE"] in (8, 9)  # both may take up a last trial in the same instant
    assert states["RUNNING"] == 0
    assert len(lines(begun)) == len(set(lines(begun)))
    params = [tuple(t.params.items()) for t in study.trials if t.params]
    assert len(set(params)) == len(params)  # workers never draw the same numbers


@contextmanager
def postgres_server():
    """A real server on a free port, owned by another user where the tests run as root."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    initdb = shutil.which("initdb") or (binaries and str(binaries[-1] / "initdb"))
    if not initdb:
        pytest.skip("PostgreSQL is not installed (Debian package postgresql)")
    pytest.importorskip("psycopg2", reason="the driver psycopg2 is not installed")
    bin_folder = Path(initdb).resolve().parent
    as_owner = []
    if os.geteuid() == 0:
        if not shutil.which("runuser"):
            pytest.skip("PostgreSQL refuses to run as root, and there is no runuser")
        as_owner = ["runuser", "-u", "postgres", "--"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if as_owner:
            shutil.chown(folder, "postgres")

        def run(tool, *arguments):
            command = [*as_owner, str(bin_folder / tool), "-D", f"{folder}/base", *arguments]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, timeout=60)

        run("initdb", "-A", "trust", "-U", "softsurv", "--no-sync")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        run("pg_ctl", "-w", "-l", f"{folder}/log", "-o", options, "start")
        try:
            url = f"postgresql+psycopg2://softsurv@127.0.0.1:{port}/postgres"
            yield url, lambda: run("pg_ctl", "-m", "immediate", "-w", "-l", f"{folder}/log", "-o", options, "restart")
        finally:
            run("pg_ctl", "-m", "immediate", "stop")


def test_killed_worker_postgresql(workers, tmp_path):
    with postgres_server() as (url, _):
        assert outcomes(kill_in_mid_trial_and_resume(workers, url, tmp_path / "out", tmp_path)) == KILLED_AND_RESUMED


def test_workers_outlast_a_restart_of_postgresql(workers, tmp_path):
    begun, out = tmp_path / "begun", tmp_path / "out"
    with postgres_server() as (url, restart):
        both = [workers.start(url, out, 8, 0.4, begun) for _ in range(2)]
        for count in (3, 6):
            wait_for(lambda: len(lines(begun)) >= count)  # noqa: B023
            restart()
        assert [workers.wait(number) for number in both] == [0, 0]
        study = optuna.load_study(study_name="softsurv", storage=open_storage(url, out))
        states = Counter(t.state.name for t in study.trials)
        assert states["COMPLETE"] in (8, 9)
        assert states["RUNNING"] == 0


class Flaky(StudyObjective):
    """An objective whose database is away in some calls."""

    failures = ()

    def __call__(self, trial):
        error = sqlalchemy.exc.OperationalError("select", {}, Exception("server closed the connection"))
        if trial.number in self.failures:
            raise RuntimeError("in a finally clause") from error
        return super().__call__(trial)


def plan_of(data, failures, tmp_path):
    space = {"leaf": "weibull", "depth": 0, "l2": [0.1, 1.0]}
    goal = Flaky(data, "soft", measures=("ibs",), space=space, n_folds=2, seed=0, device="cpu")
    object.__setattr__(goal, "failures", failures)
    storage = f"sqlite:///{tmp_path}/study.db"
    return StudyPlan(goal, 3, storage, None, "s", 0, "random", "none", (), None)


def test_a_trial_that_lost_its_database_is_run_again(data, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(worker, "RETRY_SECONDS", (0.0,) * 3)
    plan = plan_of(data, (0, 2), tmp_path)
    worker.work(plan)
    study = plan.open(open_storage(plan.storage, None))
    assert [t.state.name for t in study.trials] == ["FAIL", "COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]
    assert not any("error" in t.user_attrs for t in study.trials)
    assert "the study's database went away; trying again" in caplog.text


def test_a_trial_that_nobody_marked_is_made_up_for(data, tmp_path, monkeypatch):
    """The database went away between making and marking it."""
    plan = plan_of(data, (), tmp_path)
    study = plan.open(open_storage(plan.storage, None))
    with pytest.warns(UserWarning, match="Heartbeat"):
        study.ask()
    monkeypatch.setattr(storage, "UNMARKED_SECONDS", 2.0)
    worker.work(plan)
    assert [t.state.name for t in study.trials] == ["FAIL", "COMPLETE", "COMPLETE", "COMPLETE"]


def test_a_database_that_stays_away_is_one_sentence(data, tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "RETRY_SECONDS", (0.0,) * 3)
    with pytest.raises(SoftsurvError, match=r"the study's database stays away .*; what is done is kept"):
        worker.work(plan_of(data, range(100), tmp_path))


def test_other_errors_are_not_repeated(data, tmp_path, monkeypatch):
    plan = plan_of(data, (), tmp_path)
    monkeypatch.setattr(StudyObjective, "__call__", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        worker.work(plan)
