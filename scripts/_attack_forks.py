"""Commands of softsurv in forked children of one process that has imported and compiled everything: a case costs a fit,
not an import."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from softsurv import load_model
from softsurv.errors import ModelFileError

OUTCOME = ("--time", "t", "--event", "e")
DENSE = ("--depth", "1", "--l2", "1", "--shrinkage", "1", "--routing-l2", "1")
COMMANDS: dict[str, tuple[str, ...]] = {
    "rules": ("fit", *OUTCOME),
    "dense": ("fit", *OUTCOME, "--max-terms", "none", "--depth", "2"),
    "optimal": ("fit", *OUTCOME, "--model", "optimal"),
    "Brier": ("fit", *OUTCOME, "--model", "optimal", "--objective", "ibs"),
    "stream": ("fit", *OUTCOME, "--memory", "20KB", *DENSE),
    "study": ("tune", *OUTCOME, "--trials", "4", "--folds", "2", "--set", "max_terms=none", "depth=1", "--no-progress"),
}
"""The kinds of work that a Ctrl-C comes into."""

AGAIN = ("stream", "study")
"""Work that the same command takes up again."""


class Server:
    """The process whose children run commands; each child may be sent signals until it is waited for."""

    def __init__(self, rows: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.longest: dict[str, float] = {}
        for name in COMMANDS:
            for _ in range(2):  # the first time compiles
                out = rows.parent / f"warm-{name}"
                begin = time.monotonic()
                code, said = self.wait(self.start(arguments(name, rows, out), out.with_suffix(".log")))
                self.longest[name] = time.monotonic() - begin
                if code:
                    self.process.kill()  # every case would leave one: together they fill the memory
                    self.process.wait()
                    raise RuntimeError(f"{name} ended with {code}: {said}")

    def start(self, command: Sequence[str], log: Path) -> int:
        """Start a command; the number of its process."""
        self.log = log
        return int(self._ask("start", [*command], str(log)))

    def wait(self, number: int) -> tuple[int, str]:
        """The exit status and what was written to stderr."""
        return int(self._ask("wait", number)), self.log.read_text()

    def _ask(self, *request: object) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()


def serve() -> None:
    """Import everything, then fork a child for each request on stdin."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import softsurv.estimators.stream
    import softsurv.tune  # noqa: F401

    for line in sys.stdin:
        what, subject, *more = json.loads(line)
        if what == "wait":
            answer = os.waitstatus_to_exitcode(os.waitpid(subject, 0)[1])
        elif (answer := os.fork()) == 0:
            child(subject, more[0])
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def child(command: list[str], log: str) -> None:
    """Run a command as a process of its own would."""
    from softsurv.cli import main

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    code = 130
    with contextlib.suppress(KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        code = main(command)
    os._exit(code)


def arguments(name: str, rows: Path, out: Path) -> list[str]:
    """A command of `COMMANDS` with its table and folder."""
    command, *options = COMMANDS[name]
    more = ["--checkpoint", f"{out}.checkpoint"] if name == "stream" else []
    return [command, str(rows), *options, *more, "--out", str(out)]


@cache
def server(folder: Path) -> tuple[Server, Path]:
    """The server, and the table that its children read."""
    rng = np.random.default_rng(0)
    rows, n = folder / "forked.csv", 400
    frame = pd.DataFrame(rng.standard_normal((n, 5)), columns=[f"v{k}" for k in range(5)])
    risk = np.exp(-frame["v0"] * (frame["v1"] > 0))
    frame.assign(t=rng.exponential(risk) + 0.1, e=rng.integers(0, 2, n)).to_csv(rows, index=False)
    return Server(rows), rows


def interrupted_phase(folder: Path, rng: np.random.Generator) -> str | None:
    """A Ctrl-C at any moment of some kind of fit; what went wrong, or None."""
    running, rows = server(folder)
    name = str(rng.choice(list(COMMANDS)))
    out = folder / f"interrupted-{rng.integers(1 << 40)}"
    number = running.start(arguments(name, rows, out), out.with_suffix(".log"))
    time.sleep(float(rng.uniform(0.0, running.longest[name])))
    os.kill(number, signal.SIGINT)
    code, said = running.wait(number)
    if code not in (0, 130) or "Traceback" in said or "error" in said:
        return f"{name} ended with {code}: {said.strip()[-300:]}"
    if name in AGAIN:
        code, said = running.wait(running.start(arguments(name, rows, out), out.with_suffix(".log")))
        if code:
            return f"{name} is not taken up again: it ended with {code}: {said.strip()[-300:]}"
    with contextlib.suppress(ModelFileError if not (out / "model.safetensors").exists() else ()):
        load_model(out)
    return None


if __name__ == "__main__":
    serve()
