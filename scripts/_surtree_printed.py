"""What the SurTree paper (Huisman et al. 2024) prints, and what its authors' runs hold beyond the print."""

from __future__ import annotations

from typing import NamedTuple


class Printed(NamedTuple):
    """A line of Table 1: rows, share censored (%), numbers of features and of 0/1 columns; for CTree, OST, SurTree."""

    rows: int
    censored: float
    features: int
    columns: int
    harrell_c: tuple[float | None, float | None, float | None]
    ib: tuple[float | None, float | None, float | None]


# Table 1, trees of maximum depth three.
TABLE_1: dict[str, Printed] = {
    "Aids2": Printed(2839, 38.0, 4, 22, (0.53, 0.53, 0.53), (0.01, 0.01, 0.00)),
    "Dialysis": Printed(6805, 76.4, 4, 35, (0.64, 0.65, 0.66), (0.07, 0.09, 0.08)),
    "Framingham": Printed(4658, 68.5, 7, 60, (0.67, 0.67, 0.68), (0.09, 0.10, 0.10)),
    "UnempDur": Printed(3241, 38.7, 6, 45, (0.70, 0.69, 0.69), (0.11, 0.10, 0.10)),
    "acath": Printed(2258, 34.0, 3, 21, (0.59, 0.58, 0.60), (0.03, 0.02, 0.03)),
    "csl": Printed(2481, 89.1, 6, 42, (0.78, 0.76, 0.75), (0.10, 0.10, 0.10)),
    "dataDIVAT1": Printed(5943, 83.6, 5, 21, (0.63, 0.64, 0.63), (0.08, 0.05, 0.06)),
    "dataDIVAT3": Printed(4267, 94.4, 7, 30, (0.65, 0.63, 0.66), (0.02, 0.02, 0.03)),
    "divorce": Printed(3371, 69.4, 3, 5, (0.52, 0.53, 0.53), (0.01, 0.02, 0.02)),
    "flchain": Printed(6524, 69.9, 10, 60, (0.92, 0.92, 0.92), (0.65, 0.65, 0.66)),
    "hdfail": Printed(52422, 94.5, 6, 27, (None, None, 0.81), (None, None, 0.41)),
    "nwtco": Printed(4028, 85.8, 7, 17, (0.70, 0.70, 0.69), (0.12, 0.13, 0.13)),
    "oldmort": Printed(6495, 69.7, 7, 33, (0.64, 0.65, 0.63), (0.06, 0.05, 0.05)),
    "prostateSurvival": Printed(14294, 94.4, 3, 8, (0.75, 0.75, 0.75), (0.09, 0.10, 0.10)),
    "rott2": Printed(2982, 57.3, 11, 50, (0.68, 0.68, 0.69), (0.12, 0.15, 0.14)),
}

# Harrell's C and IB of SurTree in `tables/hc_ibs_survset.txt` of the authors' repository, commit 27c1249 of
# TimHuisman1703/streed_sa_pipeline. The file does not name its depth; it is not Table 1.
LATER_TABLE: dict[str, tuple[float, float]] = {
    "Aids2": (0.53, 0.00), "Dialysis": (0.65, 0.08), "Framingham": (0.67, 0.10), "UnempDur": (0.70, 0.11),
    "acath": (0.59, 0.03), "csl": (0.76, 0.11), "dataDIVAT1": (0.63, 0.08), "dataDIVAT3": (0.65, 0.03),
    "divorce": (0.53, 0.02), "flchain": (0.92, 0.66), "hdfail": (0.84, 0.44), "nwtco": (0.70, 0.13),
    "oldmort": (0.64, 0.06), "prostateSurvival": (0.76, 0.11), "rott2": (0.69, 0.15),
}  # fmt: skip

# Mean seconds of five folds, tuned, of CTree, OST and SurTree in the authors' runs, by depth:
# `tree-files/*_depth3_hyper_real.csv` and `..._depth4_...` of that repository. 600 is the limit. The authors call other
# files "timed", "if the time is reliable", and not these.
TUNED_SECONDS: dict[int, dict[str, tuple[float, float, float]]] = {
    3: {
        "Aids2": (2.551, 114.629, 0.273), "Dialysis": (2.548, 88.263, 0.930), "Framingham": (3.588, 215.717, 1.964),
        "UnempDur": (46.196, 51.100, 0.813), "acath": (35.398, 29.038, 0.234), "csl": (24.378, 47.355, 0.566),
        "dataDIVAT1": (5.999, 124.886, 0.573), "dataDIVAT3": (6.730, 128.589, 0.572),
        "divorce": (6.584, 65.229, 0.207), "flchain": (5.843, 201.085, 2.950), "hdfail": (600.0, 1633.623, 7.218),
        "nwtco": (8.114, 85.421, 0.345), "oldmort": (11.840, 232.347, 0.988),
        "prostateSurvival": (4.953, 86.277, 0.687), "rott2": (2.056, 76.599, 1.007),
    },
    4: {
        "Aids2": (102.480, 73.679, 4.249), "Dialysis": (34.670, 149.184, 29.935),
        "Framingham": (61.776, 277.524, 98.256), "UnempDur": (20.212, 111.583, 46.357),
        "acath": (49.769, 53.407, 3.888), "csl": (23.892, 85.624, 21.645), "dataDIVAT1": (106.170, 203.004, 8.959),
        "dataDIVAT3": (87.801, 176.445, 14.882), "divorce": (132.679, 78.964, 0.549),
        "flchain": (136.877, 433.201, 120.658), "hdfail": (600.0, 600.0, 171.629), "nwtco": (141.345, 206.197, 4.412),
        "oldmort": (219.809, 732.822, 27.902), "prostateSurvival": (124.029, 155.800, 3.681),
        "rott2": (55.761, 188.493, 63.819),
    },
}  # fmt: skip

# Figure 4 has no numbers in the text. Mean seconds of its runs, by copies of the features and depth, of CTree, OST,
# SurTree and SurTree without its depth-two algorithm: `tree-files/*_depth_inc_direct_timed_synthetic.csv` there.
FIGURE_4: dict[int, dict[int, tuple[float, float, float, float | None]]] = {
    1: {2: (0.629, 4.996, 0.036, 0.210), 3: (0.359, 8.998, 0.082, 5.444), 4: (0.391, 13.900, 1.465, 110.032),
        5: (0.405, 21.108, 18.733, None)},
    2: {2: (0.467, 7.640, 0.046, 0.854), 3: (0.475, 15.161, 0.206, 53.967), 4: (0.426, 25.988, 9.460, None),
        5: (0.579, 39.991, 323.223, None)},
}  # fmt: skip
