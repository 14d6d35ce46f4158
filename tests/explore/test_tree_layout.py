"""Rules broken into lines: a sign and a number stay with their name."""

import pytest

from softsurv.explore.tree_layout import wrapped


def test_wrapped_rules_keep_sign_number_and_name_together():
    lines = wrapped("age - 0.263 months_from_diagnosis + 6 weaker > 11.6", 24)
    assert [line.replace("\u00a0", " ") for line in lines] == [
        "age",
        "- 0.263 months_from_diagnosis",
        "+ 6 weaker > 11.6",
    ]


@pytest.mark.parametrize("rule", ["age <= 45 or missing", "grade = III", "x > -2.5", "a - 2 b + 3.25 c > 1e-05"])
@pytest.mark.parametrize("characters", [1, 8, 80])
def test_no_word_is_lost_and_no_sign_parted(rule, characters):
    lines = wrapped(rule, characters)
    assert " ".join(lines).replace("\u00a0", " ") == rule
    for line in lines:
        assert line.split("\u00a0")[-1] not in ("<=", "=", ">", "+", "-")


def test_a_long_name_is_a_line_of_its_own():
    assert wrapped("one_very_long_name-with-hyphens is missing", 10) == [
        "one_very_long_name-with-hyphens",
        "is missing",
    ]
    assert wrapped("", 10) == []
