"""What each process of the test job does: a fit, then one in which the second process is killed.

Arguments: the table, a folder for results.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from softsurv import SoftSurvivalTree
from softsurv.data.chunks import Table
from softsurv.estimators.stream import fit_stream
from softsurv.soft.streaming import fit as stream_fit
from softsurv.soft.streaming.distributed import join

ARGUMENTS = {"depth": 2, "leaf": "weibull", "l2": 0.1, "shrinkage": 0.01, "routing_l2": 0.01, "n_restarts": 1}


def main(rows: str, results: str) -> None:
    table, folder = Table(rows, "t", "died", chunk_rows=64), Path(results)
    with join("cpu") as ranks:
        assert ranks.size == 2
        assert ranks.gather(ranks.rank) == [0, 1]
        assert ranks.share(f"from {ranks.rank}") == "from 0"
        model = fit_stream(SoftSurvivalTree(**ARGUMENTS), table, memory=3000 * ranks.rank, max_sweeps=4)
        model.save(folder / f"model{ranks.rank}")
        swept, calls = stream_fit.minimise, []

        def dies(*args, **how):
            calls.append(1)
            if ranks.rank == 1 and len(calls) == 3:  # the single leaf, then one sweep
                os.kill(os.getpid(), signal.SIGKILL)
            return swept(*args, **how)

        stream_fit.minimise = dies
        checkpoint = folder / "run.ckpt"
        fit_stream(SoftSurvivalTree(**ARGUMENTS), table, max_sweeps=4, checkpoint=checkpoint)


if __name__ == "__main__":
    main(*sys.argv[1:])
