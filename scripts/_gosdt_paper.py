"""Sets and printed figures of the GOSDT paper (Lin et al. 2020).

The folder of the sets is $SOFTSURV_DATA/gosdt: `experiments/datasets` of the repository of the paper,
Jimmy-Lin/GeneralizedOptimalSparseDecisionTrees, commit f427205. FourClass and balance scale are not there.
"""

from __future__ import annotations

import _tasks
import numpy as np
import pandas as pd

# Files, and the rows and 0/1 columns that Table 2 prints. The print counts the head of some files as a row, and every
# value of a continuous feature as a column, one more than it has cuts: for iris 123 = 119 + 4.
SETS: dict[str, tuple[str, int, int]] = {
    "monk 1": ("monk_1/data.csv", 124, 11),
    "monk 2": ("monk_2/data.csv", 169, 11),
    "monk 3": ("monk_3/data.csv", 122, 11),
    "car evaluation": ("car_evaluation/data.csv", 1729, 15),
    "tic-tac-toe": ("tic-tac-toe/tic-tac-toe.csv", 958, 18),
    "iris-setosa": ("iris/setosa.csv", 151, 123),
    "iris-versicolor": ("iris/versicolor.csv", 151, 123),
    "iris-virginica": ("iris/virginica.csv", 151, 123),
    "bar-7": ("coupon/bar-7.csv", 1913, 14),
    "COMPAS": ("compas/processed.csv", 12382, 647),
    "COMPAS-2016": ("compas/compas-2016.csv", 5020, 85),
    "COMPAS-binary": ("compas/binned.csv", 6907, 12),
    "FICO": ("fico/data.csv", 1000, 1407),
    "FICO-binary": ("fico/fico-binary.csv", 10459, 17),
}

OPTIMALITY = (
    "bar-7", "tic-tac-toe", "car evaluation", "COMPAS-binary", "FICO-binary", "monk 1", "monk 2", "monk 3"
)  # fmt: skip
"""Section I.8, Figure 18."""

SCALABILITY = ("bar-7", "COMPAS-2016", "COMPAS", "FICO")
"""Section I.7, Figures 14 to 17."""

# Figures 19 to 21: training and test accuracy (%) of the drawn trees by set and leaves.
PRINTED_TREES: dict[tuple[str, int], dict[str, tuple[float, float]]] = {
    ("monk 1", 8): {"BinOCT": (90.9, 84.0), "GOSDT": (100.0, 100.0)},
    ("monk 2", 7): {"DL8.5": (76.3, 70.6), "GOSDT": (79.3, 73.5)},
    ("tic-tac-toe", 16): {"BinOCT": (82.4, 34.4), "DL8.5": (86.9, 61.5), "GOSDT": (90.9, 70.8)},
}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """0/1 columns (N, B) and class codes (N,): a column between any two adjacent values of a feature.

    The paper leaves rows with missing values out, but its numbers of rows and columns of COMPAS hold them. They are
    kept, below every cut.
    """
    file = _tasks.folder_of("gosdt") / SETS[name][0]
    table = pd.read_csv(file, sep=None, engine="python")
    y = np.unique(table.iloc[:, -1], return_inverse=True)[1]
    columns = [between(table[column].to_numpy()) for column in table.columns[:-1]]
    return np.hstack(columns), y


def between(values: np.ndarray) -> np.ndarray:
    """Whether each value is above each distinct value but the last, (N, V - 1); not where it is missing."""
    known = np.unique(values[~pd.isna(values)])
    return (values[:, None] > known[None, :-1]).astype(int)
