"""Curves, numbers and key of the pictures of a tree."""

import numpy as np
from matplotlib.figure import Figure

from softsurv.explore.curves import curves_by_leaf, default_times, leaf_looks
from softsurv.explore.leaf_panel import Drawing, draw_curves, draw_key
from softsurv.nonparametric import kaplan_meier, median


def drawing_of(case):
    times = default_times(case.tree)
    return Drawing(case.test, times, "days", 3, leaf_looks(case.tree), {}), curves_by_leaf(case.tree, case.test, times)


def test_the_numbers_are_those_of_the_rows(optimal):
    drawing, curves = drawing_of(optimal)
    for one in curves:
        panel = Figure().subplots()
        rows, middle = draw_curves(panel, one, drawing)
        time, event = optimal.test.time.numpy()[one.rows], optimal.test.event.numpy()[one.rows]
        assert rows == f"n = {one.rows.size}, events = {event.sum()}"
        at = median(kaplan_meier(time, event))
        assert middle.endswith("days" if np.isfinite(at) else "not reached")
        assert len(panel.lines) == 2


def test_the_key_names_the_side_of_the_lower_risk(optimal):
    drawing, curves = drawing_of(optimal)
    ax = Figure().subplots()
    draw_key(ax, drawing, curves, "above", 8.0)
    assert ax.get_legend().get_title().get_text() == "lower risk above at every split; darker: higher"
