"""The tables that `reproduce_sst.py` writes of its finished folds, beside what paper `sst` prints."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line
from _sst_printed import BENCHMARKS, SETS, printed, printed_means

MEASURES = ("harrell_c", "uno_c", "cd_auc", "ibs")
PRINTED_AS = {"loglogistic": "Llog", "exponential": "Exp", "weibull": "W", "spline_po": "PO", "spline_ph": "PH"}
"""Leaf family -> column of the printed tables."""

READINGS = (("harrell_c", "harrell_c"), ("harrell_c_ties", "harrell_c"), ("ibs", "ibs"), ("ibs_log", "ibs"))
"""Our measure, and the printed one that it may be."""

WITHOUT = "flchain"
"""Printed with the cause of death among its features."""


def finished(path: Path) -> pd.DataFrame:
    """Lines of an earlier run."""
    lines = path.read_text().splitlines() if path.exists() else []
    return pd.DataFrame([json.loads(line) for line in lines])


def column_of(method: str) -> tuple[str, int]:
    """Printed column and depth of one of the paper's methods."""
    _, leaf, depth, *init = method.split(" ")[0].split(":")
    return PRINTED_AS[leaf] + ("-init" if init else ""), int(depth)


def by_set(frame: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Means of a measure over folds, sets by methods."""
    return frame.pivot_table(index="set", columns="method", values=measure, aggfunc="mean")


def part_table(frame: pd.DataFrame, measure: str, depth: int, part: str = "test") -> str:
    """Our soft trees of a depth beside the printed ones."""
    ours = [m for m in frame["method"].unique() if m.startswith("paper:") and column_of(m)[1] == depth]
    name = measure if part == "test" else f"train {measure}"
    if not ours or name not in frame:
        return ""
    table = by_set(frame[frame["method"].isin(ours)].dropna(subset=[name]), name)
    table = table.join(printed_means(measure, depth, part).add_suffix(" (printed)"))
    table.loc["mean"] = table.mean()
    return as_markdown(table.round(4).reset_index())


def deviations(frame: pd.DataFrame, depth: int) -> str:
    """Standard deviations over folds and starts beside the printed ones (depth 1 alone has them)."""
    rows, known = [], printed().dropna(subset=["sd"])
    for (method, name), lines in frame.dropna(subset=["starts"]).groupby(["method", "set"], sort=False):
        column, at = column_of(method)
        if at != depth:
            continue
        row = {"method": method, "set": name, "n": sum(len(line["harrell_c"]) for line in lines["starts"])}
        for measure in MEASURES:
            row[measure] = np.std(np.concatenate([line[measure] for line in lines["starts"]])).round(4)
            there = known[(known["part"] == "test") & (known["method"] == column) & (known["depth"] == depth)]
            there = there[(there["set"] == name) & (there["measure"] == measure)]
            row[f"{measure} (printed)"] = float(there["sd"].iloc[0]) if len(there) else np.nan
        rows.append(row)
    return as_markdown(pd.DataFrame(rows)) if rows else ""


def distances(frame: pd.DataFrame) -> str:
    """Ours less printed by set and reading, for depth 2, and how often it lies below."""
    rows = []
    for method in frame["method"].unique():
        if not method.startswith("paper:") or column_of(method)[1] != 2:
            continue
        for reading, measure in READINGS:
            gap = by_set(frame[frame["method"] == method], reading)[method]
            gap = (gap - printed_means(measure)[column_of(method)[0]]).dropna().drop(WITHOUT, errors="ignore")
            row = {"method": method, "reading": reading, "sets": len(gap), "below print": int((gap < 0).sum())}
            rows.append(row | {"mean": gap.mean(), "mean distance": gap.abs().mean()} | gap.to_dict())
    return as_markdown(pd.DataFrame(rows).round(3)) if rows else ""


def choices(frame: pd.DataFrame) -> str:
    """What the default chose: folds with one leaf, with shrunken leaves, and the leaves it has."""
    lines = frame[frame["method"] == "default"].dropna(subset=["candidate"])
    if lines.empty:
        return ""
    rows = [
        {
            "set": name,
            "folds": len(part),
            "one leaf": int((part["leaves"] == 1).sum()),
            "shrunken": int(
                sum(c["shrinkage"] > 0 and n > 1 for c, n in zip(part["candidate"], part["leaves"], strict=True))
            ),
            "mean leaves": round(float(part["leaves"].mean()), 1),
        }
        for name, part in lines.groupby("set")
    ]
    table = pd.DataFrame(rows)
    total = table[["folds", "one leaf", "shrunken"]].sum().to_dict()
    return as_markdown(pd.concat([table, pd.DataFrame([{"set": "all"} | total])]))


def depths_of_benchmarks(frame: pd.DataFrame) -> str:
    """The printed benchmarks at depths 2 to 5 beside scikit-survival's tree here, means over the sets."""
    rows, known = [], printed()
    for measure in MEASURES:
        for part in ("test", "train"):
            for method in BENCHMARKS:
                chosen = known[(known["measure"] == measure) & (known["part"] == part) & (known["method"] == method)]
                if len(chosen):
                    means = chosen.groupby("depth")["mean"].mean().round(3).to_dict()
                    rows.append({"measure": measure, "part": part, "method": f"{method} (printed)"} | means)
        ours = {d: frame.loc[frame["method"] == f"tree{d}", measure].mean() for d in (2, 3, 4, 5)}
        rows.append(
            {"measure": measure, "part": "test", "method": "SkSurv here"} | {d: round(v, 3) for d, v in ours.items()}
        )
    return as_markdown(pd.DataFrame(rows))


def report(frame: pd.DataFrame) -> str:
    """Means by set and method beside the printed ones, then what stands behind them."""
    frame = frame.copy()
    if "starts" not in frame:
        frame["starts"] = np.nan
    here = frame[(frame["variant"] == "default") & (frame["seed"] == 0)]
    frame["method"] = np.where(
        frame["variant"] == "default", frame["method"], frame["method"] + " (" + frame["variant"] + " data)"
    )
    parts = [machine_line()]

    def section(title: str, text: str) -> None:
        if text:
            parts.append(f"## {title}\n\n{text}")

    others = frame[~frame["method"].str.startswith("paper:")]
    for measure in (*MEASURES, "harrell_c_ties", "ibs_log", "cpu_seconds"):
        table = by_set(others, measure)
        table.loc["mean"] = table.mean()
        section(f"{measure}: default design and benchmarks", as_markdown(table.round(4).reset_index()))
    for depth in (2, 1):
        for measure in MEASURES:
            section(f"{measure}: the paper's trees, depth {depth}, held-out rows", part_table(here, measure, depth))
            section(f"{measure}: the same, training rows", part_table(here, measure, depth, "train"))
        section(f"Standard deviations over folds and starts, depth {depth}", deviations(here, depth))
    best = [f"best {measure}" for measure in MEASURES]
    if set(best) <= set(here):
        means = here.dropna(subset=best).groupby("method")[[*MEASURES, *best]].mean().round(4)
        section(
            "Means over the starts, and the start with the lowest training objective", as_markdown(means.reset_index())
        )
    section("Ours less printed, with its sign: depth 2, without flchain", distances(here))
    section("What the default chose", choices(frame))
    section("Benchmarks at depths 2 to 5, means over the sets", depths_of_benchmarks(here))
    sets = frame.groupby(["method", "seed"])["set"].nunique().rename("sets")
    by_seed = frame.groupby(["method", "seed"])[list(MEASURES)].mean().round(4).join(sets)
    section(f"Means over the sets, of {len(SETS)}, by seed", as_markdown(by_seed.reset_index()))
    return "\n\n".join(parts) + "\n"
