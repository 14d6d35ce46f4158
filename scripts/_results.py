"""Long comparisons that can be interrupted: finished cases in a file, and peers in processes of their own."""

from __future__ import annotations

import json
import multiprocessing
import resource
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

MEMORY = 8 << 30
"""Bytes that a peer may take."""


class Results:
    """Finished cases, one JSON object per line; a later run goes on where an interrupted one stopped."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.done = {line["case"]: line for line in map(json.loads, lines)}

    def get(self, case: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The case's numbers, computed if they are not there yet."""
        if case not in self.done:
            self.done[case] = {"case": case, **work()}
            with self.path.open("a") as file:
                file.write(json.dumps(self.done[case]) + "\n")
        return self.done[case]


def in_child(work: Callable[[], Any], seconds: float) -> Any:
    """Result of ``work`` in a forked process; None where it took more than ``seconds`` of wall clock, or died."""
    receiver, sender = multiprocessing.Pipe(duplex=False)

    def run(out: Connection) -> None:
        most = MEMORY + address_space()  # a forked child begins with all that its parent holds
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        out.send(work())

    process = multiprocessing.get_context("fork").Process(target=run, args=(sender,))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(seconds) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()


def address_space() -> int:
    """Bytes of address space that this process holds; 0 where the system does not tell."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[0]) * resource.getpagesize() if statm.exists() else 0


def cpu(work: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Least CPU seconds of the process over repeats, of which there is one for work of a second, and the result."""
    taken: list[float] = []
    while not taken or (len(taken) < repeats and sum(taken) < 1.0):
        begin = time.process_time()
        result = work()
        taken.append(time.process_time() - begin)
    return min(taken), result
