"""Looks and words that all pictures share: colours told apart, names shortened, texts without formulas, tables read."""

import inspect
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import rcParams
from matplotlib.figure import Figure

from softsurv import OptimalClassificationTree, explore
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError
from softsurv.explore.style import (
    chance,
    escaped,
    in_picture,
    in_xml,
    key_beside,
    literal_text,
    new_axes,
    picture_kinds,
    read_data,
    risk_styles,
    series_marker,
    series_style,
    shorten,
    shorten_all,
    takes_tables,
    time_label,
    unit_of,
    with_readable_texts,
    with_room_for_key,
    with_unit,
)


def test_long_names_keep_both_ends():
    assert shorten("product_travel_expense=Active", 15) == "product…=Active"
    assert len(shorten("x" * 99, 20)) == 20
    assert shorten("age", 20) == "age"


def test_long_names_that_begin_and_end_alike_keep_their_difference():
    where = "of the left upper lobe, confirmed by histology"
    names = [f"type_of_tumour_at_first_visit={what} {where}" for what in ("adenocarcinoma", "carcinoid", "large cell")]
    told = shorten_all([*names, "age", names[0]], 34)
    assert told[3:] == ["age", told[0]]
    assert len(set(told[:3])) == 3
    for label, what in zip(told, ("=adenocar", "=carcinoid", "=large cell"), strict=False):
        assert what in label
        assert len(label) == 34
    far = [f"{'x' * 40}{letter}{'y' * 40}{'ab'[k]}{'z' * 40}" for k, letter in ((0, "p"), (1, "p"), (0, "q"))]
    assert shorten_all(far, 20) == far  # two of them begin alike after the first difference


@pytest.mark.parametrize("n", [1, 2, 16, 64])
def test_a_higher_risk_is_darker_and_no_colour_comes_twice(n):
    colors = [style.color for style in risk_styles(n)]
    light = [0.2126 * int(c[1:3], 16) + 0.7152 * int(c[3:5], 16) + 0.0722 * int(c[5:], 16) for c in colors]
    assert len(set(colors)) == n
    assert light == sorted(light, reverse=True)


def test_series_have_looks_of_their_own():
    looks = [(series_style(k).color, series_style(k).linestyle) for k in range(32)]
    assert len(set(looks)) == 32
    assert [series_style(k).svg_dash == "" for k in range(8)] == [series_style(k).linestyle == "-" for k in range(8)]


@pytest.mark.parametrize(
    ("value", "text"), [(12340.4, "12340 hours"), (3.14159, "3.142 hours"), (np.inf, "not reached")]
)
def test_long_times_are_written_in_full(value, text):
    assert with_unit(value, "hours") == text


def test_no_two_of_many_effects_look_alike():
    looks = [(series_style(k).color, series_marker(k)) for k in range(64)]
    assert len(set(looks)) == len(looks)


def test_small_chances_are_no_tiny_numbers():
    assert [chance(p) for p in (0.0853, 0.001, 4e-48)] == ["p = 0.0853", "p = 0.001", "p < 0.001"]


@given(st.lists(st.text("ab", max_size=12), min_size=1, max_size=6), st.integers(6, 10))
def test_different_names_stay_different_and_equal_ones_equal(names, limit):
    told = shorten_all(names, limit)
    assert len(set(told)) == len(set(names))
    assert [told[names.index(name)] for name in names] == told
    for name, label in zip(names, told, strict=True):
        assert len(label) <= max(limit, len(name))


def test_units_are_given_or_those_of_a_named_data_set():
    named = SurvivalData(pd.DataFrame({"x": [1.0]}), [1.0], [True], name="gbsg2")
    assert unit_of(named, None) == "days"
    assert unit_of(named, "years") == "years"
    assert unit_of(named.take([0])._derive({"name": "mine"}), None) == unit_of(None, None) == ""
    assert time_label(named, None) == "Time (days)"
    assert time_label(None, None, "Age") == "Age"
    assert with_unit(np.nan, "days") == "unknown"
    assert with_unit(3.0, "") == "3"


def test_what_xml_cannot_hold_is_marked():
    assert in_xml("a\x00b\ud800\n\t") == "a\ufffdb\ufffd\n\t"
    assert escaped('<b>"\x07') == "&lt;b&gt;&quot;\ufffd"
    assert escaped("\u0634\u062f \u0645\u0631 <= 3, \u0645") == "\u0634\u062f \u0645\u0631\u200e &lt;= 3, \u0645\u200e"


def test_characters_that_turn_the_order_are_marked():
    """A browser would show ``age > 3`` as ``age3 <``."""
    assert escaped("age\u202e > 3\u2067") == "age\ufffd &gt; 3\ufffd"
    assert in_picture("\u202aage\nsex") == "\ufffdage\nsex"


