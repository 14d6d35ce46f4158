"""What paper `sst` prints: Tables 3 to 10 and those of Appendix D.2, from `tables/printed/sst.csv`.

Where two tables have the same figure, that with a standard deviation is kept; figures of flchain that are printed as
0.000 in Tables 7 to 9 are left out where Appendix D.2 has them, and are missing where it has not.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd

SETS = [
    "aids", "aids_death", "aids2", "churn", "credit", "dialysis", "employee", "flchain", "framingham",
    "gbsg2", "maintenance", "uissurv", "unempdur", "veterans", "whas500",
]  # fmt: skip


@cache
def printed() -> pd.DataFrame:
    """measure, part, method, depth, set, mean and sd of every printed figure."""
    table = pd.read_csv(Path(__file__).parent / "tables" / "printed" / "sst.csv")
    return table.assign(mean=table["mean"].where(table["mean"] > 0))
