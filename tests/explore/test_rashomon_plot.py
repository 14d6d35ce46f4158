"""Importance over near-optimal trees, drawn: bars from the least to the largest, the best tree's dot, shares."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from softsurv.explore import plot_importance_ranges


class Near(SimpleNamespace):
    """As much of a Rashomon set as the picture asks for."""

    def importances(self, max_trees):
        table = pd.DataFrame(
            {
                "least": [0.2, 0.0, 0.0, 0.0],
                "most": [0.9, 0.5, 0.25, 0.0],
                "best": [0.8, 0.2, 0.0, 0.0],
                "share": [1.0, 0.999, 0.001, 0.0],
                "needed": [True, False, False, False],
            },
            index=["age", "cost in $", "a_name_that_is_far_too_long_for_the_axis", "never asked"],
        )
        table.attrs["n_trees"] = min(max_trees, self.n_trees)
        return table


@pytest.fixture
def near():
    return Near(n_trees=12_345, threshold=1.02, objective=1.0)


def test_bars_dots_and_names(near):
    axes = plot_importance_ranges(near, Figure().subplots())
    bars = sorted((bar.get_y() + bar.get_height() / 2, bar.get_x(), bar.get_width()) for bar in axes.patches)
    np.testing.assert_allclose(bars, [(0, 0.2, 0.7), (1, 0.0, 0.5), (2, 0.0, 0.25)], atol=1e-12)
    (best,) = [line for line in axes.lines if line.get_label() == "best tree"]
    np.testing.assert_allclose(best.get_xdata(), [0.8, 0.2, 0.0])
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[:2] == ["age (100%)", "cost in $ (>99%)"]
    assert names[2].endswith("(<1%)")
    assert len(names) == 3  # a column that no tree asks is left out
    assert axes.yaxis_inverted()


def test_needed_columns_are_dark(near):
    axes = plot_importance_ranges(near, Figure().subplots())
    needed, *others = (bar.get_facecolor() for bar in axes.patches)
    assert needed not in others
    labels = {text.get_text() for text in axes.get_legend().get_texts()}
    assert labels == {"asked by every tree", "can be left out", "best tree"}


def test_long_names_leave_room_for_the_words(near):
    axes = plot_importance_ranges(near)
    axes.figure.canvas.draw()
    boxes = [words.get_window_extent() for words in (axes.xaxis.label, axes._left_title)]
    assert all(box.x0 >= 0 and box.x1 <= axes.figure.bbox.x1 for box in boxes)


def test_the_title_counts_the_trees(near):
    assert plot_importance_ranges(near).get_title(loc="left") == "12,345 trees,\nobjective up to 2.0% above the best"
    few = plot_importance_ranges(near, max_trees=1000)
    assert few.get_title(loc="left").startswith("The best 1,000 of 12,345 trees")
