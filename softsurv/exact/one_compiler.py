"""One thread compiles at a time, and no process is forked meanwhile.

A forked child has no thread but the one that forked. A lock that another thread held then stays shut in the child for
ever, and what that thread was changing in numba and LLVM stays half changed. So a fork waits until the compilation has
ended, some seconds at most, as a fork of Python itself waits for a thread that imports.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress

from numba.core.compiler_lock import global_compiler_lock

ONE_COMPILES = threading.RLock()
"""Held while entries are compiled: another thread waits for them, and does not compile them again."""

LOCKS = (ONE_COMPILES, global_compiler_lock)
"""Locks of a compilation, in the order in which it takes them. Numba's own is held by all that numba compiles."""


def _hold() -> None:
    for lock in LOCKS:
        lock.acquire()


def _let_go() -> None:
    for lock in reversed(LOCKS):
        with suppress(RuntimeError):  # not held: a Ctrl-C has ended the wait, and Python forks all the same
            lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_let_go)
