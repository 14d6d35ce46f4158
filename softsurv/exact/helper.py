"""A second process that compiles: it fills the kernel cache from the other end of the list.

Numba compiles one function at a time in a process. So a first fit on a fresh machine starts a second process, the
helper. This process compiles the entries from the first one on, the helper from the last one on. Each tells the other
over a pipe which entry it begins, so that none is compiled twice. Where no helper can be started, or where it fails,
this process compiles all entries.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from types import TracebackType
from typing import IO, TypeVar

from numba.core import config

from softsurv.cores import n_cores
from softsurv.exact.jit import without_garbage_collection
from softsurv.exact.resolved import resolved_once

logger = logging.getLogger("softsurv")

Item = TypeVar("Item")

POLL_SECONDS = 0.1
"""Seconds between two looks for a Ctrl-C while this process waits for the helper."""

START = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from softsurv.exact.helper import main; main()"
"""Code that the helper runs. It finds the modules where this process found them."""


class Helper:
    """Compiles some entries in another process while it is open; a context manager.

    Parameters
    ----------
    names : iterable of str
        What has a method ``compile``, as "module:name", in the order in which this process will compile it; or
        functions that compile when they are called.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)
        self._begun: set[str] = set()
        self._done: set[str] = set()
        self._changed = threading.Condition()
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Helper:
        if not self.names or not may_help():
            return self
        # -P: a json.py in the working folder, which may be anybody's, is no module
        command = [sys.executable, "-P", "-c", START, json.dumps(list(map(str, sys.path))), *reversed(self.names)]
        chosen = str(getattr(config, "CACHE_DIR", ""))  # numba makes its settings at run time
        folder = {"NUMBA_CACHE_DIR": chosen} if chosen else {}
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                env=os.environ | folder,
                start_new_session=True,  # a Ctrl-C is for this process, which ends the helper
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )  # fmt: skip
        except OSError as error:
            logger.debug("no second process compiles: %s", error)
            return self
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self._process = None

    def leaves(self, name: str | None) -> bool:
        """Whether the helper leaves an entry to this process; if so, the helper is told. None: it does not know it."""
        with self._changed:
            if name in self._begun:
                return False
        if name is not None and self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.write(f"{name}\n")
                self._process.stdin.flush()
        return True

    def in_turn(self, items: Iterable[Item], place: Callable[[Item], str | None]) -> Iterator[Item]:
        """Items in the order in which this process compiles them: those that the helper has begun are left to the end.

        ``place`` names an item. Whoever takes one calls `wait_for` first: then what the helper compiled is there.
        """
        waiting = list(items)
        while waiting:
            one = next((one for one in waiting if self.leaves(place(one))), waiting[0])
            waiting.remove(one)
            yield one

    def wait_for(self, name: str | None) -> None:
        """Wait until the helper has compiled an entry that it began, or has ended."""
        with self._changed:
            while self._process is not None and name in self._begun and name not in self._done:
                self._changed.wait(POLL_SECONDS)

    def _listen(self, process: subprocess.Popen[str]) -> None:
        """Note what the helper begins and what it has done. Once it has ended, all counts as done."""
        with suppress(OSError, ValueError):  # the pipe is closed while it is read
            for line in process.stdout or ():
                what, _, name = line.strip().partition(" ")
                with self._changed:
                    (self._begun if what == "begin" else self._done).add(name)
                    self._changed.notify_all()
        with self._changed:
            self._done |= set(self.names)
            self._changed.notify_all()


def may_help() -> bool:
    """Whether a helper may be started: there are two cores, Python is a plain one, and this is no worker of a pool."""
    plain = Path(sys.executable or "").name.lower().startswith("python") and not getattr(sys, "frozen", False)
    worker = multiprocessing.parent_process() is not None or multiprocessing.current_process().name != "MainProcess"
    return plain and not worker and n_cores() > 1


def main() -> None:
    """Compile the entries that the command line names and the parent does not claim; end when the parent ends."""
    claimed: set[str] = set()
    threading.Thread(target=_obey, args=(sys.stdin, claimed), daemon=True).start()
    # the imports take so long that the parent's first claims have arrived by then
    found = {place: resolve_name(place) for place in sys.argv[2:]}
    with without_garbage_collection(), resolved_once():
        for place, one in found.items():
            if place not in claimed:
                _tell("begin", place)
                one.compile() if hasattr(one, "compile") else one()
                _tell("done", place)


def _tell(what: str, place: str) -> None:
    """Tell the parent, at once."""
    sys.stdout.write(f"{what} {place}\n")
    sys.stdout.flush()


def _obey(pipe: IO[str], claimed: set[str]) -> None:
    """Note what the parent compiles itself. End this process as soon as the parent has ended."""
    for line in pipe:
        claimed.add(line.strip())
    os._exit(0)
