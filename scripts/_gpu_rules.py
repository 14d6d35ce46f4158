"""What a default tree of rules asks of the processor while a device trains it: waits, bytes, and the search for rules.

Each call of `on_host` is one wait and one copy. A device has at most as many: it trains large data in fewer parts. The
times are those of one core, which fits the leaves as well here. A device would fit these, and wait for the rules.
"""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from softsurv import SoftSurvivalTree, load_dataset
from softsurv.sparse import train, trials

SETS = ("veterans", "gbsg2", "flchain")
WAITS = ((train, "on_host"), (trials, "on_host"))
SOUGHT = ((train, "polish"), (train, "trees_of_corrections"), (train, "tree_grown_on"))
FITTED = ((train, "fit_causes"), (trials, "fit_causes"))


class Recorded:
    """While open, counts the waits and the bytes that they copy, and adds up processor seconds by what was done."""

    def __init__(self) -> None:
        self.waits, self.megabytes, self.seconds = 0, 0.0, defaultdict[str, float](float)
        self._patches = ExitStack()

    def __enter__(self) -> Recorded:
        for module, name in WAITS:
            self._wrap(module, name, self._counted)
        for kind, places in (("sought", SOUGHT), ("fitted", FITTED)):
            for module, name in places:
                self._wrap(module, name, lambda function, kind=kind: self._timed(function, kind))
        return self

    def __exit__(self, *error: object) -> None:
        self._patches.close()

    def _wrap(self, module: Any, name: str, around: Callable[[Any], Any]) -> None:
        self._patches.enter_context(patch.object(module, name, around(getattr(module, name))))

    def _counted(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def counted(tables: Any) -> Any:
            found = function(tables)
            self.waits += 1
            self.megabytes += sum(table.nbytes for table in found) / 1e6
            return found

        return counted

    def _timed(self, function: Callable[..., Any], kind: str) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            began = time.thread_time()
            try:
                return function(*given, **named)
            finally:
                self.seconds[kind] += time.thread_time() - began

        return timed


def measure_rules(name: str) -> dict[str, str]:
    """One row of the table."""
    data = load_dataset(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SoftSurvivalTree(device="cpu").fit(load_dataset(SETS[0]))  # what is compiled is compiled
        began = time.process_time()
        with Recorded() as recorded:
            SoftSurvivalTree(device="cpu").fit(data)
    whole = time.process_time() - began
    return {
        "data": name,
        "rows": str(data.n),
        "waits": str(recorded.waits),
        "MB to the host": f"{recorded.megabytes:.1f}",
        "rules sought, s": f"{recorded.seconds['sought']:.2f}",
        "leaves fitted, s": f"{recorded.seconds['fitted']:.2f}",
        "whole fit, s": f"{whole:.2f}",
    }


def rules() -> list[dict[str, str]]:
    """The rows of the table."""
    rows = []
    for name in SETS:
        rows.append(measure_rules(name))
        print("  ".join(rows[-1].values()), flush=True)
    return rows
