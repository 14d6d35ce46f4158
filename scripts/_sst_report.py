"""The two pages that `reproduce_sst.py` writes of its finished folds: `sst.md`, and `sst_training.md` beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from _machine import machine_line
from _sst_tables import (
    MEASURES,
    all_methods,
    benchmark_depths,
    beside_default,
    beside_print,
    best_starts,
    choices,
    deviations,
    distances,
    runs,
    twin_beside_preset,
    with_printed_data,
)

READINGS = (*MEASURES, "harrell_c_ties", "ibs_log")


KEYS = ["set", "variant", "seed", "fold", "method"]


def finished(path: Path) -> pd.DataFrame:
    """Lines of an earlier run; the last one of a fold that was run again."""
    lines = path.read_text().splitlines() if path.exists() else []
    frame = pd.DataFrame([json.loads(line) for line in lines])
    return frame.drop_duplicates(KEYS, keep="last", ignore_index=True) if lines else frame


def _page(parts: list[tuple[str, str]]) -> str:
    """Sections with something in them, below the machine and the date."""
    return "\n\n".join([machine_line(), *(f"## {title}\n\n{text}" for title, text in parts if text)]) + "\n"


def report(frame: pd.DataFrame) -> str:
    """Held-out rows: what was run, distances from print, then every table by set."""
    here = frame[frame["variant"] == "default"]
    first = here[here["seed"] == 0]
    parts = [
        ("What was run", runs(frame)),
        ("Means over the sets without flchain and uissurv, ours / printed", all_methods(first)),
        ("Ours less printed, with its sign: depth 2, without flchain and uissurv", distances(first)),
        ("Ours less printed, with its sign: depth 1, without flchain and uissurv", distances(first, 1)),
        ("The mean over the starts, and the start with the lowest training objective", best_starts(first)),
        ("The preset and a plain program of the paper from the same starts, Llog, depth 2", twin_beside_preset(first)),
        ("Data as the paper had them", with_printed_data(frame[frame["seed"] == 0])),
        ("What the default chose", choices(here)),
        ("The default, one leaf (single) and the others on the sets of the default", beside_default(first)),
        ("Benchmarks at depths 2 to 5, means over the sets, ours / printed", benchmark_depths(first)),
    ]
    parts += [(f"{m}, depth {d}: ours / printed", beside_print(first, m, d)) for d in (2, 1) for m in READINGS]
    return _page(parts)


def training_report(frame: pd.DataFrame) -> str:
    """Training rows, and standard deviations over folds and starts."""
    first = frame[(frame["variant"] == "default") & (frame["seed"] == 0)]
    tables: list[tuple[str, Callable[[pd.DataFrame, str, int], str]]] = [
        ("on training rows", lambda *of: beside_print(*of, part="train")),
        ("standard deviations on held-out rows", deviations),
    ]
    return _page(
        [
            (f"{measure} {name}, depth {depth}: ours / printed", table(first, measure, depth))
            for name, table in tables
            for depth in (2, 1)
            for measure in MEASURES
        ]
    )
