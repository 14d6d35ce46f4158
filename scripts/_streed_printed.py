"""Numbers that the STreeD paper (van der Linden et al. 2023) prints for sets that we have."""

from __future__ import annotations

from typing import NamedTuple

# Seconds of STreeD by task and depth; Tables 10 (sets left out of it took every method less than a second), 7, 8, 9, 6.
PRINTED_SECONDS: dict[tuple[str, int], dict[str, str]] = {
    ("accuracy", 4): {
        "anneal": "< 1", "breast-wisconsin": "1", "german-credit": "3", "heart-cleveland": "< 1",
        "hepatitis": "< 1", "tic-tac-toe": "< 1", "vote": "< 1", "yeast": "1",
    },
    ("F1", 3): dict.fromkeys(
        ("anneal", "breast-wisconsin", "german-credit", "heart-cleveland", "hepatitis", "tic-tac-toe", "vote", "yeast"),
        "< 1",
    ),
    ("F1", 4): {
        "anneal": "2", "breast-wisconsin": "7", "german-credit": "34", "heart-cleveland": "6", "hepatitis": "< 1",
        "tic-tac-toe": "< 1", "vote": "1", "yeast": "8",
    },
    ("demographic parity", 2): dict.fromkeys(("german-credit", "ricci", "student-mat", "student-por"), "< 1"),
    ("demographic parity", 3): {"german-credit": "62", "ricci": "< 1", "student-mat": "2", "student-por": "3"},
    ("equality of opportunity", 2): dict.fromkeys(("german-credit", "ricci", "student-mat", "student-por"), "< 1"),
    ("equality of opportunity", 3): {"german-credit": "50", "ricci": "< 1", "student-mat": "< 1", "student-por": "1"},
    **{("policy", depth): dict.fromkeys(("warfarin DM", "warfarin IPW", "warfarin DR"), "< 1") for depth in (2, 3, 4)},
}  # fmt: skip

LEVELS = ("low", "middle", "high")

# Normalised test costs (%) of STreeD and TMDP at low, middle and high misclassification costs: Table 3.
COSTS_BY_LEVEL: dict[str, tuple[tuple[str, str], ...]] = {
    "annealing": (("1.3", "1.6"), ("1.2", "1.6"), ("1.2", "1.5")),
    "breast": (("8.3", "8.3"), ("15.7", "15.6"), ("37.3", "39.1")),
    "car": (("9.8", "9.8"), ("14.0", "15.8"), ("20.5", "22.9")),
    "diabetes": (("7.3", "7.2"), ("11.6", "11.8"), ("23.4", "23.5")),
    "flare": (("9.9", "9.8"), ("15.2", "16.3"), ("24.9", "28.0")),
    "glass": (("10.9", "10.8"), ("13.8", "14.1"), ("18.5", "18.1")),
    "heart": (("4.0", "4.0"), ("7.2", "7.5"), ("16.7", "17.1")),
    "hepatitis": (("8.4", "9.2"), ("12.9", "13.5"), ("25.6", "26.0")),
    "iris": (("7.5", "7.5"), ("10.7", "10.7"), ("20.2", "20.3")),
    "krk": (("1.8", "-"), ("1.8", "-"), ("1.7", "-")),
    "mushroom": (("1.7", "-"), ("1.8", "-"), ("2.1", "-")),
    "nursery": (("0.1", "0.1"), ("0.1", "0.1"), ("0.1", "0.1")),
    "soybean": (("10.9", "18.7"), ("11.6", "16.3"), ("11.8", "11.3")),
    "tictactoe": (("6.8", "6.8"), ("12.7", "12.7"), ("28.8", "28.9")),
    "wine": (("8.0", "11.3"), ("11.9", "12.5"), ("11.2", "12.8")),
}
# Normalised test costs (%) of TMDP and STreeD over all levels: Table 2.
COSTS: dict[str, tuple[str, str]] = {
    "annealing": ("1.6", "1.2"),
    "breast": ("21.0", "20.4"),
    "car": ("16.1", "14.8"),
    "diabetes": ("14.2", "14.1"),
    "flare": ("18.0", "16.7"),
    "glass": ("14.3", "14.4"),
    "heart": ("9.5", "9.3"),
    "hepatitis": ("16.2", "15.6"),
    "iris": ("12.8", "12.8"),
    "krk": ("-", "1.7"),
    "mushroom": ("-", "1.9"),
    "nursery": ("0.1", "0.1"),
    "soybean": ("15.4", "11.4"),
    "tictactoe": ("16.1", "16.1"),
    "wine": ("12.2", "10.4"),
}

