"""What a report says of its rows: counts, features one by one, and how groups among them fare."""

import re

import numpy as np
import pandas as pd
import pytest

from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData
from softsurv.explore.report_data import MAX_FEATURES, data_section, fairness_section
from softsurv.metrics.fairness import curve_gap


def rows_of(section):
    """First cells of the rows of all tables, with the cells behind."""
    found = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', section)
    return {name: re.findall(r"<td[^>]*>(.*?)</td>", cells) for name, cells in found}


def test_counts_are_those_of_the_data():
    X = pd.DataFrame({"age": [50.0, np.nan, 70.0, 70.0], "<b>arm": ["new", "old", "new", "new"]})
    data = SurvivalData(X, [1.0, 2.0, 4.0, 4.0], [True, False, True, True], entry=[0.0, 1.0, 0.0, 0.0])
    found = rows_of(data_section(data, "days"))
    for name, value in (("rows", "4"), ("features", "2"), ("observed events", "3"), ("censored", "25.0 %"),
                        ("observed times", "1 to 4 days, median 3"), ("missing values", "1"), ("repeated rows", "1"),
                        ("late entries", "1"), ("groups", "none")):  # fmt: skip
        assert found[name] == [value]
    assert found["age"] == ["number", "1", "mean 63.33, sd 11.55, 50 to 70"]
    assert found["&lt;b&gt;arm"] == ["category", "0", "new 75%, old 25%"]
    assert "<b>arm" not in data_section(data, None)


def test_weights_are_told_where_there_are_any():
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    data = SurvivalData(X, [1.0, 2.0, 4.0], [True, False, True], weight=[0.5, 2.0, 0.25])
    found = rows_of(data_section(data, None))
    assert found["weights"] == ["0.25 to 2, sum 2.75; counts are of rows"]
    assert found["rows"] == ["3"]
    assert "weights" not in rows_of(data_section(SurvivalData(X, data.time, data.event), None))


def test_causes_and_subjects_have_rows_of_their_own():
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    data = survival_data(X, start=[0, 1, 0], stop=[1, 3, 2], cause=["", "seal", ""], id=[1, 1, 2])
    found = rows_of(data_section(data, None))
    assert (found["subjects"], found["events of seal"], found["subjects without event"]) == (["2"], ["1"], ["50.0 %"])
    assert "censored" not in found


def test_levels_and_features_beyond_a_number_are_counted():
    frame = pd.DataFrame({f"x{k}": [float(k), 1.0] * 5 for k in range(MAX_FEATURES + 3)})
    frame["x0"], frame["x1"] = list("abcdefghij"), list("aabcdefghi")
    section = data_section(SurvivalData(frame, np.arange(1.0, 11.0), np.ones(10, bool)), None)
    assert "3 more features are not listed." in section
    assert rows_of(section)["x0"][2] == "10 values, each once"
    assert rows_of(section)["x1"][2].endswith(", 3 more")
    assert f"x{MAX_FEATURES}" not in rows_of(section)


def test_a_rare_level_is_not_said_to_be_none():
    frame = pd.DataFrame({"arm": ["new"] * 399 + ["old"]})
    section = data_section(SurvivalData(frame, np.arange(1.0, 401.0), np.ones(400, bool)), None)
    assert rows_of(section)["arm"][2] == "new 100%, old &lt;1%"


def test_a_column_without_known_numbers_has_no_spread():
    frame = pd.DataFrame({"none": [np.nan, np.nan], "x": [1.0, 2.0]})
    assert rows_of(data_section(SurvivalData(frame, [1.0, 2.0], [True, True]), None))["none"] == ["number", "2", "none"]


def test_the_gap_of_the_groups_is_that_of_their_curves(mixed):
    section = fairness_section(mixed.tree, mixed.data, "f", "days")
    member = np.asarray(mixed.data.group_names)[mixed.data.group.numpy()] == "f"
    assert f"Sensitive group: f, {member.sum()} of {mixed.data.n} rows." in section
    text = re.search(r"lie (\S+) apart on average over time, at most (\S+); the group&#x27;s is (\S+) (\w+)", section)
    times = mixed.tree.unique_times_
    survival = mixed.tree.predict_survival_function(mixed.data.X, times=times)
    gap = curve_gap(survival, times, member)
    assert float(text[1]) == pytest.approx(gap.mean, abs=5e-3)  # on another grid of times
    assert float(text[2]) == pytest.approx(gap.largest, abs=5e-3)
    assert text[4] == ("higher" if gap.signed > 0 else "lower")
    leaf, shares = mixed.tree.apply(mixed.data), rows_of(section)
    for k in np.unique(leaf):
        rows, share, _ = shares[f"leaf {k}"]
        assert (rows, share) == (str((leaf == k).sum()), f"{member[leaf == k].mean():.0%}")


def test_levels_are_shown_as_in_rules_so_that_an_empty_one_can_be_read():
    frame = pd.DataFrame({"site": ["", "", "b", "a, b"]})
    data = SurvivalData(frame, [1.0, 2.0, 3.0, 4.0], np.ones(4, bool), group=["", "b", "b", "b"])
    found = rows_of(data_section(data, None))
    assert found["site"] == ["category", "0", "&quot;&quot; 50%, b 25%, &quot;a, b&quot; 25%"]
    assert found["groups"] == ["&quot;&quot;, b"]
