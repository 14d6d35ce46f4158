"""Tables of the experiments of paper `sst`, our figures beside the printed ones, from finished folds.

A frame has a line for each set, seed, fold and method, as `reproduce_sst.py` writes them. Cells "ours / printed" have
three decimals, and "-" where there is no figure.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from _machine import as_markdown
from _sst_printed import SETS, printed

MEASURES = ("harrell_c", "uno_c", "cd_auc", "ibs")
PRINTED_AS = {"loglogistic": "Llog", "exponential": "Exp", "weibull": "W", "spline_po": "PO", "spline_ph": "PH"}
"""Leaf family -> column of the printed tables."""

OF_BENCHMARK = {"tree": "SkSurv", "rpart": "RPART", "ctree": "CTree"}
"""Method here without its depth -> column of the printed tables."""

IN_R = ("rpart", "ctree")
"""Their seconds are those of another process."""

COLUMNS = ("Llog", "Llog-init", "Exp", "W", "PO", "PH", "SkSurv", "RPART", "CTree")
PRINTED_MEASURE = {"harrell_c_ties": "harrell_c", "ibs_log": "ibs"}
"""Readings that a printed measure may have."""

OTHER_DATA = ("flchain", "uissurv")
"""flchain is printed with the cause of death among its features, uissurv with a length of stay that we have not."""

BENCHMARK_DEPTH = 5


def column_of(method: str) -> tuple[str, int] | None:
    """Printed column and depth of a method; None of one that is not in the paper."""
    if method.startswith("paper:") and "(" not in method:
        _, leaf, depth, *init = method.split(":")
        return PRINTED_AS[leaf] + ("-init" if init else ""), int(depth)
    name = OF_BENCHMARK.get(method.rstrip("0123456789"))
    return (name, int(method[-1])) if name else None


def methods_at(frame: pd.DataFrame, depth: int) -> dict[str, str]:
    """Printed column -> method: soft trees of a depth, and the benchmarks of depth 5."""
    found = {m: column_of(m) for m in frame["method"].unique()}
    wanted = {at[0]: m for m, at in found.items() if at and at[1] == _depth_of(at[0], depth)}
    return {column: wanted[column] for column in COLUMNS if column in wanted}


def _depth_of(column: str, depth: int) -> int:
    return BENCHMARK_DEPTH if column in OF_BENCHMARK.values() else depth


def by_set(frame: pd.DataFrame, method: str, measure: str) -> pd.Series:
    """Means of a measure over folds, for the sets in their order."""
    lines = frame[frame["method"] == method].dropna(subset=[measure]) if measure in frame else frame[:0]
    means = lines.groupby("set")[measure].mean() if len(lines) else pd.Series(dtype=float)
    return means.reindex(SETS).dropna()


@cache
def printed_by_set(column: str, measure: str, depth: int, part: str = "test", what: str = "mean") -> pd.Series:
    """The printed figures of one column."""
    table = printed()
    chosen = (table["measure"] == PRINTED_MEASURE.get(measure, measure)) & (table["part"] == part)
    chosen &= (table["method"] == column) & (table["depth"] == _depth_of(column, depth))
    return table[chosen].set_index("set")[what].reindex(SETS).dropna()


def cell(ours: float | None, print_: float | None) -> str:
    """Our figure and the printed one."""
    return " / ".join("-" if v is None or not np.isfinite(v) else f"{v:.3f}" for v in (ours, print_))


def _columns(ours: dict[str, pd.Series], print_: dict[str, pd.Series]) -> str:
    """Sets by columns, then means over the sets that have both."""
    rows = []
    for name in SETS:
        if any(name in values for values in ours.values()):
            rows.append({"set": name} | {c: cell(ours[c].get(name), print_[c].get(name)) for c in ours})
    for label, dropped in (("mean", ()), ("mean without " + " and ".join(OTHER_DATA), OTHER_DATA)):
        both = {c: ours[c].index.intersection(print_[c].index).drop(list(dropped), errors="ignore") for c in ours}
        rows.append({"set": label} | {c: cell(ours[c][both[c]].mean(), print_[c][both[c]].mean()) for c in ours})
    return as_markdown(pd.DataFrame(rows))


def _with_dashes(table: pd.DataFrame) -> str:
    """A table with "-" where there is no figure."""
    return as_markdown(table.astype(object).where(table.notna(), "-"))


def beside_print(frame: pd.DataFrame, measure: str, depth: int, part: str = "test") -> str:
    """A measure by set: soft trees of a depth and benchmarks of depth 5 beside the printed figures."""
    name = measure if part == "test" else f"train {measure}"
    ours = {c: by_set(frame, m, name) for c, m in methods_at(frame, depth).items()}
    ours = {c: values for c, values in ours.items() if len(values)}
    return _columns(ours, {c: printed_by_set(c, measure, depth, part) for c in ours}) if ours else ""


def deviations(frame: pd.DataFrame, measure: str, depth: int) -> str:
    """Standard deviations over folds and starts on held-out rows, by set."""
    ours = {}
    for column, method in methods_at(frame, depth).items():
        values = {name: scores(lines, measure) for name, lines in frame[frame["method"] == method].groupby("set")}
        ours[column] = pd.Series({name: v.std() for name, v in values.items() if v.size > 1}, dtype=float)
    ours = {c: values for c, values in ours.items() if len(values)}
    return _columns(ours, {c: printed_by_set(c, measure, depth, what="sd") for c in ours}) if ours else ""


def scores(lines: pd.DataFrame, measure: str) -> np.ndarray:
    """Held-out scores of all starts of all folds; one for each fold where a method has one."""
    if "starts" in lines and lines["starts"].notna().any():
        return np.concatenate([np.asarray(starts[measure], dtype=float) for starts in lines["starts"].dropna()])
    return lines[measure].dropna().to_numpy(dtype=float)


def runs(frame: pd.DataFrame) -> str:
    """Methods with their sets, folds, starts and seconds."""
    rows = []
    for (method, variant, seed), lines in frame.groupby(["method", "variant", "seed"], sort=False):
        starts = [len(s["harrell_c"]) for s in lines["starts"].dropna()] if "starts" in lines else []
        few = sorted(set(lines["set"][lines["starts"].notna()][np.array(starts) < max(starts)])) if starts else []
        rows.append(
            {
                "method": method,
                "data": "ours" if variant == "default" else "as printed",
                "seed": seed,
                "sets": lines["set"].nunique(),
                "folds": len(lines),
                "starts a fold": max(starts) if starts else 1,
                "fewer starts": f"{min(starts)}: {', '.join(few)}" if few else "",
                "CPU s a fold": "-" if method[:-1] in IN_R else round(float(lines["cpu_seconds"].mean()), 2),
            }
        )
    return as_markdown(pd.DataFrame(rows))


def all_methods(frame: pd.DataFrame) -> str:
    """Means over the sets for every printed column: all readings."""
    rows = []
    for depth in (2, 1):
        for column, method in methods_at(frame, depth).items():
            if depth == 1 and column in OF_BENCHMARK.values():
                continue
            row: dict[str, object] = {"column": column, "depth": _depth_of(column, depth)}
            for measure in (*MEASURES, *PRINTED_MEASURE):
                ours, print_ = by_set(frame, method, measure), printed_by_set(column, measure, depth)
                both = ours.index.intersection(print_.index).drop(list(OTHER_DATA), errors="ignore")
                row["sets"] = len(both)
                row[measure] = cell(ours[both].mean(), print_[both].mean())
            rows.append(row)
    return as_markdown(pd.DataFrame(rows)) if rows else ""


def distances(frame: pd.DataFrame, depth: int = 2) -> str:
    """Ours less printed by set and reading, and how often it lies below; benchmarks stand with depth 2."""
    rows = []
    for column, method in methods_at(frame, depth).items():
        if depth == 1 and column in OF_BENCHMARK.values():
            continue
        for reading in ("harrell_c", "harrell_c_ties", "uno_c", "cd_auc", "ibs", "ibs_log"):
            gap = (by_set(frame, method, reading) - printed_by_set(column, reading, depth)).dropna()
            gap = gap.drop(list(OTHER_DATA), errors="ignore")
            row = {"column": column, "reading": reading, "sets": len(gap), "below print": int((gap < 0).sum())}
            row |= {"mean": f"{gap.mean():+.3f}", "mean distance": f"{gap.abs().mean():.3f}"}
            rows.append(row | {name: f"{gap[name]:+.3f}" if name in gap else "-" for name in SETS if name in gap.index})
    return _with_dashes(pd.DataFrame(rows)) if rows else ""


def best_starts(frame: pd.DataFrame) -> str:
    """Means over the starts beside the start with the lowest training objective."""
    best = [f"best {measure}" for measure in MEASURES]
    if not set(best) <= set(frame):
        return ""
    means = frame.dropna(subset=best).groupby("method", sort=False)[[*MEASURES, *best]].mean().round(4)
    return as_markdown(means.reset_index())


def twin_beside_preset(frame: pd.DataFrame, depth: int = 2) -> str:
    """Scores of the plain twin and of the preset by set, from the starts that both have."""
    preset, twin = (frame[frame["method"] == f"{kind}:loglogistic:{depth}"] for kind in ("paper", "twin"))
    if preset.empty or twin.empty:
        return ""
    pairs = preset.merge(twin, on=["set", "fold"], suffixes=("", " of twin"))
    rows: dict[str, list[list[float]]] = {}
    for line in pairs.to_dict("records"):
        many = min(len(line["starts"]["ibs"]), len(line["starts of twin"]["ibs"]))
        both = [np.mean(line[f"starts{of}"][m][:many]) for m in MEASURES for of in ("", " of twin")]
        rows.setdefault(line["set"], []).append([*both, line["cpu_seconds"], line["cpu_seconds of twin"]])
    names = [f"{who} {m}" for m in MEASURES for who in ("preset", "twin")]
    table = pd.DataFrame({s: np.mean(rows[s], axis=0)[:-2] for s in SETS if s in rows}, index=names).T
    table.loc["mean"] = table.mean()
    gap = table["preset harrell_c"] - table["twin harrell_c"]
    table.insert(0, "preset less twin, harrell_c", gap.map("{:+.4f}".format))
    return as_markdown(table.round(4).rename_axis("set").reset_index())


def choices(frame: pd.DataFrame) -> str:
    """What the default chose: folds with one leaf, with leaves shrunken to each other and by what, and its leaves."""
    lines = frame[frame["method"] == "default"]
    lines = lines.dropna(subset=["candidate"]) if len(lines) else lines
    if lines.empty:
        return ""
    shrunken = [c["shrinkage"] > 0 and n > 1 for c, n in zip(lines["candidate"], lines["leaves"], strict=True)]
    lines = lines.assign(one=lines["leaves"] == 1, shrunken=shrunken)
    rows = []
    for name, part in [*lines.groupby("set"), ("all", lines)]:
        counted = {"folds": len(part), "one leaf": int(part["one"].sum()), "shrunken": int(part["shrunken"].sum())}
        penalties = sorted({c["shrinkage"] for c in part.loc[part["shrunken"], "candidate"]})
        told = {"penalties": ", ".join(f"{p:g}" for p in penalties) or "-"}
        rows.append({"set": name} | counted | told | {"mean leaves": round(float(part["leaves"].mean()), 1)})
    return as_markdown(pd.DataFrame(rows))


def beside_default(frame: pd.DataFrame) -> str:
    """The default and every method that has its sets: means over these sets."""
    sets = sorted(set(frame.loc[frame["method"] == "default", "set"]))
    if not sets:
        return ""
    folds = frame[frame["set"].isin(sets)].groupby("method")["fold"].size()
    whole = folds.index[folds == folds["default"]]
    lines = frame[frame["set"].isin(sets) & frame["method"].isin(whole)]
    means = lines.groupby(["method", "set"])[list(MEASURES)].mean().groupby("method").mean()
    means.insert(0, "sets", len(sets))
    return _with_dashes(means.sort_values("harrell_c", ascending=False).round(4).reset_index())


def with_printed_data(frame: pd.DataFrame) -> str:
    """Runs on data as the paper had them, beside our data and print."""
    rows = []
    for (name, method), lines in frame[frame["variant"] == "paper"].groupby(["set", "method"], sort=False):
        ours = frame[(frame["variant"] == "default") & (frame["set"] == name) & (frame["method"] == method)]
        column = column_of(method)
        for measure in MEASURES:
            told = printed_by_set(column[0], measure, column[1]).get(name) if column else None
            means = {"our data": ours[measure].mean(), "data as printed": lines[measure].mean(), "printed": told}
            rows.append({"set": name, "method": method, "measure": measure} | means)
    return _with_dashes(pd.DataFrame(rows).round(4)) if rows else ""


def benchmark_depths(frame: pd.DataFrame) -> str:
    """The benchmarks at depths 2 to 5, means over the sets."""
    rows, known = [], printed()
    for measure in MEASURES:
        for part in ("test", "train"):
            for kind, column in OF_BENCHMARK.items():
                row = {"measure": measure, "rows": part, "method": column}
                name = measure if part == "test" else f"train {measure}"
                for depth in (2, 3, 4, 5):
                    chosen = (known["measure"] == measure) & (known["part"] == part) & (known["depth"] == depth)
                    print_ = known[chosen & (known["method"] == column)].set_index("set")["mean"]
                    ours = by_set(frame, f"{kind}{depth}", name)
                    shared = ours.index if len(ours) else print_.index
                    row[str(depth)] = cell(ours.mean(), print_.reindex(shared).mean())
                rows.append(row)
    return as_markdown(pd.DataFrame(rows))