# Sizes of the trees of TMDP and STreeD over the sets that TMDP ended: Table 4.
SIZES: dict[str, tuple[str, str, str]] = {
    "depth": ("tree depth", "1.9", "2.2"),
    "leaves": ("leaf nodes", "7.4", "5.4"),
    "questions": ("question length", "1.7", "2.8"),
}

# Right treatments of new patients (%) and seconds of STreeD by depth: Table 6.
WARFARIN = {1: ("83.1", "< 1"), 2: ("84.6", "< 1"), 3: ("86.6", "< 1"), 4: ("88.0", "< 1"), 5: ("89.7", "3")}


class Fair(NamedTuple):
    """A line of Tables 8 and 9: file of the set, "" where there is none, and the seconds at depths 2 and 3."""

    file: str
    parity: tuple[str, str]
    opportunity: tuple[str, str]


FAIR_SECONDS: dict[str, Fair] = {
    "Adult": Fair("adult", ("< 1", "2"), ("< 1", "1")),
    "Bank": Fair("bank", ("< 1", "4"), ("< 1", "7")),
    "Com.&Crime": Fair("communities", ("< 1", "29"), ("< 1", "11")),
    "COMPAS r.": Fair("", ("< 1", "< 1"), ("< 1", "< 1")),
    "COMPAS v.r.": Fair("", ("< 1", "< 1"), ("< 1", "< 1")),
    "Dutch": Fair("", ("< 1", "8"), ("< 1", "7")),
    "German": Fair("german-credit", ("< 1", "62"), ("< 1", "50")),
    "KDD": Fair("census-income", ("3", "26"), ("3", "37")),
    "OULAD": Fair("oulad", ("< 1", "19"), ("< 1", "19")),
    "Ricci": Fair("ricci", ("< 1", "< 1"), ("< 1", "< 1")),
    "Stud. Math": Fair("student-mat", ("< 1", "2"), ("< 1", "< 1")),
    "Stud. Port.": Fair("student-por", ("< 1", "3"), ("< 1", "1")),
}


class Table10(NamedTuple):
    """A line of Table 10: rows, columns, and the seconds of DL8.5, MurTree and STreeD at depths 4 and 5."""

    rows: int
    columns: int
    seconds: tuple[tuple[str, str, str], tuple[str, str, str]]


ACCURACY_SECONDS: dict[str, Table10] = {
    "Anneal": Table10(812, 93, (("2", "< 1", "< 1"), ("17", "2", "5"))),
    "Audiology": Table10(216, 148, (("4", "< 1", "< 1"), ("< 1", "< 1", "< 1"))),
    "Australian-Credit": Table10(653, 125, (("23", "1", "2"), ("-", "21", "37"))),
    "Breast-Wisconsin": Table10(683, 120, (("4", "< 1", "1"), ("15", "1", "7"))),
    "Diabetes": Table10(768, 112, (("24", "1", "2"), ("-", "22", "34"))),
    "Fico": Table10(10459, 17, (("< 1", "< 1", "< 1"), ("< 1", "1", "2"))),
    "German-Credit": Table10(1000, 112, (("36", "2", "3"), ("-", "61", "94"))),
    "Heart-Cleveland": Table10(296, 95, (("6", "< 1", "< 1"), ("80", "3", "7"))),
    "Hepatitis": Table10(137, 68, (("< 1", "< 1", "< 1"), ("2", "< 1", "< 1"))),
    "Hypothyroid": Table10(3247, 88, (("5", "1", "< 1"), ("94", "13", "11"))),
    "Ionosphere": Table10(351, 445, (("-", "69", "152"), ("-", "146", "112"))),
    "Kr-vs-kp": Table10(3196, 73, (("2", "< 1", "< 1"), ("18", "6", "4"))),
    "Letter": Table10(20000, 224, (("547", "200", "145"), ("-", "-", "-"))),
    "Lymph": Table10(148, 68, (("1", "< 1", "< 1"), ("< 1", "< 1", "< 1"))),
    "Mushroom": Table10(8124, 119, (("3", "< 1", "< 1"), ("1", "< 1", "< 1"))),
    "Pendigits": Table10(7494, 216, (("160", "60", "74"), ("-", "240", "109"))),
    "Soybean": Table10(630, 50, (("< 1", "< 1", "< 1"), ("6", "< 1", "1"))),
    "Splice-1": Table10(3190, 287, (("-", "148", "156"), ("-", "-", "-"))),
    "Tic-Tac-Toe": Table10(958, 27, (("< 1", "< 1", "< 1"), ("2", "< 1", "< 1"))),
    "Vehicle": Table10(846, 252, (("79", "8", "15"), ("-", "137", "343"))),
    "Vote": Table10(435, 48, (("< 1", "< 1", "< 1"), ("5", "< 1", "1"))),
    "Yeast": Table10(1484, 89, (("10", "< 1", "1"), ("280", "13", "18"))),
}


