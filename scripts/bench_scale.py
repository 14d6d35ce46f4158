"""Train a soft tree on tables larger than a budget of memory: time, peak memory and how both grow with the rows.

    python scripts/bench_scale.py --rows 250000 500000 1000000      # growth, some minutes
    python scripts/bench_scale.py --rows 5000000                    # the goal: 6 GB, 15 minutes, 2 cores
    python scripts/bench_scale.py --rows 1000000 2000000 --memory 200MB --kind csv      # what a row takes beside that

Rows are simulated: 30 features, of which eight act through a tree of depth two with Weibull leaves; about a third of
the rows is censored. Each size runs in a process of its own; "peak" is the largest resident memory of that process,
libraries included; CPU time, of all threads, is what other work on the machine disturbs least. Goals: peak below 6 GB
and less than 900 s at 5,000,000 rows, time in proportion to the rows.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from _machine import machine_line

FEATURES, BLOCK = 30, 250_000
GOAL_SECONDS, GOAL_BYTES, GOAL_ROWS = 900, 6e9, 5_000_000


def simulate(path: Path, rows: int, seed: int = 0) -> None:
    """Write a table block by block."""
    names = [f"x{k}" for k in range(FEATURES)]
    schema = pa.schema([*((name, pa.float64()) for name in names), ("time", pa.float64()), ("event", pa.bool_())])
    kind = pq.ParquetWriter if path.suffix == ".parquet" else pc.CSVWriter
    with kind(path, schema) as writer:
        for block, first in enumerate(range(0, rows, BLOCK)):
            rng = np.random.default_rng([seed, block])
            n = min(BLOCK, rows - first)
            x = rng.standard_normal((n, FEATURES))
            time_ = _times(x, rng)
            censoring = rng.exponential(2.0, n)
            event = time_ <= censoring
            columns = [*x.T, np.minimum(time_, censoring), event]
            writer.write_table(pa.table([pa.array(c) for c in columns], schema=schema), BLOCK)


def _times(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Event times from a tree of depth two: its leaves differ in shape, level and slopes."""
    left = x[:, 0] + 0.5 * x[:, 1] > 0
    lower = np.where(left, x[:, 2] - x[:, 3] > 0.3, x[:, 4] > -0.2)
    leaf = 2 * (~left) + ~lower
    level = np.array([0.0, 1.0, -0.5, 0.5])[leaf]
    slope = np.array([[0.6, 0.0], [0.0, 0.6], [-0.4, 0.3], [0.2, -0.5]])[leaf]
    shape = np.array([0.8, 1.0, 1.3, 1.7])[leaf]
    log_scale = level + (slope * x[:, 5:7]).sum(1) + 0.3 * x[:, 7]
    return np.exp(-log_scale) * rng.weibull(shape)


def measure(path: str, rows: int, memory: str, sweeps: int, channel: Any) -> None:
    """Fit and predict in this process."""
    from softsurv import SoftSurvivalTree
    from softsurv.data.chunks import Table
    from softsurv.estimators.stream import fit_stream, predict_stream

    table = Table(path, "time", "event")
    model = SoftSurvivalTree(depth=2, leaf="weibull", l2=1.0, shrinkage=1.0, routing_l2=1.0, n_restarts=3)
    began, cpu = time.perf_counter(), time.process_time()
    fit_stream(model, table, memory=memory, max_sweeps=sweeps)
    fitted, fit_cpu = time.perf_counter() - began, time.process_time() - cpu
    began = time.perf_counter()
    predicted = sum(len(part) for part in predict_stream(model, table, times=[0.5, 1.0]))
    assert predicted == rows
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    report = model.report_
    channel.send((fitted, fit_cpu, time.perf_counter() - began, peak, report.details["passes"], report.objective))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[250_000, 500_000, 1_000_000])
    parser.add_argument("--memory", default="1GB", help="for encoded features (default: 1GB)")
    parser.add_argument("--sweeps", type=int, default=20, help="sweeps over all rows at most (default: 20)")
    parser.add_argument("--kind", choices=["parquet", "csv"], default="parquet", help="of the file of the table")
    options = parser.parse_args()
    print(machine_line())
    print("     rows  fit s  CPU s  passes  CPU s/1e6 rows  predict s  peak GB  objective")
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"rows.{options.kind}"
            simulate(path, rows)
            here, there = multiprocessing.get_context("spawn").Pipe(duplex=False)
            arguments = (str(path), rows, options.memory, options.sweeps, there)
            process = multiprocessing.get_context("spawn").Process(target=measure, args=arguments)
            process.start()
            there.close()
            fitted, cpu, predicted, peak, passes, objective = here.recv()
            process.join()
        print(
            f"{rows:9d} {fitted:6.0f} {cpu:6.0f} {passes:7d} {cpu / rows * 1e6:15.1f} {predicted:10.0f} "
            f"{peak / 1e9:8.2f} {objective:10.6f}",
            flush=True,
        )
        if rows >= GOAL_ROWS:
            print(f"goal: {GOAL_SECONDS} s, met: {fitted < GOAL_SECONDS}; 6 GB, met: {peak < GOAL_BYTES}")


if __name__ == "__main__":
    main()
