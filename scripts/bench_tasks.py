"""Speed of the additive objectives beside pystreed 1.4.0 at one depth, single thread, warm kernels.

Run from the repository root, with the extra ``peers`` installed and SOFTSURV_DATA set:

    OMP_NUM_THREADS=1 python scripts/bench_tasks.py --depth 4 --repeats 3

The eight sets of ``classification`` for accuracy, then cost-sensitive and policy. Times are the least CPU seconds of
interleaved repeats; the last table holds the geometric means of the speed-ups.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import _tasks
import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line


def cases(depth: int) -> Iterator[_tasks.Case]:
    """What is timed."""
    known = {file.stem for file in (_tasks.folder() / "classification").glob("*.csv")}
    sets = _tasks.classification_sets()
    yield from (_tasks.accuracy(name, *sets[name], depth) for name in sorted(known))
    yield from (
        _tasks.cost_sensitive(name, 1, level, depth) for name in ("car", "heart") for level in ("low", "middle", "high")
    )
    yield from (_tasks.policy(method, depth) for method in _tasks.POLICY)


def fastest(case: _tasks.Case, repeats: int) -> dict[str, Any]:
    """Both sides with the least time of each over interleaved repeats."""
    runs = [_tasks.compare(case) for _ in range(repeats)]
    return runs[0] | {side: min(run[side] for run in runs) for side in ("seconds", "peer_seconds")}


def main() -> None:
    """Time every case, print the rows and the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(machine_line())
    raw = [fastest(case, options.repeats) for case in cases(options.depth)]
    print(as_markdown(pd.DataFrame([_tasks.row(one) for one in raw])))
    frame = pd.DataFrame(raw)
    ratio = frame["peer_seconds"] / frame["seconds"]
    mean = ratio.groupby(frame["task"]).apply(lambda one: round(float(np.exp(np.log(one).mean())), 2))
    print(as_markdown(mean.rename("geometric mean of speed-ups").reset_index()))


if __name__ == "__main__":
    main()
