"""A process that forks while another thread compiles: the child can compile as well."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from softsurv.exact import one_compiler
from softsurv.exact.one_compiler import LOCKS, ONE_COMPILES

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

ENTRIES = """
    import os, signal, threading, time
    import numba
    from numba.core.compiler_lock import global_compiler_lock
    from softsurv.exact.entries import make_ready

    class Part:
        title, is_on_disk, place, is_ready = "A part", False, None, False
        def __init__(self, compile):
            self.compile = compile

    begun = threading.Event()
    def slow():
        begun.set()
        time.sleep(1.0)

    def forked():
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # ends a child that waits for ever
            make_ready([Part(lambda: numba.njit(lambda x: x + 1)(1))], "a test")
            os._exit(7)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""

BY_SOFTSURV = """
    threading.Thread(target=make_ready, args=([Part(slow)], "a test")).start()
    begun.wait()
    raise SystemExit(forked())
"""

BY_NUMBA = """
    def by_numba():
        with global_compiler_lock:
            slow()
    threading.Thread(target=by_numba).start()
    begun.wait()
    raise SystemExit(forked())
"""

BY_ITSELF = """
    codes = []
    make_ready([Part(lambda: codes.append(forked()))], "a test")
    raise SystemExit(codes[0])
"""


@pytest.mark.parametrize("code", [BY_SOFTSURV, BY_NUMBA, BY_ITSELF], ids=["softsurv", "numba", "the same thread"])
def test_the_child_compiles_whatever_was_compiled_when_it_was_forked(code):
    root = Path(__file__).parents[2]
    code = textwrap.dedent(ENTRIES) + textwrap.dedent(code)
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=root, timeout=300).returncode == 7


def test_a_wait_that_was_interrupted_leaves_nothing_to_let_go():
    one_compiler._let_go()
    one_compiler._hold()
    one_compiler._let_go()
    for lock in LOCKS:
        with pytest.raises(RuntimeError):
            lock.release()
    assert ONE_COMPILES.acquire(blocking=False)
    ONE_COMPILES.release()
