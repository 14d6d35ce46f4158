"""Parts of a tree's picture as SVG text."""

import numpy as np
import pytest

from softsurv.explore.svg import CHARACTER, box_size, curve_path, rule_box, text_lines, text_width
from softsurv.nonparametric import StepFunction


def test_a_wide_character_takes_the_room_of_two_letters():
    assert text_width("age") == pytest.approx(3 * CHARACTER)
    assert text_width("年齢") == pytest.approx(4 * CHARACTER)
    assert box_size(["年齢", "age"])[0] == pytest.approx(4 * CHARACTER + 14)


def test_text_is_escaped():
    assert "&lt;b&gt;" in text_lines(["<b>"], 0.0, 0.0)
    assert "&lt;b&gt;" in rule_box(["<b> > 3"], 0.0, 0.0)


def test_a_box_stands_around_its_middle():
    wide, tall = box_size(["age > 60"])
    assert f'x="{100 - wide / 2:.1f}" y="{50 - tall / 2:.1f}"' in rule_box(["age > 60"], 100.0, 50.0)


def test_a_curve_is_steps():
    curve = StepFunction(np.array([1.0, 3.0]), np.array([0.5, 0.25]), 1.0)
    assert curve_path(curve, 4.0, 0.0, 0.0, 40.0, 100.0) == "M0.0 0.0H10.0V50.0H30.0V75.0"
