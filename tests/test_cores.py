"""Cores are counted as joblib counts them, whoever asks."""

import builtins
import io
import multiprocessing
import os
from contextlib import nullcontext

import joblib
import pytest
import torch

from softsurv.cores import n_cores, n_threads
from softsurv.data.threads import MANY_CELLS, threads_for
from softsurv.errors import InvalidParameterError
from softsurv.exact.helper import may_help
from softsurv.soft.parallel import one_core_each

QUOTAS = {
    "second version": {"/sys/fs/cgroup/cpu.max": "250000 100000"},
    "first version": {
        "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "250000",
        "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
    },
    "none": {"/sys/fs/cgroup/cpu.max": "max 100000"},
}
"""What a container with two and a half cores shows, by version of cgroups."""


@pytest.fixture
def large_host(monkeypatch):
    """A machine of 64 cores; a function that puts files of a container on it."""
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(64)), raising=False)
    exists, read = os.path.exists, builtins.open

    def shows(files):
        def is_there(path):
            return str(path) in files if str(path).startswith("/sys/fs/cgroup") else exists(path)

        def opened(path, *how, **more):
            return io.StringIO(files[path]) if path in files else read(path, *how, **more)

        monkeypatch.setattr(os.path, "exists", is_there)
        monkeypatch.setattr(builtins, "open", opened)

    return shows


@pytest.mark.parametrize(("version", "cores"), [("second version", 3), ("first version", 3), ("none", 64)])
def test_a_quota_of_a_container_counts(large_host, version, cores):
    large_host(QUOTAS[version])
    assert n_cores() == n_threads(-1) == joblib.cpu_count() == cores
    assert threads_for(MANY_CELLS) == min(cores, 8)


def test_one_core_by_quota_starts_no_helper(large_host, monkeypatch):
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: None)
    monkeypatch.setattr(multiprocessing.current_process(), "_name", "MainProcess")
    large_host(QUOTAS["second version"])
    assert may_help()
    large_host({"/sys/fs/cgroup/cpu.max": "100000 100000"})
    assert not may_help()


@pytest.mark.parametrize(("of_torch", "workers"), [(2, 2), (16, 3)])
def test_soft_trees_take_no_more_workers_than_cores(large_host, monkeypatch, of_torch, workers):
    """torch begins with as many threads as the host has cores."""
    large_host(QUOTAS["second version"])
    monkeypatch.setattr(torch, "get_num_threads", lambda: of_torch)
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    with one_core_each() as found:
        assert found == workers


def test_the_affinity_and_the_users_own_limit_count(large_host, monkeypatch):
    large_host(QUOTAS["none"])
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5, 7, 9}, raising=False)
    assert n_cores() == n_threads(-1) == 4
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "2")
    assert n_cores() == n_threads(-1) == 2
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "0")
    assert n_cores() == 1


@pytest.mark.parametrize("given", ["abc", "", "2.5"])
@pytest.mark.parametrize("count", [n_cores, lambda: n_threads(-1)])
def test_an_unreadable_limit_is_one_sentence(given, count, monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", given)
    with pytest.raises(
        InvalidParameterError, match=f"LOKY_MAX_CPU_COUNT must be a whole number of cores, got '{given}'"
    ):
        count()


@pytest.mark.parametrize(("n_jobs", "threads"), [(1, 1), (None, 1), (7, 7), (-1, 64), (-2, 63)])
def test_jobs_are_read_as_scikit_learn_reads_them(large_host, n_jobs, threads):
    large_host(QUOTAS["none"])
    assert n_threads(n_jobs) == threads
    with joblib.parallel_config(n_jobs=5) if n_jobs is None else nullcontext():
        assert n_threads(n_jobs) == (5 if n_jobs is None else threads)
