"""Fits per second against trees, rows, depth and family, on the CPU and on a GPU in one run.

    python scripts/bench_gpu.py                       # the table
    python scripts/bench_gpu.py --quick               # a few cells, under a minute
    python scripts/bench_gpu.py --markdown table.md
    python scripts/bench_gpu.py --fused --markdown scripts/tables/fused.md     # the compiled objective alone
    python scripts/bench_gpu.py --rules --markdown scripts/tables/gpu_rules.md  # what trees of rules wait for, alone

Four tables: fits of joint training, what a study is made of (`_gpu_parts.py`), the share of what the device allows
(operators over its launch rate, bytes moved over its bandwidth) that a round of L-BFGS by operators reaches, and what
is asked of an H200 (`_gpu_goals.py`), which takes a device; without one the table says so.

A fit is a joint training of 60 quasi-Newton steps at most from a random start, float64, 20 features. On the CPU a stack
is cut into parts that fill the caches, one thread a part, and is timed on at most --cpu-trees of its trees, as the
parts do not know of each other; on the GPU it is cut into parts that fill the memory. Without a device its columns say
"not measured". Goal where there is an H200: 30 times the throughput of two cores at 2,000 trees.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import torch
from _gpu_fits import NONE, Bench, simulate
from _gpu_fused import passes
from _gpu_goals import goals
from _gpu_parts import PARTS, rate, share_of_the_limit
from _gpu_rules import rules
from _machine import machine_line

from softsurv.soft.parallel import one_core_each

EXPLAINED = """Made by [bench_gpu.py](../bench_gpu.py), which says what is measured. First fits a second of joint
training, 60 quasi-Newton steps at most, float64, 20 features; then units a second of what a study is
made of, by wall clock: what else the machine did slows it; then the share of what the device allows (launches a second,
bytes a second) that a round of L-BFGS by torch's operators reaches. A round is an evaluation of all trees; the copy
by which the host learns which of them move counts in. A CPU trains by compiled loops instead. Last what is asked of an
H200; of the CPU the fits alone, timed on at most 40 of them."""
EXPLAINED_FUSED = """Made by [bench_gpu.py](../bench_gpu.py) `--fused`. The objective's pass over 700 rows, from
predictors and splits to the expected loss and its derivatives: by torch's operators as any device takes them, and as
one operator of `torch.compile` (SOFTSURV_COMPILE=1, `softsurv/soft/fused.py`). Kernels are those that it generated.
Tables are moved by operators as counted, and once into and out of one kernel. Milliseconds are processor time on a CPU,
wall clock on CUDA; the loops are those that a CPU trains with. It is compiled with empty caches; other numbers of trees
and rows take the same kernel, a single tree one of its own. The difference is relative to the largest entry or 1. Fits
are joint trainings of 20 features, 60 rounds at most, by the same clocks; on CUDA rounds are recorded as graphs."""
EXPLAINED_RULES = """Made by [bench_gpu.py](../bench_gpu.py) `--rules`. The default tree, chosen and fitted: how often
the host waits for what a device found while rules are sought and candidates are scored, what is copied then, and the
processor's seconds in the search for rules, in the fits of leaves, and in all. A device would wait no more often, and
less where a CPU trains large data in several parts. A device fits the leaves and waits while the processor seeks rules,
there with one thread for each core. The search is the least that a fit takes on one core, however fast the device."""
FUSED_HEAD = "# The objective as one compiled operator", EXPLAINED_FUSED
RULES_HEAD = "# What a tree of rules waits for", EXPLAINED_RULES
PAPER_FITS = 15_000
"""15 data sets x 5 folds x 20 starts x 5 families x 2 depths."""


@dataclass(frozen=True)
class Cell:
    """One row of the table."""

    trees: int
    rows: int
    depth: int
    family: str


GRID = [
    *(Cell(trees, 700, 2, "loglogistic") for trees in (1, 20, 100, 500, 2000)),
    *(Cell(500, rows, 2, "loglogistic") for rows in (200, 2000, 10_000)),
    *(Cell(500, 700, depth, "loglogistic") for depth in (1, 3)),
    *(Cell(500, 700, 2, family) for family in ("weibull", "lognormal", "spline_po")),
]
LIMITS = [Cell(trees, 700, 2, family) for trees in (20, 500) for family in ("loglogistic", "lognormal")]
QUICK = [Cell(trees, 300, depth, "loglogistic") for trees, depth in product((1, 20), (1, 2))]


def measure(cell: Cell, repeats: int, cpu_trees: int) -> dict[str, str]:
    """One row of the table."""
    data = simulate(cell.rows)
    on_cpu = Bench(data, cell.family, cell.depth, min(cell.trees, cpu_trees), torch.device("cpu"))
    with one_core_each() as workers:
        runs = [on_cpu.run(workers) for _ in range(repeats)]
    cpu = len(on_cpu.routing) / min(seconds for seconds, _ in runs)
    row = {name: str(value) for name, value in vars(cell).items()} | {"CPU fits/s": f"{cpu:.1f}"}
    if not torch.cuda.is_available():
        return row | {"GPU fits/s": NONE, "GPU / CPU": NONE, "median difference": NONE}
    on_gpu = Bench(data, cell.family, cell.depth, cell.trees, torch.device("cuda"))
    on_gpu.run(1)  # kernels and memory pools are made once
    gpu_runs = [on_gpu.run(1) for _ in range(repeats)]
    gpu = cell.trees / min(seconds for seconds, _ in gpu_runs)
    reference = runs[0][1]
    difference = ((gpu_runs[0][1][: len(reference)] - reference) / reference.abs()).abs().median()
    return row | {
        "GPU fits/s": f"{gpu:.1f}",
        "GPU / CPU": f"{gpu / cpu:.1f}",
        "median difference": f"{float(difference):.1e}",
    }


def measure_part(name: str, repeats: int) -> dict[str, str]:
    """One row of what a study is made of: units a second."""
    data, cpu = simulate(700), torch.device("cpu")
    row = {"part, units": name, "CPU a second": f"{(slow := rate(PARTS[name](data, cpu), cpu, repeats)):.3g}"}
    if not torch.cuda.is_available():
        return row | {"GPU a second": NONE, "GPU / CPU": NONE}
    gpu = torch.device("cuda")
    fast = rate(PARTS[name](data, gpu), gpu, repeats)
    return row | {"GPU a second": f"{fast:.3g}", "GPU / CPU": f"{fast / slow:.1f}"}


def measure_limit(cell: Cell, way: str) -> dict[str, str]:
    """One row of the share of the physical limit, on a CPU, on CUDA, or there as a graph."""
    device = torch.device(way.partition(",")[0])
    bench = Bench(simulate(cell.rows), cell.family, cell.depth, cell.trees, device)
    found = share_of_the_limit(bench.objective, (bench.routing, bench.leaves), bench.metric, way.endswith("graph"))
    return {name: str(value) for name, value in vars(cell).items()} | {
        "device": way,
        "operators a round": f"{found['operators']:.0f}",
        "MB moved": f"{found['bytes'] / 1e6:.1f}",
        "ms": f"{1e3 * found['seconds']:.2f}",
        "share of the limit": f"{100 * found['share']:.0f} %",
    }


def as_markdown(rows: list[dict[str, str]]) -> list[str]:
    """Lines of a table."""
    names = list(rows[0])
    widths = [max(len(name), *(len(row[name]) for row in rows)) for name in names]

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    rule = "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|"
    return [line(names), rule, *(line(list(row.values())) for row in rows)]


def verdict(rows: list[dict[str, str]]) -> str:
    """From how many trees on the GPU pays."""
    paid = [row for row in rows if row["GPU / CPU"] != NONE and float(row["GPU / CPU"]) > 1]
    if rows[0]["GPU / CPU"] == NONE:
        return "no CUDA device: GPU columns are not measured"
    if not paid:
        return "the GPU pays in no cell"
    least = min(paid, key=lambda row: int(row["trees"]) * int(row["rows"]) * 2 ** int(row["depth"]))
    most = max(rows, key=lambda row: int(row["trees"]))
    return (
        f"the GPU pays from {least['trees']} trees of depth {least['depth']} on {least['rows']} rows on; at "
        f"{most['trees']} trees it does {most['GPU / CPU']} times the fits of the CPU, and the {PAPER_FITS:,} fits of "
        f"the paper's grid take {PAPER_FITS / float(most['GPU fits/s']):.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few small cells")
    parser.add_argument("--fused", action="store_true", help="the objective by operators and compiled, alone")
    parser.add_argument("--rules", action="store_true", help="what trees of rules wait for, alone")
    parser.add_argument("--repeats", type=int, default=3, help="of each cell; the fastest counts (default: 3)")
    parser.add_argument("--cpu-trees", type=int, default=40, help="trees that the CPU trains at most (default: 40)")
    parser.add_argument("--markdown", type=Path, help="write the table to this file too")
    options = parser.parse_args()
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    print(f"{machine_line()}\nCUDA device: {device}; CPU threads: {torch.get_num_threads()}")
    load = f"CPU threads: {torch.get_num_threads()}; load of the machine {os.getloadavg()[1]:.0f}"
    machine = f"{machine_line()}. CUDA device: {device}. {load}."
    if options.fused or options.rules:
        rows = passes(options.quick) if options.fused else rules()
        table = "\n".join(as_markdown(rows))
        print(f"\n{table}")
        if options.markdown is not None:
            head = FUSED_HEAD if options.fused else RULES_HEAD
            options.markdown.write_text("\n\n".join([head[0], machine, head[1], table]) + "\n")
        return
    tables: list[list[dict[str, str]]] = [[], [], [], []]
    for place, row in measured(options.quick, options.repeats, options.cpu_trees):
        tables[place].append(row)
        print("  ".join(row.values()), flush=True)
        if options.markdown is not None:  # as it goes: what is cut off is not lost
            head = ["# On the CPU and on a GPU", machine, EXPLAINED]
            options.markdown.write_text("\n\n".join(head + as_texts(tables)) + "\n")
    print("\n\n".join(["", *as_texts(tables), verdict(tables[0])]))


def measured(quick: bool, repeats: int, cpu_trees: int) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row as soon as it is measured, and the number of its table."""
    for cell in QUICK if quick else GRID:
        yield 0, measure(cell, repeats, cpu_trees)
    for name in PARTS:
        yield 1, measure_part(name, repeats)
    for cell in QUICK[-1:] if quick else LIMITS:
        for way in ("cpu", "cuda", "cuda, graph") if torch.cuda.is_available() else ("cpu",):
            yield 2, measure_limit(cell, way)
    for row in goals(quick, cpu_trees):
        yield 3, row


def as_texts(tables: list[list[dict[str, str]]]) -> list[str]:
    """The tables that have rows."""
    return ["\n".join(as_markdown(rows)) for rows in tables if rows]


if __name__ == "__main__":
    main()