def test_lines_that_begin_with_a_word_from_the_right_are_set_from_the_left_in_pictures():
    """A line of a picture has the direction of its first word: the rule behind it would be turned round."""
    ax = Figure().subplots()
    ax.set_title("\u0639\u0645\u0631 > -0.87\nage > 3")
    ax.set_yticks([0, 1], ["\u05d2\u05d9\u05dc", "age"])
    for _ in range(2):
        with_readable_texts(ax.figure)
        assert ax.get_title() == "\u200e\u0639\u0645\u0631\u200e > -0.87\nage > 3"
        assert [label.get_text() for label in ax.get_yticklabels()] == ["\u200e\u05d2\u05d9\u05dc\u200e", "age"]


def test_names_with_dollars_are_no_formulas_and_other_pictures_keep_theirs():
    @literal_text
    def draw(ax, fails=False):
        ax.set_xlabel("cost in $\\frac$ and $")
        ax.set_xticks([0, 1], ["a\x00", "b"])
        if fails:
            raise KeyError
        return ax

    other = Figure().subplots()
    other.set_xlabel("$x^2$")
    ax = draw(Figure().subplots())
    ax.figure.canvas.draw()  # a formula would be an error here
    assert not ax.xaxis.label.get_parse_math()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a\ufffd", "b"]
    assert other.xaxis.label.get_parse_math()
    with pytest.raises(KeyError):
        draw(Figure().subplots(), fails=True)
    assert rcParams["text.parse_math"]


def test_rows_without_weight_are_no_rows_of_a_picture():
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    read = read_data((X, ([True, True, False], [1.0, 2.0, 3.0])))
    assert read.n == 3
    weighted = SurvivalData(X, [1.0, 2.0, 3.0], [True, True, False], weight=[1.0, 0.0, 2.0])
    assert read_data(weighted).X["x"].tolist() == [1.0, 3.0]
    assert read_data(read) is read


def test_tables_are_read_by_names_or_as_the_tree_was_fitted():
    @takes_tables
    def seen(tree, data, more=1, *, other=2):
        return data, more, other

    table = pd.DataFrame({"x": [1.0, 2.0], "t": [3.0, 4.0], "e": [1, 0]})
    tree = SimpleNamespace(outcome_columns_={"time": "t", "event": "e"})
    for found in (seen(tree, table), seen(None, table, time="t", event="e"), seen({"one": tree}, table)):
        data, more, other = found
        assert (data.feature_names, data.time.tolist(), more, other) == (["x"], [3.0, 4.0], 1, 2)
    pair, more, other = seen(tree, (table[["x"]], ([True, False], [3.0, 4.0])), 5, other=6)
    assert (pair.n, more, other) == (2, 5, 6)
    assert seen(tree, pair)[0] is pair
    with pytest.raises(InvalidParameterError, match="data must hold rows for seen, got None"):
        seen(tree)
    assert takes_tables(lambda tree, data=None: data)(tree) is None
    assert list(inspect.signature(seen).parameters) == ["tree", "data", "more", "other", "time", "event"]


def test_a_key_of_many_entries_has_columns_that_fit_beside_the_axes():
    """With one column of 32 lines a layout gives up, and the axes overlap the key."""
    assert with_room_for_key(8) == (6.4, 4.2)
    ax = new_axes(None, *with_room_for_key(32))
    for k in range(32):
        ax.plot([0, 1], [k, k], label=f"leaf {k}: n = 1000")
    key_beside(ax, 4, "lowest risk first")
    ax.figure.canvas.draw()
    key, frame = ax.get_legend().get_window_extent(), ax.figure.bbox
    assert key.y0 >= frame.y0
    assert key.x1 <= frame.x1
    assert ax.get_window_extent().width > 0.4 * frame.width


def test_formats_of_pictures_are_endings_of_files():
    assert {"pdf", "png", "svg"} <= set(picture_kinds())


@pytest.mark.parametrize("name", ["plot_tree", "plot_leaf_curves", "plot_calibration", "report_html", "tree_html"])
def test_a_tree_of_another_kind_is_refused_before_its_rows_are_asked_for_times(name):
    """Rows of a classifier have none, so that the sentence on times told what cannot be done."""
    X = pd.DataFrame({"a": np.arange(8.0)})
    tree = OptimalClassificationTree(max_depth=1).fit(X, [0, 0, 0, 0, 1, 1, 1, 1])
    for rows in (X, None):
        with pytest.raises(InvalidParameterError, match="a survival tree, got OptimalClassificationTree; export_text"):
            getattr(explore, name)(tree, rows)
