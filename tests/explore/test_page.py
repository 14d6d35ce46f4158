"""Parts of a report's page: cells that read well, tables by kind of column, text shown letter by letter, pictures."""

import base64
import re

import numpy as np
import pandas as pd
import pytest

from softsurv.explore.page import ACROSS, cell, counted, figure, new_figure, page, paragraph, table


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "yes"), (12345, "12,345"), (0.25, "0.25"), (float("nan"), "–"), (float("inf"), "not reached"), ("a", "a")],
)
def test_cells_read_well(value, text):
    assert cell(value) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 rows"), (1, "1 row"), (12345, "12,345 rows")])
def test_counts_read_well(count, text):
    assert counted(count, "row") == text


def test_columns_are_set_by_what_they_hold():
    frame = pd.DataFrame({"n": [1, 12345], "short": ["a", "b"], "words": ["w" * 25, "x"]}, index=["<i>", "two"])
    html = table(frame, caption="c & d", index_name="row")
    assert '<th scope="row">&lt;i&gt;</th><td>1</td><td class="text">a</td><td class="words">www' in html
    assert "<td>12,345</td>" in html
    assert "<caption><span>c &amp; d</span></caption>" in html
    assert '<th scope="col">row</th><th scope="col">n</th><th scope="col" class="text">short</th>' in html
    assert 'aria-label="table"' in table(frame)


def test_long_names_of_rows_are_broken_and_leave_room_for_the_values():
    assert '<th scope="row" class="name">' in table(pd.DataFrame({"n": [1]}, index=["x" * 30]))


def test_a_page_links_to_its_sections_and_shows_names_letter_by_letter():
    html = page("<script>", paragraph("a < b", "note"), [("one", "First & last", "<p>body</p>")])
    assert "<script>" not in html
    assert '<p class="note">a &lt; b</p>' in html
    assert '<a href="#one">First &amp; last</a>' in html
    assert '<h2 id="one">First &amp; last</h2><p>body</p>' in html
    assert "http" not in html.replace("http-equiv", "")


@pytest.mark.parametrize(
    ("inches", "wide", "across"), [(4.0, False, False), (9.0, True, False), (ACROSS / 96 + 1, True, True)]
)
def test_a_picture_is_within_the_page_and_has_words(inches, wide, across):
    ax = new_figure(inches, 3.0)
    ax.set_title("cost in $ and \x00")
    html = figure(ax, 'a "picture"', "below", wide=wide)
    svg = base64.b64decode(re.search(r"base64,([^\"]*)", html)[1]).decode()
    assert "cost in $ and \ufffd" in svg
    assert 'alt="a &quot;picture&quot;"' in html
    assert "<figcaption>below</figcaption>" in html
    assert f'width="{round(96 * inches)}" height="288"' in html
    assert ("fit the picture to the page" in html) == wide
    assert ('class="across"' in html) == across


def test_the_same_picture_is_the_same_bytes():
    def drawn():
        ax = new_figure(3, 2)
        ax.plot([0, 1], np.array([1.0, 0.5]))
        return figure(ax, "line")

    assert drawn() == drawn()


def test_a_rule_behind_a_name_from_the_right_stays_in_order_in_a_picture():
    ax = new_figure(3, 2)
    ax.set_title("عمر <= 3")
    picture = base64.b64decode(re.search('base64,([^"]*)', figure(ax, "tree"))[1]).decode()
    assert "عمر‎ &lt;= 3" in picture


def test_letters_that_only_the_browser_can_draw_give_no_warning():
    ax = new_figure(3, 2)
    ax.set_title("\u5e74\u9f62 <= 3")
    assert figure(ax, "tree")
