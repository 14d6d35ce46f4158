"""Questions of exact trees: their answers, missing values, and words that can be read back."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsurv.data.encoding import Source
from softsurv.data.rules import (
    Rule,
    fill,
    fills_text,
    indicator_name,
    level_words,
    number_text,
    rounded_text,
    rule_text,
)

NUMBERS = np.array([1.0, 2.0, 3.0, np.nan])
LEVELS = np.array(["I", "II", "new", None], dtype=object)


@pytest.mark.parametrize(
    ("rule", "values", "answers"),
    [
        (Rule(0, threshold=2.0), NUMBERS[:3], [True, True, False]),
        (Rule(0, threshold=2.0, missing=True), NUMBERS, [True, True, False, True]),
        (Rule(0, threshold=2.0, missing=False), NUMBERS, [True, True, False, False]),
        (Rule(0, levels=("I", "III")), LEVELS[:3], [True, False, False]),
        (Rule(0, levels=("I",), missing=True), LEVELS, [True, False, False, True]),
        (Rule(0, levels=("None",), missing=False), LEVELS, [False] * 4),  # a missing value is no level
        (Rule(0, missing=True), LEVELS, [False, False, False, True]),
        (Rule(0, missing=True), NUMBERS, [False, False, False, True]),
        (Rule(0, threshold=2.0, missing=True), NUMBERS[:0], []),
    ],
)
def test_answers(rule, values, answers):
    found = rule.answers(values)
    assert found.dtype == bool
    assert found.tolist() == answers


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Rule(0, threshold=45.0), "x <= 45"),
        (Rule(0, threshold=0.1, missing=True), "x <= 0.1 or missing"),
        (Rule(0, threshold=0.1, missing=False), "x <= 0.1"),
        (Rule(0, levels=("I",)), "x = I"),
        (Rule(0, levels=("I", "<=20mm"), missing=True), 'x in I, "<=20mm" or missing'),
        (Rule(0, missing=True), "x is missing"),
        (Rule(0, levels=("a or missing",)), 'x = "a or missing"'),
    ],
)
def test_questions_in_words(rule, words):
    assert rule_text(rule, "x") == words
    assert rule.asks_missing == ("is missing" in words)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_number_is_the_number(value):
    assert float(number_text(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [(45.0, "45"), (0.1, "0.1"), (1 / 3, repr(1 / 3)), (1234567.0, "1234567"), (1e7, "10000000"), (-2.5, "-2.5")],
)
def test_numbers_are_short_where_six_digits_say_them(value, text):
    assert number_text(value) == text


def test_rounded_numbers_are_in_full():
    assert rounded_text(12341.7) == "12340"
    assert rounded_text(1 / 3) == "0.3333"
    assert rounded_text(12341.7, digits=2) == "12000"


@given(st.text('aI1é "\\<=,-%{', min_size=1, max_size=8))
def test_quoted_levels_can_be_read_back(level):
    words = level_words(level)
    if words.startswith('"'):
        assert re.sub(r"\\(.)", r"\1", words[1:-1]) == level
        assert words.endswith('"')
    else:
        assert words == level
        assert not set(level) & set('"<>=,&|(){}[]')
    assert indicator_name("x", level) == f"x={words}"


def test_what_missing_values_count_as():
    fills = {"age": 52.123456789, "sex": "f", "unused": 1.0}
    assert fills_text(fills, ["age", "sex"]) == "Missing values: age counts as 52.1235, sex counts as f."


def test_missing_cells_are_filled_where_the_source_says_so():
    column = pd.Series([1.0, np.nan])
    assert fill(column, Source("x", None, 7.0)).tolist() == [1.0, 7.0]
    assert math.isnan(fill(column, Source("x", None, None))[1])
    text = pd.Series(["b", None])
    assert fill(text, Source("x", ("a", "b"), "a")).tolist() == ["b", "a"]


def test_a_level_that_could_be_an_operator_is_quoted():
    assert level_words('a" or "b') == '"a\\" or \\"b"'
    assert level_words("stage 3/4") == "stage 3/4"


def test_levels_that_look_like_operators_are_quoted_in_a_question_too():
    assert rule_text(Rule(0, levels=("<=20mm",)), "size") == 'size = "<=20mm"'
    assert rule_text(Rule(0, levels=("I", "II, III")), "grade") == 'grade in I, "II, III"'
