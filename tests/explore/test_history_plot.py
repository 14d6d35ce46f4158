"""A subject's way through the leaves over time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree, SoftSurvivalTree
from softsurv.data.readers import survival_data
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError, InvalidTimesError
from softsurv.explore import plot_history

PATH = pd.DataFrame({"x": [0.0, 1.0, 0.0], "from": [0.0, 1.0, 2.0], "to": [1.0, 2.0, 2.5]})


def visits(causes):
    """Subjects whose x changes from 0 to 1 after a while; then events are ten times as frequent."""
    rng = np.random.default_rng(0)
    n, rows = 200, []
    change, first, then = rng.uniform(0.5, 1.5, n), rng.exponential(4.0, n), rng.exponential(0.4, n)
    kinds = rng.choice(["ill", "dead"], n)
    for k in range(n):
        early = first[k] < change[k]
        rows.append((k, 0.0, 0.0, first[k] if early else change[k], kinds[k] if early else ""))
        if not early:
            rows.append((k, 1.0, change[k], change[k] + then[k], kinds[k]))
    table = pd.DataFrame(rows, columns=["id", "x", "start", "stop", "what"])
    outcome = {"cause": table["what"]} if causes else {"event": table["what"] != ""}
    return survival_data(table[["x"]], start=table["start"], stop=table["stop"], id=table["id"], **outcome)


@pytest.mark.parametrize("causes", [True, False])
@pytest.mark.parametrize(
    "tree",
    [
        OptimalSurvivalTree(max_depth=1, min_samples_leaf=5),
        SoftSurvivalTree(depth=1, leaf="exponential", l2=1e4, shrinkage=1.0),
    ],
    ids=["optimal", "soft"],
)
def test_bars_are_the_leaves_and_areas_what_the_path_predicts(tree, causes):
    tree = tree.fit(visits(causes))
    above = plot_history(tree, PATH, "from", "to", horizon=4.0, time_unit="years")
    below = above.figure.axes[1]
    leaf = tree.apply(PATH[["x"]])
    assert leaf[0] == leaf[2] != leaf[1]
    visited = [text.get_text() for text in above.get_yticklabels()]
    assert visited == [f"leaf {leaf[0]}", f"leaf {leaf[1]}"]
    bars = [(bar.get_x(), bar.get_x() + bar.get_width(), bar.get_y() + 0.3) for bar in above.patches[:3]]
    np.testing.assert_allclose(bars, [(0, 1, 0), (1, 2, 1), (2, 4, 0)], atol=1e-12)
    assert below.get_xlabel() == "Time (years)"
    labels = [text.get_text() for text in below.get_legend().get_texts()]
    assert labels == ([*tree.cause_names_] if causes else ["no event"]) + ["as if the last row stayed so"]
    if causes:
        top = np.concatenate([path.vertices for area in below.collections for path in area.get_paths()])
        risen = [tree.predict_path(PATH, "from", "to", [0] * 3, times=[4.0], cause=name) for name in tree.cause_names_]
        assert top[:, 1].max() == pytest.approx(np.sum(risen), abs=1e-12)
    else:
        times, free = below.lines[0].get_data()
        np.testing.assert_allclose(free, tree.predict_path(PATH, "from", "to", [0] * 3, times=times)[0], atol=1e-12)


def test_rows_known_as_data_are_drawn_in_their_order():
    tree = OptimalSurvivalTree(max_depth=1, min_samples_leaf=5).fit(visits(True))
    shuffled = plot_history(tree, PATH.iloc[[2, 0, 1]], "from", "to", horizon=2.0)
    known = survival_data(PATH[["x"]], event=[0, 0, 0], start=PATH["from"], stop=PATH["to"], id=[7, 7, 7])
    plain = plot_history(tree, known, horizon=2.0)
    for first, second in zip(shuffled.patches, plain.patches, strict=True):
        assert first.get_bbox().bounds == second.get_bbox().bounds
    assert len(shuffled.figure.axes[1].get_legend().get_texts()) == 2  # the rows do not end before the axis


def test_what_is_no_path_is_refused():
    tree = OptimalSurvivalTree(max_depth=1, min_samples_leaf=5).fit(visits(True))
    with pytest.raises(InvalidParameterError, match="X must hold the rows of one subject, got 200"):
        plot_history(tree, visits(True))
    with pytest.raises(InvalidSurvivalDataError, match="row 1"):
        plot_history(tree, PATH.assign(**{"from": [0.0, 0.5, 2.0]}), "from", "to")
    later = PATH.assign(**{"from": PATH["from"] + 3, "to": PATH["to"] + 3})
    with pytest.raises(InvalidTimesError, match="horizon must lie after the start of the first row at 3, got 2"):
        plot_history(tree, later, "from", "to", horizon=2)
