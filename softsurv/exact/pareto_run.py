"""A kernel in a thread of its own, with the clock looked after."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.exact.clock import POLL_SECONDS, Clock
from softsurv.exact.pareto_arrays import STOP
from softsurv.results import Status


def run_watched(work: Callable[[], Any], clock: Clock, control: NDArray[np.int64]) -> None:
    """Run a kernel to its end, or set its stop flag when the clock says so; its errors are raised here."""
    failed: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # handed to the caller's thread
            failed.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(max(min(clock.left, POLL_SECONDS), 0.001))
        if clock.status != Status.OPTIMAL and thread.is_alive():
            control[STOP] = 1
    if failed:
        raise failed[0]
