"""Tables of bench_survset.py: means over the sets, sets one by one, and how well known truths are found."""

from __future__ import annotations

import pandas as pd
from _machine import as_markdown, machine_line

MEASURES = ("harrell_c", "uno_c", "ibs")
DIFFERENCE = 0.02
"""Two sides of a split differ where survival does by this much for some training row at some time."""

INTRO = f"""# Our trees beside other models, on real data and on known truths

Made by `scripts/bench_survset.py`, which says what the models, the collections and the truths are. Five stratified
folds; `harrell_c` higher, `ibs` lower is better. A model's figures are means over the sets of which it has all folds;
`sets` and `folds` count them.

- `is a tree`: share of folds with at least two leaves, where the two sides of every split differ in survival by
  {DIFFERENCE:g} for some training row at some time. That is asked of our trees alone.
- `median terms`: raw features in a split, median over folds of the median over splits.
- `printed rule holds`: share of the folds with a split in which the printed text, read by an evaluator of its own,
  sends every row where `apply` does.
- `CPU s`: seconds of a fit, inner validation included. Folds shared the cores with other work.
"""

N_FOLDS = 5
TITLES = {
    "new": "SurvSet's 15",
    "paper": "The 15 sets of paper `sst`",
    "development": "Development sets",
    "large": "Large sets",
    "rare": "Rare events, drawn from the large sets",
    "genes": "Genes",
    "genes_development": "Genes, development",
    "simulated": "Known truths",
}
NOISE = "noise"


def summary(frame: pd.DataFrame) -> str:
    """All tables of the results, as Markdown."""
    parts = [INTRO, machine_line(), ""]
    frame = frame.assign(is_tree=is_tree(frame), is_stump=frame["n_leaves"] == 1)
    for collection in (name for name in TITLES if name != "simulated"):
        lines = frame[frame["collection"] == collection]
        if len(lines):
            parts += real_sets(TITLES[collection], lines)
    lines = frame[frame["collection"] == "simulated"]
    if len(lines):
        parts += known_truths(lines)
    return "\n".join(parts).rstrip() + "\n"


def is_tree(frame: pd.DataFrame) -> pd.Series:
    """At least two leaves, and no split whose sides are alike (not known of a peer: not asked of it)."""
    difference = frame["difference"].astype(float)
    return (frame["n_leaves"] >= 2) & ~(difference < DIFFERENCE)


def real_sets(title: str, lines: pd.DataFrame) -> list[str]:
    """Means by model, then measures set by set."""
    lines = complete(lines)
    if lines.empty:
        return []
    parts = [f"## {title}: means over the sets", "", as_markdown(means(lines)), ""]
    common = common_sets(lines)
    if 0 < len(common) < lines["set"].nunique():
        shared = means(lines[lines["set"].isin(common)])
        parts += [f"Over the {len(common)} sets that every model has:", "", as_markdown(shared), ""]
    for measure, shown in (("harrell_c", 4), ("ibs", 4), ("n_leaves", 1), ("cpu_seconds", 2)):
        table = lines.pivot_table(index="set", columns="model", values=measure, aggfunc="mean", sort=False)
        if table.empty:
            continue
        parts += [f"### {title}: {measure}", "", _rounded(table, shown), ""]
    return parts


def complete(lines: pd.DataFrame) -> pd.DataFrame:
    """Lines of the sets and seeds of which a model has all folds."""
    return lines[lines.groupby(["model", "set", "seed"])["fold"].transform("nunique") == N_FOLDS]


def common_sets(lines: pd.DataFrame) -> set[str]:
    """Sets that every model has."""
    return set.intersection(*(set(part) for _, part in lines.groupby("model")["set"]))


def means(lines: pd.DataFrame) -> pd.DataFrame:
    """One row for each model: measures are means of the sets' means, so that every set counts once."""
    rows = []
    for model, part in lines.groupby("model", sort=False):
        by_set = part.groupby("set")[list(MEASURES)].mean().mean()
        row = {"model": model, "sets": part["set"].nunique(), "folds": len(part)}
        row |= {measure: round(value, 4) for measure, value in by_set.items()}
        rows.append(row | _shape(part) | _costs(part))
    return pd.DataFrame(rows)


def _shape(part: pd.DataFrame) -> dict[str, object]:
    """What the folds' trees look like; nothing for a model that is no tree."""
    if part["n_leaves"].isna().all():
        return {"median leaves": "", "is a tree": "", "median terms": "", "printed rule holds": ""}
    printed = part.loc[part["n_leaves"] >= 2, "printed_rule"].dropna()
    return {
        "median leaves": part["n_leaves"].median(),
        "is a tree": f"{part['is_tree'].mean():.0%}",
        "median terms": part["terms"].astype(float).median() if part["terms"].notna().any() else "",
        "printed rule holds": f"{printed.astype(bool).mean():.0%}" if len(printed) else "",
    }


def _costs(part: pd.DataFrame) -> dict[str, float]:
    """CPU seconds of a fit: mean, and that of the slowest set."""
    seconds = part.groupby("set")["cpu_seconds"].mean()
    return {"CPU s": round(seconds.mean(), 2), "CPU s, slowest set": round(seconds.max(), 1)}


def known_truths(lines: pd.DataFrame) -> list[str]:
    """Adjusted Rand index and number of leaves by truth and size; for noise the share of single leaves."""
    truths = lines[(lines["truth"] != NOISE) & lines["ari"].notna()]
    parts = []
    for measure, title in (
        ("ari", "adjusted Rand index of the leaves"),
        ("n_leaves", "number of leaves"),
        ("harrell_c", "harrell_c"),
    ):
        source = lines[lines["truth"] != NOISE] if measure == "harrell_c" else truths
        parts += _by_truth(f"## {TITLES['simulated']}: {title}", source, measure)
    noise = lines[(lines["truth"] == NOISE) & lines["ari"].notna()]
    return parts + _by_truth("## Pure noise: share of single leaves", noise, "is_stump")


def _by_truth(title: str, lines: pd.DataFrame, measure: str) -> list[str]:
    """A table of means, models in rows; with the least number of repeats behind a figure."""
    if lines.empty:
        return []
    case = lines["truth"] + " " + lines["n"].astype(int).astype(str)
    values = lines.assign(value=lines[measure].astype(float), case=case)
    table = values.pivot_table(index="model", columns="case", values="value", aggfunc="mean", sort=False)
    count = values.groupby(["model", "case"], sort=False)["value"].size().groupby("model").min()
    table.insert(0, "repeats", count.reindex(table.index))
    return [title, "", _rounded(table, 3), ""]


def _rounded(table: pd.DataFrame, digits: int) -> str:
    """A table of numbers as Markdown, blank where there is none."""
    rounded = table.round(digits).astype(object)
    return as_markdown(rounded.where(table.notna(), "").reset_index())
