"""Numbers and settings that the OSST paper (Zhang et al. 2024) prints."""

from __future__ import annotations

# Seconds of OSST by depth 2 to 6, means over twelve lambdas and 95 % intervals: Tables 3 to 5. Table 3 has the same
# lines for aids and aids_death, Table 1 has not.
PRINTED_TIMES = {
    "aids": ("0.011 ± 0.000", "0.083 ± 0.003", "0.457 ± 0.056", "2.215 ± 0.533", "8.650 ± 2.530"),
    "aids_death": ("0.011 ± 0.000", "0.083 ± 0.003", "0.457 ± 0.056", "2.215 ± 0.533", "8.650 ± 2.530"),
    "gbsg2": ("0.003 ± 0.000", "0.019 ± 0.001", "0.078 ± 0.006", "0.264 ± 0.026", "0.667 ± 0.077"),
    "maintenance": ("0.033 ± 0.000", "0.141 ± 0.022", "0.390 ± 0.090", "0.950 ± 0.320", "2.400 ± 1.110"),
    "veterans": ("0.007 ± 0.001", "0.024 ± 0.001", "0.095 ± 0.009", "0.380 ± 0.080", "1.270 ± 0.380"),
    "whas500": ("0.006 ± 0.000", "0.007 ± 0.001", "0.690 ± 0.020", "6.040 ± 0.470", "37.01 ± 4.530"),
    "uissurv": ("0.006 ± 0.000", "0.058 ± 0.001", "0.410 ± 0.010", "2.680 ± 0.140", "13.88 ± 1.200"),
    "churn": ("0.138 ± 0.000", "0.880 ± 0.070", "11.67 ± 2.360", "125.2 ± 35.53", "1197 ± 410.5"),
    "credit": ("0.056 ± 0.010", "1.473 ± 0.482", "33.06 ± 12.90", "610.9 ± 272.3", "930.8 ± 398.4"),
    "employee": ("0.226 ± 0.018", "2.090 ± 0.110", "16.20 ± 1.370", "101.8 ± 15.36", "538.3 ± 125.7"),
    "airfoil": ("38.12 ± 1.540", "32.00 ± 1.250", "31.90 ± 2.560", "31.97 ± 1.533", "31.98 ± 2.510"),
    "insurance": ("0.083 ± 0.010", "0.083 ± 0.010", "0.084 ± 0.010", "0.084 ± 0.010", "0.084 ± 0.010"),
    "real-estate": ("0.824 ± 0.005", "100.3 ± 13.92", "285.3 ± 18.61", "290.4 ± 16.42", "289.4 ± 36.42"),
    "sync": ("1.920 ± 0.020", "2.120 ± 0.030", "3.788 ± 0.056", "3.804 ± 0.033", "3.785 ± 0.053"),
    "servo": ("0.075 ± 0.001", "6.100 ± 0.360", "227.4 ± 45.10", "428.4 ± 85.30", "2192 ± 586.0"),
    "flchain": ("0.481 ± 0.022", "0.336 ± 0.240", "0.419 ± 0.110", "1.264 ± 0.510", "7.024 ± 3.230"),
}
# Means and standard deviations over 60 trials: Table 1.
PRINTED_SUMMARY = {
    "aids": "2.28 ± 3.66", "aids_death": "2.05 ± 3.82", "maintenance": "0.78 ± 1.12", "uissurv": "3.41 ± 2.86",
    "veterans": "0.35 ± 0.53", "whas500": "8.76 ± 14.7", "gbsg2": "0.20 ± 0.25", "insurance": "0.08 ± 0.02",
    "sync": "2.65 ± 1.93",
}  # fmt: skip
FOREST = {"airfoil": 2, "insurance": 2, "real-estate": 2, "sync": 2, "servo": 2, "flchain": 2} | {
    "churn": 5, "credit": 5, "employee": 5,
}  # fmt: skip
"""Depth from which the printed seconds are those with the bound of a forest (Appendix H)."""

# Trees whose training IBS ratio (%) is printed: Figures 5 and 6, 34 to 38.
PRINTED_TREES = (
    ("Figure 5", "churn", "OSST", 7, "48.68"),
    ("Figures 6, 34", "veterans", "OSST", 8, "32.83"),
    ("Figure 35", "veterans", "RPART", 10, "27.95"),
    ("Figure 36", "maintenance", "OSST", 4, "73.25"),
    ("Figure 37", "maintenance", "CTree", 4, "52.26"),
    ("Figure 38", "maintenance", "SkSurv", 4, "71.05"),
)
# Training and test IBS ratio, Tables 6 and 7, with the printed settings.
PRINTED_MODELS = {
    "churn": {"tree": (0.602, 0.470), "cox": (0.571, 0.495), "forest": (0.533, 0.398), "boosting": (0.677, 0.561)},
    "credit": {"tree": (0.199, 0.170), "cox": (0.323, 0.135), "forest": (0.221, 0.154), "boosting": (0.309, 0.209)},
    "employee": {"tree": (0.691, 0.634), "cox": (0.441, 0.376), "forest": (0.676, 0.616), "boosting": (0.784, 0.625)},
    "maintenance": {
        "tree": (0.985, 0.983),
        "cox": (0.901, 0.898),
        "forest": (0.565, 0.545),
        "boosting": (0.880, 0.866),
    },
    "servo": {"tree": (0.544, 0.360), "cox": (0.624, 0.487), "forest": (0.360, 0.260), "boosting": (0.803, 0.499)},
}
SETTINGS = {  # tree: (complexity, depth); cox: ridge; forest and boosting: features, estimators, depth
    "churn": {"tree": (0.001, 5), "cox": 1.0, "forest": ("sqrt", 200, 9), "boosting": ("log2", 500, 3)},
    "credit": {"tree": (0.0025, 5), "cox": 1.0, "forest": ("sqrt", 100, 5), "boosting": ("sqrt", 100, 3)},
    "employee": {"tree": (0.0005, 5), "cox": 5.0, "forest": ("log2", 50, 8), "boosting": ("log2", 500, 12)},
    "maintenance": {"tree": (0.0001, 5), "cox": 1.0, "forest": ("log2", 50, 3), "boosting": ("log2", 500, 3)},
    "servo": {"tree": (0.01, 4), "cox": 1.0, "forest": ("log2", 500, 3), "boosting": ("log2", 200, 6)},
}
GUESSED = {"churn": (6, 0.0025), "employee": (6, 0.01), "servo": (5, 0.01), "sync": (5, 0.01)}
