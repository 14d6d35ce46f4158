"""Who runs a trial, and whether that process is still there: on this machine and on others."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from softsurv.tune import liveness
from softsurv.tune.liveness import GRACE_SECONDS, Beats, is_dead, process_mark


def test_a_mark_is_of_this_process_until_it_ends(tmp_path):
    assert not is_dead(process_mark(), None)
    if not process_mark()["machine"]:
        pytest.skip("this system has no process table in /proc")
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    mark = process_mark() | {"pid": child.pid}
    mark["start"] = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19])
    assert not is_dead(mark, None)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_dead(mark, None)  # also while nobody has waited for it
    child.wait()
    assert is_dead(mark, None)
    assert is_dead(process_mark() | {"start": 1}, None)  # the number was given to another process since


def test_workers_of_other_machines_are_judged_by_their_beats(tmp_path):
    elsewhere = {"machine": "another boot"}
    with Beats(tmp_path) as beats:
        mark = process_mark(beats.name) | elsewhere
        assert not is_dead(mark, tmp_path)
        old = time.time() - 3600
        os.utime(tmp_path / beats.name, (old, old))
        assert is_dead(mark, tmp_path)
    assert is_dead(mark, tmp_path)  # no file any more
    assert not is_dead(process_mark() | elsewhere, None)  # a database has heartbeats of its own
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_that_of_an_ended_worker(tmp_path):
    mark = {"machine": "another boot", "beats": "gone"}
    assert is_dead(mark, tmp_path)
    assert not is_dead({"machine": "another boot"}, tmp_path)  # it has no file that could be looked at
    assert not is_dead({"machine": ""}, None)


def test_a_worker_touches_its_file_while_it_lives(tmp_path, monkeypatch):
    monkeypatch.setattr(liveness, "BEAT_SECONDS", 0.01)
    with Beats(tmp_path / "new" / "folder") as beats:
        own = beats.folder / beats.name
        old = time.time() - 2 * GRACE_SECONDS
        os.utime(own, (old, old))
        deadline = time.monotonic() + 30
        while own.stat().st_mtime == old and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not is_dead({"machine": "another boot", "beats": beats.name}, beats.folder)
    assert not own.exists()


def test_two_workers_of_one_process_have_files_of_their_own(tmp_path):
    with Beats(tmp_path) as one, Beats(tmp_path) as other:
        assert one.name != other.name
        assert len(list(tmp_path.iterdir())) == 2


def test_without_a_folder_nothing_is_written():
    with Beats(None) as beats:
        assert beats.name is None
        assert "beats" not in process_mark(beats.name)


def test_a_worker_beats_again_when_its_folder_is_back(tmp_path, monkeypatch):
    """As where a network drive is away for a moment: the worker stopped beating, and counted as dead from then on."""
    monkeypatch.setattr(liveness, "BEAT_SECONDS", 0.01)
    folder, away = tmp_path / "workers", tmp_path / "away"
    with Beats(folder) as beats:
        folder.rename(away)
        time.sleep(0.1)
        away.rename(folder)
        os.utime(folder / beats.name, (0.0, 0.0))
        for _ in range(500):
            if (folder / beats.name).stat().st_mtime > 0:
                break
            time.sleep(0.01)
        assert (folder / beats.name).stat().st_mtime > 0
