"""The second process that compiles: what it promises, and what happens where it fails."""

import multiprocessing
import os
import subprocess
import sys
import textwrap
import time

import pytest

from softsurv.exact import helper as helping
from softsurv.exact.base_cases.task_costs import price as template
from softsurv.exact.compile import price_of
from softsurv.exact.helper import Helper, may_help
from softsurv.exact.kernels.recursion import solve
from softsurv.exact.kernels.root import solve_root
from softsurv.exact.objectives import relative_risk

ROOT = "softsurv.exact.kernels.root:solve_root"
NONE = "softsurv.exact.kernels.root:no_such_entry"
SECONDS = 60.0


@pytest.fixture
def two_cores(monkeypatch):
    """A helper may be started, wherever the tests run."""
    monkeypatch.setattr(helping, "may_help", lambda: True)


def wait_until(holds):
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
def test_the_helper_fills_the_cache(tmp_path, monkeypatch, two_cores):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    with Helper([ROOT]) as helper:
        wait_until(lambda: ROOT in helper._begun)
        assert not helper.leaves(ROOT)
        helper.wait_for(ROOT)
        assert helper._process.poll() in (None, 0)
    assert any(tmp_path.rglob("*solve_root*.nbi"))


@pytest.mark.slow
def test_what_this_process_claims_the_helper_does_not_begin(tmp_path, monkeypatch, two_cores):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    with Helper([ROOT]) as helper:
        assert helper.leaves(ROOT)
        helper._process.wait(SECONDS)
    assert not any(tmp_path.rglob("*.nbi"))


def test_no_module_comes_from_the_working_folder(tmp_path, monkeypatch, two_cores):
    """Python looks there first for what it is told by ``-c``: a json.py beside somebody's table would run."""
    (tmp_path / "json.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    with Helper([NONE]) as helper:
        helper._process.wait(SECONDS)
    assert not (tmp_path / "ran").exists()


def test_what_the_helper_began_comes_last():
    """No helper is started: what it would tell over the pipe is put in its place."""
    helper = Helper([])
    taken = []
    for one in helper.in_turn(["first", "second", "third"], str):
        taken.append(one)
        helper._begun.add("second")  # while this process compiles the first
        helper._done |= helper._begun
    assert taken == ["first", "third", "second"]


def test_a_helper_that_fails_keeps_nobody_waiting(two_cores):
    with Helper([NONE]) as helper:
        helper._process.wait(SECONDS)
        helper._begun.add(NONE)  # it may have told so, which is not read yet
        helper.wait_for(NONE)
        assert NONE in helper._done
    with Helper([ROOT]) as helper:
        helper._begun.add(ROOT)
        helper._process.kill()
        helper.wait_for(ROOT)
        assert ROOT in helper._done


def test_without_a_helper_this_process_compiles_all(monkeypatch):
    monkeypatch.setattr(helping, "may_help", lambda: False)
    for names in ([], [ROOT]):
        with Helper(names) as helper:
            assert helper._process is None
            assert helper.leaves(ROOT)
            helper.wait_for(ROOT)


def test_a_python_that_cannot_be_started_is_no_error(monkeypatch, two_cores):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with Helper([ROOT]) as helper:
        assert helper.leaves(ROOT)


def test_the_helper_ends_with_its_parent(two_cores):
    code = """
        import os
        from softsurv.exact import helper as helping
        helping.may_help = lambda: True
        with helping.Helper(["softsurv.exact.kernels.recursion:solve"]) as helper:
            print(helper._process.pid, flush=True)
            os._exit(0)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True, timeout=SECONDS
    )
    pid = int(done.stdout)
    wait_until(lambda: not is_alive(pid))
    assert not is_alive(pid)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_workers_one_core_and_other_programs_start_no_helper(monkeypatch):
    monkeypatch.setattr(helping, "n_cores", lambda: 2)
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: None)
    assert may_help() == (multiprocessing.current_process().name == "MainProcess")
    with monkeypatch.context() as patch:
        patch.setattr(multiprocessing, "parent_process", multiprocessing.current_process)
        assert not may_help()
    with monkeypatch.context() as patch:
        patch.setattr(helping, "n_cores", lambda: 1)
        assert not may_help()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/opt/program")
        assert not may_help()


def test_entries_of_a_module_are_found_by_others_and_those_of_a_task_are_not():
    assert solve.place == "softsurv.exact.kernels.recursion:solve"
    assert solve_root.place == ROOT
    assert template.place is not None
    assert price_of(relative_risk.TASK).place is None
