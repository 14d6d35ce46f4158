"""Numbers that the STreeD paper (van der Linden et al. 2023) prints for sets that we have."""

from __future__ import annotations

# Seconds of STreeD by task and depth; Tables 10 (sets left out of it took every method less than a second), 7, 8, 9, 6.
PRINTED_SECONDS: dict[tuple[str, int], dict[str, str]] = {
    ("accuracy", 4): {
        "anneal": "< 1", "breast-wisconsin": "< 1", "german-credit": "3", "heart-cleveland": "< 1",
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

# Normalised test costs (%) of STreeD at low, middle and high misclassification costs; Table 3.
PRINTED_COSTS = {"car": (9.8, 14.0, 20.5), "heart": (4.0, 7.2, 16.7)}
