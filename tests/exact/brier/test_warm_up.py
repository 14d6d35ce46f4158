"""What is compiled before the clock starts is what searches of other shapes call."""

import logging

import numpy as np
import pytest

from softsurv.exact.brier import base_case, bounds, table, warm_up
from softsurv.exact.brier.solve import solve_ibs

KERNELS = [base_case.expand, base_case.solve_shallow, table.split_rows, bounds.group_bounds]


@pytest.mark.parametrize("how", [{}, {"complexity": 0, "max_leaves": 5}, {"leaf": "ipcw", "n_jobs": 2}])
def test_a_search_finds_everything_compiled(how, caplog):
    warm_up.ready()
    rng = np.random.default_rng(0)
    x, time, event = rng.integers(0, 2, (90, 5)), rng.integers(1, 9, 90), rng.random(90) < 0.7
    with caplog.at_level(logging.WARNING, logger="softsurv"):
        solve_ibs(x, time, event, weight=rng.uniform(1, 2, 90) if "leaf" in how else None, max_depth=3, **how)
    assert all(kernel.compiled_for == [kernel.arguments] for kernel in KERNELS)
    assert not [record for record in caplog.records if "compiling" in record.getMessage()]
