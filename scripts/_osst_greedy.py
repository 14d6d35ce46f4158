"""Run times of CTree, RPART and scikit-survival (Tables 3 to 5 of the OSST paper), printed and here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _osst_models import load, sksurv_tree
from _osst_r import METHODS, r_trees, why_not
from _results import Results

PRINTED = Path(__file__).parent / "tables" / "printed" / "osst_times.csv"
"""Means and 95 % intervals, as printed."""

DEPTHS = range(2, 7)


def greedy(options: Any, results: Results) -> list[dict]:
    """Appendix H of the other methods: CPU seconds by depth, RPART's mean over twelve coefficients."""
    table = []
    for name, lines in pd.read_csv(PRINTED).groupby("set", sort=False):
        if options.sets and name not in options.sets:
            continue
        data = load(options.data, str(name))
        of_r = [] if why_not() else results.get(f"R times {name}", lambda d=data: r_trees(d, d, DEPTHS))["trees"]
        for printed in lines.to_dict("records"):
            depth = printed["depth"]
            row = {"set": name, "depth": depth}
            for method in () if why_not() else METHODS:
                taken = [one["seconds"] for one in of_r if (one["method"], one["depth"]) == (method, depth)]
                row |= {f"{method}, printed (s)": printed[method], f"{method}, here (s)": f"{np.mean(taken):.3f}"}
            case = results.get(f"sksurv times {name} {depth}", lambda d=data, k=depth: sksurv_tree(d, d, k, 2**k))
            row |= {"SkSurv, printed (s)": printed["SkSurv"], "SkSurv, here (s)": f"{case['seconds']:.3f}"}
            table.append(row)
    return table