class Table7(NamedTuple):
    """A line of Table 7: rows, positive rows, columns, and the seconds of MurTree and STreeD at depths 3 and 4."""

    rows: int
    positive: int
    columns: int
    seconds: tuple[tuple[str, str], tuple[str, str]]


F1_SECONDS: dict[str, Table7] = {
    "Anneal": Table7(812, 625, 93, (("< 1", "< 1"), ("24", "2"))),
    "Audiology": Table7(216, 57, 148, (("< 1", "< 1"), ("54", "2"))),
    "Australian-Credit": Table7(653, 357, 125, (("2", "< 1"), ("139", "19"))),
    "Breast-Wisconsin": Table7(683, 444, 120, (("< 1", "< 1"), ("61", "7"))),
    "COMPAS": Table7(6907, 3196, 12, (("2", "< 1"), ("7", "< 1"))),
    "Diabetes": Table7(768, 500, 112, (("3", "< 1"), ("117", "13"))),
    "Fico": Table7(10459, 5000, 17, (("6", "< 1"), ("26", "3"))),
    "German-Credit": Table7(1000, 700, 112, (("6", "< 1"), ("164", "34"))),
    "Heart-Cleveland": Table7(296, 160, 95, (("< 1", "< 1"), ("43", "6"))),
    "Hepatitis": Table7(137, 111, 68, (("< 1", "< 1"), ("6", "< 1"))),
    "Hypothyroid": Table7(3247, 2970, 88, (("< 1", "< 1"), ("28", "3"))),
    "Ionosphere": Table7(351, 225, 445, (("26", "11"), ("-", "-"))),
    "Kr-vs-kp": Table7(3196, 1669, 73, (("< 1", "< 1"), ("22", "3"))),
    "Letter": Table7(20000, 813, 224, (("46", "7"), ("-", "469"))),
    "Lymph": Table7(148, 81, 68, (("< 1", "< 1"), ("8", "1"))),
    "Mushroom": Table7(8124, 4208, 119, (("< 1", "< 1"), ("< 1", "< 1"))),
    "Pendigits": Table7(7494, 780, 216, (("13", "4"), ("-", "240"))),
    "Primary-Tumor": Table7(336, 82, 31, (("< 1", "< 1"), ("< 1", "< 1"))),
    "Segment": Table7(2310, 330, 235, (("< 1", "< 1"), ("< 1", "< 1"))),
    "Soybean": Table7(630, 92, 50, (("< 1", "< 1"), ("3", "< 1"))),
    "Splice-1": Table7(3190, 1655, 287, (("17", "9"), ("-", "-"))),
    "Tic-Tac-Toe": Table7(958, 626, 27, (("< 1", "< 1"), ("1", "< 1"))),
    "Vehicle": Table7(846, 218, 252, (("5", "2"), ("-", "130"))),
    "Vote": Table7(435, 267, 48, (("< 1", "< 1"), ("3", "1"))),
    "Yeast": Table7(1484, 463, 89, (("5", "< 1"), ("68", "8"))),
}
