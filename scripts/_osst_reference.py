"""The reference implementation `osst` 0.1.8, fit by fit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from _osst_models import MIN_ROWS

OSST_WORKER = """
import json, os, resource, signal, sys, time
import pandas as pd
from osst.model.osst import OSST

def fit(job):
    table = pd.read_csv(job["file"])
    table = table[[c for c in table.columns if not c.startswith("Unnamed")]]
    event, y = (pd.DataFrame(table.iloc[:, k].to_numpy()) for k in (-2, -1))
    model = OSST({"regularization": job["complexity"], "depth_budget": job["depth"] + 1 if job["depth"] else 0,
                  "minimum_captured_points": job["min_rows"], "look_ahead": True, "model_limit": 1,
                  "time_limit": 10 * job["seconds"]})
    start = time.process_time()
    model.fit(table.iloc[:, :-2], event.astype(int), y)
    return {"cpu": time.process_time() - start, "search": model.time, "lower": model.lb, "upper": model.ub,
            "end": "stopped" if model.timeout else "optimal", "loss": None if model.timeout else model.reported_loss}

for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (job["seconds"], job["seconds"] + 1))
        os.write(1, ("\\nANSWER " + json.dumps(fit(job)) + "\\n").encode())
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status != 0:
        end = "stopped" if os.WTERMSIG(status) == signal.SIGXCPU else "aborted"
        os.write(1, ("\\nANSWER " + json.dumps({"end": end}) + "\\n").encode())
"""


class Reference:
    """`osst` in a process of its own, which forks for every fit: a second fit in one process aborts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", OSST_WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def fit(self, name: str, depth: int, complexity: float, seconds: float) -> dict:
        """Loss, bounds and seconds of one fit; "end" says if it was stopped after so many CPU seconds, or aborted."""
        job = {"file": str(self.folder / f"{name}.csv"), "depth": depth, "complexity": complexity}
        job |= {"min_rows": MIN_ROWS, "seconds": int(seconds)}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        line = next(line for line in self.process.stdout if line.startswith("ANSWER "))
        return json.loads(line.removeprefix("ANSWER "))
