"""Which process runs a trial, and whether it is still alive.

optuna's heartbeats exist for databases only. Here every trial carries the mark of its process. On the same machine
the process table answers at once. For other machines that share a journal file, each worker touches a file of its own
beside the journal while it is alive; its age by the clock of the file system tells whether the worker still is.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

BEAT_SECONDS = 15.0
"""How often a worker touches its file."""

GRACE_SECONDS = 90.0
"""A worker on another machine counts as dead when its file is older: it has missed five touches or more."""


def process_mark(beats: str | None = None) -> dict[str, Any]:
    """Values that identify this process among all machines, for JSON; ``beats`` names its file, if it has one."""
    return {"machine": _machine(), "host": socket.gethostname(), "pid": os.getpid(), "start": _start(os.getpid())} | (
        {} if beats is None else {"beats": beats}
    )


def is_dead(mark: dict[str, Any], folder: Path | None) -> bool:
    """Whether the process of a mark has certainly ended.

    Parameters
    ----------
    mark : dict
        From :func:`process_mark`.
    folder : Path, optional
        Where workers that share a journal leave their files.
    """
    if mark.get("machine") and mark["machine"] == _machine():
        return _start(int(mark["pid"])) != mark["start"]
    if folder is None or "beats" not in mark:
        return False
    try:
        last = (folder / mark["beats"]).stat().st_mtime
    except FileNotFoundError:
        return True
    return _now(folder) - last > GRACE_SECONDS


class Beats:
    """Touches this process's file in a folder until closed; a context manager. Without a folder it does nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.name: str | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Beats:
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            mark = json.dumps(process_mark(), sort_keys=True)
            self.name = hashlib.sha256(f"{mark}{time.time_ns()}".encode()).hexdigest()[:16]
            (self.folder / self.name).write_text(mark)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.folder is not None and self.name is not None:
            self._stop.set()
            self._thread.join()
            (self.folder / self.name).unlink(missing_ok=True)

    def _beat(self) -> None:
        assert self.folder is not None
        assert self.name is not None
        while not self._stop.wait(BEAT_SECONDS):
            with suppress(OSError):  # a shared folder may be away for a while: who stopped would count as dead
                (self.folder / self.name).touch()


def _now(folder: Path) -> float:
    """The file system's own time."""
    probe = folder / f"now-{os.getpid()}-{threading.get_ident()}"
    probe.touch()
    try:
        return probe.stat().st_mtime
    finally:
        probe.unlink(missing_ok=True)


def _machine() -> str:
    """Boot and process namespace: equal only where the process table is the same; empty without such a table."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _start(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot; a later process with the same number has another one."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])
