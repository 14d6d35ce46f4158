"""What passes before softsurv begins to work: imports, and answers of the command line to wrong input.

    python scripts/bench_start.py

writes scripts/tables/start.md. Every row is a process of its own, run five times after once to warm the disk's cache:
the least wall-clock and the least CPU seconds. The libraries alone stand below, for comparison.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
from _machine import as_markdown, machine_line

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "scripts" / "tables" / "start.md"
REPEATS = 5
IMPORTS = {
    "import softsurv": "import softsurv",
    "softsurv.SoftSurvivalTree": "import softsurv; softsurv.SoftSurvivalTree",
    "softsurv.OptimalSurvivalTree": "import softsurv; softsurv.OptimalSurvivalTree",
    "softsurv.load_dataset, softsurv.SurvivalData": "import softsurv; softsurv.load_dataset, softsurv.SurvivalData",
    "scikit-learn alone": "import sklearn.base",
    "pandas alone": "import pandas",
    "torch alone": "import torch",
    "torch and scikit-learn alone": "import torch, sklearn.base",
    "scikit-survival's tree alone": "import sksurv.tree",
}
OUTCOME = ("--time", "time", "--event", "event")
COMMANDS = {
    "softsurv --help": ("--help",),
    "softsurv fit, no such file": ("fit", "missing.csv", *OUTCOME),
    "softsurv fit, no such column": ("fit", "table.csv", "--time", "tme", "--event", "event"),
    "softsurv fit, an unknown option": ("fit", "table.csv", *OUTCOME, "--deep", "2"),
    "softsurv predict, a feature is missing": ("predict", "model", "other.csv"),
    "softsurv predict, no such model": ("predict", "nowhere", "table.csv"),
    "softsurv evaluate, no such file": ("evaluate", "model", "missing.csv"),
    "softsurv report, no such file": ("report", "model", "missing.csv", "--out", "report.html"),
    "softsurv tune, no such column": ("tune", "table.csv", "--time", "tme", "--event", "event"),
    "softsurv compare, no such file": ("compare", "missing.csv", *OUTCOME),
}


def least(command: list[str], folder: Path) -> tuple[float, float]:
    """Least wall-clock and CPU seconds of a process over the repeats, the first left out."""
    env = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    walls, cpus = [], []
    for _ in range(REPEATS + 1):
        before, begin = os.times(), time.monotonic()
        subprocess.run(command, cwd=folder, env=env, capture_output=True, check=False)
        walls.append(time.monotonic() - begin)
        after = os.times()
        cpus.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(walls[1:]), min(cpus[1:])


def main() -> None:
    """Measure and write the table."""
    import softsurv

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = softsurv.load_dataset("veterans")
        frame = data.X.assign(time=data.time.numpy(), event=data.event.numpy())
        frame.to_csv(folder / "table.csv", index=False)
        frame.drop(columns="Celltype").to_csv(folder / "other.csv", index=False)
        softsurv.SoftSurvivalTree(depth=1, leaf="weibull", l2=1.0).fit(data.X, data.y).save(folder / "model")
        rows = {what: least([sys.executable, "-c", code], folder) for what, code in IMPORTS.items()}
        rows |= {what: least([sys.executable, "-m", "softsurv", *args], folder) for what, args in COMMANDS.items()}
    table = pd.DataFrame([(what, f"{wall:.2f}", f"{cpu:.2f}") for what, (wall, cpu) in rows.items()])
    table.columns = ["what", "wall-clock s", "CPU s"]
    title = f"# {__doc__.splitlines()[0]}"
    lines = [title, "", f"Made by `scripts/bench_start.py`: least of {REPEATS}.", "", machine_line(), ""]
    OUT.write_text("\n".join([*lines, as_markdown(table), ""]))


if __name__ == "__main__":
    main()
