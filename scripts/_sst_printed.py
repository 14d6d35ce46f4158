"""What paper `sst` prints: Tables 3 to 10 and those of Appendix D.2, from `tables/printed/sst.csv`.

Where two tables have the same figure, that with a standard deviation is kept; figures of flchain that are printed as
0.000 in Tables 7 to 9 are left out where Appendix D.2 has them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd

SETS = [
    "aids", "aids_death", "aids2", "churn", "credit", "dialysis", "employee", "flchain", "framingham",
    "gbsg2", "maintenance", "uissurv", "unempdur", "veterans", "whas500",
]  # fmt: skip

BENCHMARKS = ("SkSurv", "RPART", "CTree")


@cache
def printed() -> pd.DataFrame:
    """measure, part, method, depth, set, mean and sd of every printed figure."""
    return pd.read_csv(Path(__file__).parent / "tables" / "printed" / "sst.csv")


def printed_means(measure: str, depth: int = 2, part: str = "test") -> pd.DataFrame:
    """Sets by methods: soft trees of a depth and the benchmarks of depth 5."""
    table = printed()
    chosen = (table["measure"] == measure) & (table["part"] == part)
    chosen &= (table["depth"] == depth) & ~table["method"].isin(BENCHMARKS) | (
        (table["depth"] == 5) & table["method"].isin(BENCHMARKS)
    )
    return table[chosen].pivot_table(index="set", columns="method", values="mean")
