"""Time limit, interruption, a full cache, threads: the incumbent and an honest gap, whatever ends the search."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from softsurv.errors import InvalidParameterError
from softsurv.exact.bounds import Bounds
from softsurv.exact.compile import ready
from softsurv.exact.objectives import relative_risk
from softsurv.exact.search import Search
from softsurv.results import Status


def random_search(n=400, p=6, seed=0, **options):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 9, (n, p)).astype(np.int32)
    event = rng.random(n) < 0.6
    statistics = relative_risk.statistics(event, rng.exponential(size=n))
    offset = np.where(event, -np.log(statistics[:, 1]), 0.0)
    ready(relative_risk.TASK)
    return Search(relative_risk.TASK, codes, np.full(p, 9), np.arange(p) == 0, statistics, offset, **options)


def test_time_limit_returns_the_incumbent_and_a_valid_bound():
    random_search(n=40, p=3).solve(6)  # compilation is not the search's time
    begin = time.process_time()  # other work on the machine takes none of it
    stopped = random_search().solve(6, time_limit=0.2)
    assert stopped.report.status == Status.TIME_LIMIT
    assert stopped.report.gap > 0
    assert time.process_time() - begin < 30  # a hang, not a speed, is what this would catch
    best_of_two = random_search().solve(2).report.objective
    assert stopped.report.lower_bound <= stopped.report.objective <= best_of_two + 1e-9
    assert list(stopped.report.trace) == sorted(stopped.report.trace, reverse=True)


def test_no_time_at_all_still_gives_the_best_tree_of_depth_two():
    stopped = random_search().solve(5, time_limit=0.0)
    assert stopped.report.objective == pytest.approx(random_search().solve(2).report.objective)
    assert stopped.report.status == Status.TIME_LIMIT


@pytest.mark.parametrize("depth", [2, 4])
def test_the_base_case_notices_the_limit_too(depth):
    """24,000 thresholds: all pairs of them would take seconds, before the first incumbent and for every node."""
    rng = np.random.default_rng(0)
    codes = np.stack([rng.permutation(6000) for _ in range(4)], axis=1).astype(np.int32)
    statistics = relative_risk.statistics(rng.random(6000) < 0.6, rng.exponential(size=6000))
    offset = np.where(statistics[:, 0] > 0, -np.log(statistics[:, 1]), 0.0)
    ready(relative_risk.TASK)
    sizes, nominal, bounds = np.full(4, 6000), np.zeros(4, bool), Bounds(cuts=False)
    search = Search(relative_risk.TASK, codes, sizes, nominal, statistics, offset, bounds=bounds)
    stopped = search.solve(depth, time_limit=0.05)
    assert stopped.report.status == Status.TIME_LIMIT
    assert stopped.report.lower_bound < stopped.report.objective
    assert stopped.tree.n_leaves > 1


def test_lower_bound_of_a_stopped_search_holds():
    search = random_search(n=60, p=3)
    optimum = random_search(n=60, p=3).solve(4).report.objective
    for _ in range(5):
        report = search.solve(4, time_limit=0.002).report
        assert report.lower_bound <= optimum + 1e-9 <= report.objective + 1e-8


def test_threads_find_the_same_tree():
    one, two = (random_search(n=300, p=5).solve(4, n_jobs=n) for n in (1, 2))
    assert two.report.status == Status.OPTIMAL
    assert one.report.objective == pytest.approx(two.report.objective, abs=1e-9)
    np.testing.assert_array_equal(one.tree.feature, two.tree.feature)
    np.testing.assert_array_equal(one.tree.code, two.tree.code)


def test_full_cache_is_slower_but_exact():
    small = random_search(n=150, p=4, memory_limit=20_000)
    solution = small.solve(4)
    assert solution.report.details["cache_full"]
    assert solution.report.objective == pytest.approx(random_search(n=150, p=4).solve(4).report.objective)


def test_progress_reports_bound_and_incumbent():
    seen = []
    solution = random_search().solve(4, progress=lambda *now: seen.append(now))
    assert seen
    for share, bound, incumbent in seen:
        assert 0 <= share <= 1
        assert bound <= solution.report.objective + 1e-9 <= incumbent + 2e-9


def test_second_call_reuses_the_cache():
    search = random_search()
    search.solve(4)
    cases = search.control[1]
    search.solve(4)
    assert search.control[1] - cases < 20


def test_interruption_keeps_the_incumbent():
    """Ctrl-C in a process of its own, so that the test run is not hit."""
    code = """
        import os, signal, threading
        from softsurv.stopping import StopSignal
        from tests_anytime import random_search
        search = random_search()
        with StopSignal(300.0) as stop:  # Ctrl-C is noted from here on, however late the search begins
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            solution = search.solve(6, stop=stop)
        print(solution.report.status, solution.tree.n_leaves)
    """
    import importlib.util

    loader = f"import sys, importlib.util as u; s = u.spec_from_file_location('tests_anytime', {__file__!r}); "
    loader += (
        "m = u.module_from_spec(s); sys.modules['tests_anytime'] = m; s.loader.exec_module(m); m.random_search()\n"
    )
    assert importlib.util.find_spec("softsurv") is not None
    done = subprocess.run(
        [sys.executable, "-c", loader + textwrap.dedent(code)], capture_output=True, text=True, check=True, timeout=300
    )
    status, leaves = done.stdout.split()
    assert status == "interrupted"
    assert int(leaves) >= 4


def test_too_many_rows_per_leaf_is_refused():
    with pytest.raises(InvalidParameterError, match="the least size of a leaf must be at most the total, 20, got 21"):
        random_search(n=20, min_leaf=21)


def test_without_cache_and_lanes_threads_still_agree():
    bounds = Bounds(cache=False, lanes=False)
    one, two = (random_search(n=80, p=3, bounds=bounds).solve(4, n_jobs=n) for n in (1, 2))
    assert one.report.objective == pytest.approx(two.report.objective, abs=1e-9)
