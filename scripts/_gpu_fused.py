"""The objective's pass over the rows by torch's operators, as one compiled operator, and by the loops of a CPU.

From predictors and splits to the expected loss and its derivatives, of trees of depth 2 or 3 on 700 rows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import torch
from _gpu_fits import Bench, simulate, wait
from _gpu_parts import Operators
from torch import Tensor

from softsurv.hazards import get_family
from softsurv.soft import fused
from softsurv.soft.objective import LOOPS, Objective, route
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.penalties import no_penalties
from softsurv.soft.problem import make_problem

ROWS, CALLS = 700, 100
RUNS = 3
"""Of which the fastest counts."""


@dataclass(frozen=True)
class Pass:
    """One row of the table."""

    trees: int
    depth: int
    family: str


FAMILIES = ("loglogistic", "weibull", "lognormal", "spline_ph", "spline_po")
GRID = [*(Pass(20, 2, family) for family in FAMILIES), Pass(500, 2, "loglogistic"), Pass(20, 3, "loglogistic")]
QUICK = [GRID[0], GRID[5]]


@contextmanager
def asked(on: bool) -> Iterator[None]:
    """While open, the fused operator is asked for, or is not."""
    before = os.environ.get(fused.SWITCH)
    os.environ[fused.SWITCH] = fused.ON if on else "0"
    try:
        yield
    finally:
        os.environ.pop(fused.SWITCH) if before is None else os.environ.update({fused.SWITCH: before})


def clock(device: torch.device) -> float:
    """Seconds: of the processor on a CPU, by wall clock on a device."""
    wait(device)
    return time.process_time() if device.type == "cpu" else time.perf_counter()


def milliseconds(work: Callable[[], object], device: torch.device) -> float:
    """Of one call, the least of some runs after one call to warm up."""
    work()
    found = []
    for _ in range(RUNS):
        began = clock(device)
        for _ in range(CALLS):
            work()
        found.append(1e3 * (clock(device) - began) / CALLS)
    return min(found)


class Setting:
    """Predictors and splits of some trees with random parameters, on a device."""

    def __init__(self, one: Pass, device: torch.device) -> None:
        problem = make_problem(simulate(ROWS), get_family(one.family), n_trees=one.trees, device=device)
        columns, draw = problem.design.shape[-1], torch.Generator().manual_seed(0)
        size = columns + problem.family.n_shape
        normal = {"generator": draw, "dtype": torch.float64}
        routing = torch.randn(one.trees, 2**one.depth - 1, columns, **normal).to(device)
        self.leaves = 0.3 * torch.randn(one.trees, 2**one.depth, size, **normal).to(device)
        self.objective = Objective(problem, one.depth, no_penalties(one.trees, size, problem.weight))
        self.split, self.device = self.objective.splits(routing), device
        self.predictors = self.objective.predictors(self.leaves)
        self.objective.predictors = lambda leaves: self.predictors  # type: ignore[method-assign]  # not part of it

    def run(self) -> tuple[Tensor, ...]:
        """The pass as it is asked for: value, slopes by split and by predictor, and reach."""
        found = self.objective._in_one_pass(self.leaves, self.split, self.objective.problem.weight)
        return self._by_operators() if found is None else found

    def _by_operators(self) -> tuple[Tensor, ...]:
        terms = self.objective.leaf_terms(self.leaves)
        found = route(self.split, terms.loss, self.objective.problem.weight)
        return found.value, found.slopes, found.reach * terms.slopes.at_time, found.reach

    @property
    def megabytes(self) -> float:
        """What the pass must read and write."""
        rows = *self.predictors[1:], self.objective.problem.event, self.split, self.objective.problem.weight
        return sum(table.numel() for table in (*rows, *self.run())) * 8 / 1e6


def fits_a_second(one: Pass, device: torch.device) -> float:
    """Joint trainings, the best of some runs after one that compiles."""
    bench, found = Bench(simulate(ROWS), one.family, one.depth, one.trees, device), []
    bench.run(1)
    for _ in range(RUNS):
        began = clock(device)
        bench.run(1)
        found.append(one.trees / (clock(device) - began))
    return max(found)


def measure_pass(one: Pass, device: torch.device) -> dict[str, str]:
    """One row of the table."""
    import torch._inductor.config
    from torch._inductor import metrics

    setting, on_cpu = Setting(one, device), device.type == "cpu"
    with operators_alone() if on_cpu else nullcontext():
        with asked(False):
            expected = setting.run()
            with Operators(large=one.trees * ROWS) as counted:
                setting.run()
            slow, slow_fits = milliseconds(setting.run, device), fits_a_second(one, device)
        with asked(True), torch._inductor.config.patch(force_disable_caches=True):
            fused._compiled.cache_clear()
            metrics.reset()
            began = time.perf_counter()
            found = setting.run()
            wait(device)
            compiling = time.perf_counter() - began
            fast, moved = milliseconds(setting.run, device), setting.megabytes
            kernels, fast_fits = metrics.generated_kernel_count, fits_a_second(one, device)
    scales = [theirs.abs().max().clamp(min=1.0) for theirs in expected]
    apart = max(float((a - b).abs().max() / s) for a, b, s in zip(found, expected, scales, strict=True))
    has_loops = setting.objective.form(setting.leaves) == LOOPS
    loops = f"{milliseconds(setting.run, device):.2f}" if has_loops else "none"
    return {name: str(value) for name, value in vars(one).items()} | {
        "device": device.type,
        "operators": f"{counted.total}",
        "kernels": f"{kernels}",
        "MB by operators": f"{8 * counted.moved / 1e6:.1f}",
        "MB in and out": f"{moved:.1f}",
        "operators, ms": f"{slow:.2f}",
        "fused, ms": f"{fast:.2f}",
        "loops, ms": loops,
        "compiled, s": f"{compiling:.1f}",
        "difference": f"{apart:.0e}",
        "fits/s by operators": f"{slow_fits:.0f}",
        "fits/s fused": f"{fast_fits:.0f}",
    }


def passes(quick: bool) -> list[dict[str, str]]:
    """The rows of the table, on CUDA where there is a device, and on the CPU."""
    devices = [torch.device(name) for name in (["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"])]
    rows = []
    for one in QUICK if quick else GRID:
        for device in devices:
            rows.append(measure_pass(one, device))
            print("  ".join(rows[-1].values()), flush=True)
    return rows
