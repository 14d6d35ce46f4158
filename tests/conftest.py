"""Properties are tried on the same cases each time, so that a commit's suite has one answer.

New cases: ``scripts/test --hypothesis-profile=random``, and ``scripts/fuzz_exact.py`` for as long as one likes.
No example has a deadline: the first one compiles, and a busy machine is no defect.
"""

import gc
import signal
import sys

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None)
settings.load_profile("repeatable")


def pytest_collection_finish():
    """The garbage collector leaves out what libraries and tests made until now: objects that all stay."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def nothing_frozen():
    """As in a program that froze no objects of its own."""
    gc.unfreeze()
    yield
    pytest_collection_finish()


@pytest.fixture
def usual_ctrl_c():
    """Ctrl-C raises, also where the tests run in the background of a shell, which lets its jobs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def close_figures():
    """No picture of one test is open in the next: matplotlib warns at twenty."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
