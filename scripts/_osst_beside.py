"""Our trees beside scikit-survival's, CTree and RPART in the OSST experiments (Figures 1, 7 to 19, 34 to 38)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _osst_models import MIN_ROWS, Data, load, our_tree, sksurv_tree
from _osst_printed import PRINTED_TREES
from _osst_r import METHODS, at_most, r_trees, why_not
from _osst_whole import FOLD_SETS, complexities, ended, five_folds, medians, whole
from _results import Results

from softsurv.exact.brier.solve import solve_ibs

FRONTIER_SETS = ("aids_death", "uissurv", "veterans", "aids", "gbsg2", "churn", "maintenance", "whas500")
"""Figure 1, then the other sets of Appendix E."""

FIGURE_1_DEPTH = 5
DEPTHS = range(2, 10)
"""Of Appendix E."""

FOLD_DEPTHS = range(2, 6)
MOST_LEAVES = 30
"""Larger trees are not drawn in the paper."""

SAME = 1e-6
"""Ratios closer than this count as equal."""

Trees = list[dict[str, Any]]


def of_r(results: Results, key: str, train: Data, test: Data, depths: range, least_rows: int = MIN_ROWS) -> Trees:
    """The trees of R, none where there is no R."""
    if why_not():
        return []
    rows_asked = "" if least_rows == MIN_ROWS else f" rows {least_rows}"
    return results.get(f"R {key}{rows_asked}", lambda: r_trees(train, test, depths, least_rows))["trees"]


def here() -> tuple[str, ...]:
    """The methods of R, none where there is no R."""
    return () if why_not() else METHODS


def drawn(trees: Trees) -> Trees:
    """Without single leaves and the trees that are too large to be drawn."""
    return [one for one in trees if 1 < one["leaves"] <= MOST_LEAVES]


def shown(tree: dict[str, Any], part: str = "train") -> str:
    """Ratio and leaves."""
    return f"{tree[part]:.4f} ({tree['leaves']})"


def frontier(options: Any, results: Results) -> list[dict]:
    """Figure 1: training ratio against leaves, depth 5; the others with at most as many leaves as ours."""
    table = []
    for name in options.sets or FRONTIER_SETS:
        data = load(options.data, name)
        peers = [one for one in of_r(results, name, data, data, DEPTHS) if one["depth"] <= FIGURE_1_DEPTH]
        seen = set()
        for c, ours in zip(complexities(options), whole(options, results, name, FIGURE_1_DEPTH), strict=True):
            if not drawn([ours]) or ours["leaves"] in seen:
                continue
            seen.add(ours["leaves"])
            row = {"set": name, "lambda": c, "leaves": ours["leaves"], "ours": f"{ours['train']:.4f}"}
            row |= {"status": ours["status"], "gap": f"{ours['gap']:.4f}"}
            row["scikit-survival"] = shown(sksurv_tree(data, data, FIGURE_1_DEPTH, ours["leaves"]))
            for method in here():
                row[method] = shown(at_most(peers, method, ours["leaves"]))
            table.append(row)
    return table


def optimality(options: Any, results: Results) -> list[dict]:
    """Appendix E, Figures 7 to 14: every tree of the others beside ours of at most as many leaves, depths 2 to 9."""
    table = []
    for name in options.sets or FRONTIER_SETS:
        data = load(options.data, name)
        peers = of_r(results, name, data, data, DEPTHS)
        for depth in list(DEPTHS)[: options.depths]:
            ours = results.get(
                f"sizes {name} {depth} {options.time_limit:g}",
                lambda data=data, depth=depth: every_size(data, depth, options),
            )
            row: dict[str, Any] = {"set": name, "depth": depth, "ours: status": ours["status"]}
            row |= {"ours (s)": f"{ours['seconds']:.2f}", "ours: leaves and ratio": largest(ours["ratios"])}
            for method in ("scikit-survival", *here()):
                theirs = [sksurv_tree(data, data, depth, 2**depth)] if method == "scikit-survival" else []
                theirs += [one for one in peers if (one["method"], one["depth"]) == (method, depth)]
                row |= beside(method, ours["ratios"], list({one["leaves"]: one for one in drawn(theirs)}.values()))
            table.append(row)
    return table


def every_size(data: Data, depth: int, options: Any) -> dict[str, Any]:
    """Training ratios of our trees of at most 1, 2, ... leaves, all of them from one search."""
    begin = time.process_time()
    solution = solve_ibs(
        *data, complexity=0.0, max_depth=depth, max_leaves=MOST_LEAVES, min_samples_leaf=MIN_ROWS,
        time_limit=options.time_limit,
    )  # fmt: skip
    seconds = time.process_time() - begin
    losses = np.array([loss for loss, _ in solution.path])
    return {"seconds": seconds, "status": solution.report.status.value, "ratios": list(1.0 - losses / losses[0])}


def largest(ratios: list[float]) -> str:
    """Leaves and ratio of the largest tree."""
    return f"{len(ratios)}: {ratios[-1]:.4f}"


def beside(method: str, ours: list[float], theirs: Trees) -> dict[str, Any]:
    """How far ours of at most as many leaves leads the trees of one method at one depth: the least and the median."""
    leads = np.array([ours[min(one["leaves"], len(ours)) - 1] - one["train"] for one in theirs])
    kept = int((leads > -SAME).sum())
    spread = f"{signed(leads.min())}, {signed(np.median(leads))}" if len(leads) else ""
    return {f"{method}: ours not behind": f"{kept} of {len(leads)}", f"{method}: our lead, least and median": spread}


def signed(value: float) -> str:
    """Four places and a sign, that of zero positive."""
    return f"{round(value, 4) + 0.0:+.4f}"


def trees(options: Any, results: Results) -> list[dict]:
    """Printed trees: the training ratio (%) of ours, or of the same method, with as many leaves, by depth."""
    table = []
    for figure, name, method, leaves, printed in PRINTED_TREES:
        if options.sets and name not in options.sets:
            continue
        data = load(options.data, name)
        row = {"figure": figure, "set": name, "of": method, "leaves": leaves, "printed (%)": printed}
        labels = dict.fromkeys((MIN_ROWS, 1), "")
        for least in labels:
            if method == "OSST":
                labels[least] = by_depth({d: whole(options, results, name, d, least) for d in range(2, 6)}, leaves)
            elif method in here():
                peers = [one for one in of_r(results, name, data, data, DEPTHS, least) if one["method"] == method]
                labels[least] = by_depth({d: [one for one in peers if one["depth"] == d] for d in DEPTHS}, leaves)
        if method == "SkSurv":  # as many leaves as the depth allows, as the paper has it
            labels[MIN_ROWS] = f"{100 * sksurv_tree(data, data, int(np.log2(leaves)), leaves)['train']:.2f}"
        table.append(row | {f"at least {least} rows a leaf (%)": found for least, found in labels.items()})
    return table


def by_depth(found: dict[int, Trees], leaves: int) -> str:
    """The best ratio (%) of the trees with so many leaves, by depth."""
    best = {d: max((t["train"] for t in some if t["leaves"] == leaves), default=None) for d, some in found.items()}
    return ", ".join(f"depth {d}: {100 * v:.2f}" for d, v in best.items() if v is not None)


def folds(options: Any, results: Results) -> list[dict]:
    """Appendix F: five folds; medians by depth, the others' trees of at most as many leaves that fit best."""
    table: list[dict] = []
    for name in options.sets or FOLD_SETS:
        parts = list(enumerate(five_folds(load(options.data, name))))
        peers = [of_r(results, f"{name} fold {fold}", a, b, FOLD_DEPTHS) for fold, (a, b) in parts]
        for depth in list(FOLD_DEPTHS)[: options.depths]:
            for c in complexities(options):
                cases = [
                    results.get(
                        f"folds {name} {depth} {c:g} {fold} {options.time_limit:g}",
                        lambda a=a, b=b, depth=depth, c=c: two_trees(a, b, depth, c, options.time_limit),
                    )
                    for fold, (a, b) in parts
                ]
                middle = medians(cases, ("leaves", "train", "test", "sk"))
                if not 1 < middle["leaves"] <= MOST_LEAVES:
                    continue
                row = {"set": name, "depth": depth, "leaves": round(middle["leaves"]), "lambda": f"{c:g}"}
                row |= {f"ours, {part}": f"{middle[part]:.4f}" for part in ("train", "test")}
                row["scikit-survival, test"] = f"{middle['sk']:.4f}"
                for method in here():
                    fitting = [
                        at_most([one for one in some if one["depth"] <= depth], method, case["leaves"])
                        for some, case in zip(peers, cases, strict=True)
                    ]
                    row[f"{method}, test"] = f"{medians(fitting, ('test',))['test']:.4f}"
                add(table, row | {"ended": ended(cases)})
    return table


def add(table: list[dict], row: dict) -> None:
    """Append a row; where only lambda differs from the last one, name its lambda there."""
    if table and {**table[-1], "lambda": ""} == {**row, "lambda": ""}:
        table[-1]["lambda"] += f", {row['lambda']}"
    else:
        table.append(row)


def two_trees(train: Data, test: Data, depth: int, complexity: float, limit: float) -> dict:
    """Ours, and scikit-survival's with as many leaves."""
    ours = our_tree(train, test, depth, complexity, limit)
    return ours | {"sk": sksurv_tree(train, test, depth, max(ours["leaves"], 2))["test"]}
