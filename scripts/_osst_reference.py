"""The reference implementation `osst` 0.1.8, fit by fit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from _osst_models import MIN_ROWS

OSST_WORKER = """
import json, os, signal, sys, time
import pandas as pd
from osst.model.osst import OSST

def fit(job):
    table = pd.read_csv(job["file"])
    table = table[[c for c in table.columns if not c.startswith("Unnamed")]]
    event, y = (pd.DataFrame(table.iloc[:, k].to_numpy()) for k in (-2, -1))
    model = OSST({"regularization": job["complexity"], "depth_budget": job["depth"] + 1 if job["depth"] else 0,
                  "minimum_captured_points": job["min_rows"], "look_ahead": True, "model_limit": 1,
                  "time_limit": job["time_limit"]})
    start = time.process_time()
    model.fit(table.iloc[:, :-2], event.astype(int), y)
    return {"cpu": time.process_time() - start, "search": model.time, "lower": model.lb, "upper": model.ub,
            "timeout": model.timeout} | ({} if model.timeout else {"loss": model.reported_loss})

for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        signal.alarm(job["time_limit"] + 60)
        os.write(1, ("\\nANSWER " + json.dumps(fit(job)) + "\\n").encode())
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        os.write(1, b"\\nANSWER null\\n")
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

    def fit(self, name: str, depth: int, complexity: float, time_limit: float) -> dict | None:
        """Loss, bounds and seconds of one fit; its bounds alone if its time ran out, None if it aborted."""
        job = {"file": str(self.folder / f"{name}.csv"), "depth": depth, "complexity": complexity}
        job |= {"min_rows": MIN_ROWS, "time_limit": int(time_limit)}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        line = next(line for line in self.process.stdout if line.startswith("ANSWER "))
        return json.loads(line.removeprefix("ANSWER "))
