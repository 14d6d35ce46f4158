"""Measure studies: time of a sweep, what a second worker brings, and what the journal costs.

    python scripts/bench_tune.py                 # all of it, about five minutes on two cores
    python scripts/bench_tune.py --only storage

- sweep: ``softsurv tune`` on gbsg2, 40 trials x 5 folds, two worker processes; the goal is 180 s.
- workers: the same trials (their parameters follow from seed and number) by one and by two workers of one thread each,
  interleaved; the goal is a factor of 1.7. Start-up of the processes is included in both. Where other work shares
  the cores, the CPU time of the busiest process shows what the wall clock cannot.
- storage: 1,000 trials of an objective that does nothing, in memory and in a journal file; the goal is less than
  20 ms a trial between the two.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # one thread a worker: before torch is loaded, and for the workers it starts

import optuna
from _machine import machine_line

from softsurv import load_dataset
from softsurv.tune import StudyObjective, study
from softsurv.tune.worker import StudyPlan, work

SWEEP_TRIALS, WORKER_TRIALS, STORAGE_TRIALS = 40, 320, 1000
WORKER_SPACE = ["leaf=weibull,loglogistic", "depth=1,2", "solver=lbfgs", "init=random", "n_restarts=3..5"]


class Nothing(StudyObjective):
    """Proposes parameters like the real objective, measures nothing."""

    def __call__(self, trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        return x + trial.suggest_float("y", 0, 1) * trial.suggest_categorical("z", (1, 2, 3))


def sweep() -> None:
    """Wall-clock time of a whole study."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        result = study(load_dataset("gbsg2"), n_trials=SWEEP_TRIALS, output=folder, n_jobs=2)
        print(f"sweep: {SWEEP_TRIALS} trials x 5 folds on gbsg2, 2 workers: {time.perf_counter() - started:.1f} s")
        print(result.summary())


def workers(repeats: int, trials: int) -> None:
    """One worker against two, as separate commands on one journal."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "gbsg2.csv"
        data = load_dataset("gbsg2")
        data.X.assign(time=data.time.numpy(), event=data.event.numpy()).to_csv(table, index=False)
        seconds: dict[int, list[float]] = {1: [], 2: []}
        busy: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(repeats):
            for count in (1, 2):
                out = Path(folder) / "out"
                shutil.rmtree(out, ignore_errors=True)
                wall, cpu = _together(table, out, count, trials)
                seconds[count].append(wall)
                busy[count].append(cpu)
                print(f"workers: {count}: {wall:.1f} s, busiest process {cpu:.1f} s of CPU", flush=True)
    for name, found in (("wall-clock", seconds), ("CPU of the busiest", busy)):
        one, two = (statistics.median(found[count]) for count in (1, 2))
        print(f"workers: {name}, median of {repeats}: 1: {one:.1f} s, 2: {two:.1f} s, factor {one / two:.2f}")


def _together(table: Path, out: Path, count: int, trials: int) -> tuple[float, float]:
    """Until as many equal commands have finished a study together: seconds, and CPU seconds of the busiest."""
    command = [sys.executable, "-m", "softsurv.cli", "tune", str(table), "--time", "time", "--event", "event"]
    command += ["--trials", str(trials), "--sampler", "random", "--out", str(out), "--no-progress"]
    command += ["--set", *WORKER_SPACE]
    started = time.perf_counter()
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(count)]
    ends = [os.wait4(process.pid, 0) for process in running]
    for process, (_, code, _) in zip(running, ends, strict=True):
        process.returncode = os.waitstatus_to_exitcode(code)
    if any(process.returncode for process in running):
        raise SystemExit("a worker failed")
    return time.perf_counter() - started, max(used.ru_utime + used.ru_stime for _, _, used in ends)


def storage() -> None:
    """What a journal costs a trial."""
    data = load_dataset("veterans")
    for sampler in ("random", "tpe"):
        wall, cpu = [], []
        with tempfile.TemporaryDirectory() as folder:
            for place in (None, Path(folder) / "study.journal"):
                goal = Nothing(data, n_folds=2)
                plan = StudyPlan(goal, STORAGE_TRIALS, place, None, "bench", 0, sampler, "none", (), None)
                started, used = time.perf_counter(), time.process_time()
                work(plan)
                wall.append((time.perf_counter() - started) / STORAGE_TRIALS * 1e3)
                cpu.append((time.process_time() - used) / STORAGE_TRIALS * 1e3)
        print(
            f"storage: {STORAGE_TRIALS} trials, sampler {sampler}: memory {wall[0]:.1f} ms a trial, journal "
            f"{wall[1]:.1f} ms, so {wall[1] - wall[0]:.1f} ms for the journal ({cpu[1] - cpu[0]:.1f} ms of CPU)"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("sweep", "workers", "storage"))
    parser.add_argument("--repeats", type=int, default=3, help="of the comparison of workers")
    parser.add_argument("--trials", type=int, default=WORKER_TRIALS, help=f"of the same (default: {WORKER_TRIALS})")
    options = parser.parse_args()
    print(machine_line())
    if options.only in (None, "storage"):
        storage()
    if options.only in (None, "sweep"):
        sweep()
    if options.only in (None, "workers"):
        workers(options.repeats, options.trials)
