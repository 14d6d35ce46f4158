"""The fuzzers of exactness, `fuzz_exact` and `fuzz_pareto`, as groups of the attack; each kind of problem as long."""

from __future__ import annotations

import fuzz_exact
import fuzz_pareto
import numpy as np

SECONDS = 3600.0 / (len(fuzz_exact.TARGETS) + len(fuzz_pareto.TARGETS))
"""For each kind of problem; an hour in all."""

KINDS = dict.fromkeys(fuzz_exact.TARGETS, ("fuzz_exact", fuzz_exact.trial)) | dict.fromkeys(
    fuzz_pareto.TARGETS, ("fuzz_pareto", fuzz_pareto.trial)
)
"""The script that repeats a kind of problem, and its trial."""


def wrong_optimum(target: str, rng: np.random.Generator) -> str | None:
    """One random problem, solved twice; where the answers differ, the seed for the script that repeats it."""
    script, trial = KINDS[target]
    seed = int(rng.integers(1 << 32))
    message = trial(target, seed)
    return f"{script}.py --targets {target} --seed {seed}: {message}" if message else None
