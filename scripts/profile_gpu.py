"""Where the time of training goes on a GPU: kernels, launches and waits of the device, functions of the host.

    python scripts/profile_gpu.py                      # every case
    python scripts/profile_gpu.py --only "fits" "rows"
    python scripts/profile_gpu.py --folder profiles    # a page for each case, written as soon as it is measured

`bench_gpu.py` says how fast each case is; this script says why. A case is run once to load libraries, once by the
clock, once under torch's profiler and once under Python's. Without a device the same is measured on the CPU, at toy
sizes. SOFTSURV_CUDA_GRAPHS=0 takes rounds without graphs, SOFTSURV_COMPILE=1 the compiled objective.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import pstats
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from _gpu_fits import Bench, simulate, wait
from _gpu_goals import FAMILIES, encoded, many_rows, paper_recipes
from _gpu_parts import PARTS
from _machine import machine_line
from torch.profiler import ProfilerActivity, profile

from softsurv import SoftSurvivalTree, load_dataset
from softsurv.soft.many import fit_many
from softsurv.soft.parallel import Machine
from softsurv.soft.starts import TrainingRows

Work = Callable[[], object]
WAITS = ("ynchronize", "cudaMemcpy", "cudaMalloc", "cudaFree", "Instantiate")
"""Calls of CUDA by which the host may wait, by parts of their names."""

ROWS = 16
"""Of each table."""


def fits(trees: int) -> Callable[[torch.device], Work]:
    """Joint training of GBSG2 at depth 2, all trees at once."""

    def made(device: torch.device) -> Work:
        bench = Bench(encoded("gbsg2"), "loglogistic", 2, trees, device)
        return lambda: bench.run(1)

    return made


def grid(family: str) -> Callable[[torch.device], Work]:
    """The paper's fits of GBSG2 at depths 1 and 2: 20 starts on five folds as one stack each."""

    def made(device: torch.device) -> Work:
        folds, recipes = [TrainingRows(encoded("gbsg2", fold)) for fold in range(5)], paper_recipes((family,))
        return lambda: fit_many(folds, recipes, Machine(device))

    return made


def rows(n: int) -> Callable[[torch.device], Work]:
    """A dense tree of depth 2 on so many rows."""

    def made(device: torch.device) -> Work:
        given = {"max_terms": None, "leaf": "weibull", "depth": 2, "l2": 1.0, "shrinkage": 3.0, "routing_l2": 1.0}
        tree, data = SoftSurvivalTree(init="random", n_restarts=1, device=str(device), **given), many_rows(n, 30)
        return lambda: tree.fit(data)

    return made


def default(name: str) -> Callable[[torch.device], Work]:
    """The default tree, chosen and fitted."""
    return lambda device: lambda: SoftSurvivalTree(device=str(device)).fit(load_dataset(name))


def cases(on_cpu: bool) -> dict[str, Callable[[torch.device], Work]]:
    """What is profiled, by name."""
    many, most = ((2, 4), 1000) if on_cpu else ((20, 2000, 10_000), 5_000_000)
    parts = {f"part: {name}": lambda device, part=part: part(simulate(700), device) for name, part in PARTS.items()}
    return (
        {f"fits, {n} trees": fits(n) for n in many}
        | {f"grid, {family}": grid(family) for family in (FAMILIES[:1] if on_cpu else FAMILIES)}
        | {f"rows, {n:,}": rows(n) for n in (most // 5, most)}
        | {f"default, {name}": default(name) for name in (("veterans",) if on_cpu else ("gbsg2", "flchain"))}
        | ({} if on_cpu else parts)
    )


def seconds(work: Work, device: torch.device) -> float:
    """Of one run."""
    wait(device)
    began = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - began


def on_device(work: Work, device: torch.device) -> str:
    """The kernels that take longest, how many are launched, and where the host may wait."""
    kinds = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device.type == "cuda")
    with profile(activities=kinds) as traced:
        seconds(work, device)
    found = traced.key_averages()
    table = found.table(sort_by=f"self_{device.type}_time_total", row_limit=ROWS, max_name_column_width=60)
    launches = sum(one.count for one in found if one.key.startswith("cudaLaunch"))
    replays = sum(one.count for one in found if "GraphLaunch" in one.key)
    waits = [(one.key, one.count, f"{one.self_cpu_time_total / 1e3:.1f} ms") for one in found if _waits(one.key)]
    return f"{table}\nlaunches {launches}, graphs {replays}, waits {waits}"


def _waits(name: str) -> bool:
    return any(part in name for part in WAITS)


def on_host(work: Work, device: torch.device) -> str:
    """The functions of the host that take longest, by themselves and with those they call."""
    host, out = cProfile.Profile(), io.StringIO()
    with host:
        seconds(work, device)
    for order in ("tottime", "cumtime"):
        pstats.Stats(host, stream=out).sort_stats(order).print_stats(ROWS)
    return "\n".join(line[:150] for line in out.getvalue().splitlines() if line.strip())


def page(name: str, device: torch.device) -> str:
    """All that is measured of a case."""
    work = cases(device.type == "cpu")[name](device)
    first, then = seconds(work, device), seconds(work, device)
    peak = torch.cuda.max_memory_allocated() / 1e9 if device.type == "cuda" else 0.0
    head = f"{name}: first {first:.2f} s, then {then:.3f} s, at most {peak:.2f} GB of the device"
    return "\n\n".join([head, on_device(work, device), on_host(work, device)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="cases whose names begin so")
    parser.add_argument("--folder", type=Path, help="write a page for each case here")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(f"{machine_line()}; device: {torch.cuda.get_device_name() if device.type == 'cuda' else 'none'}")
    for name in cases(device.type == "cpu"):
        if not name.startswith(tuple(options.only)):
            continue
        try:
            found = page(name, device)
        except Exception:  # the other cases are measured all the same
            found = f"{name} failed:\n{traceback.format_exc()}"
        print(found if options.folder is None else found.partition("\n")[0], flush=True)
        if options.folder is not None:
            options.folder.mkdir(parents=True, exist_ok=True)
            file = "".join(letter if letter.isalnum() else "_" for letter in name)
            (options.folder / f"{file}.txt").write_text(f"{found}\n")


if __name__ == "__main__":
    main()
