"""Stability of splits over bootstrap samples: a split that is there is steady, one made of noise is not."""

from inspect import unwrap

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalModelTree, SoftSurvivalTree
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError
from softsurv.explore import plot_split_stability, split_stability
from softsurv.explore.report import report_html
from softsurv.explore.stability import _Scale, placed
from softsurv.explore.view import tree_view
from softsurv.sparse.again import rules_again
from softsurv.trees.linear_rule import LinearRule


@pytest.fixture(scope="module")
def steady():
    """The age decides sharply at 60; below, the weight decides a little."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(30, 90, 400), "weight": rng.normal(70, 10, 400).round(1)})
    scale = np.where(X["age"] > 60, 1.0, np.where(X["weight"] > 72, 30.0, 90.0))
    data = SurvivalData(X, scale * rng.weibull(2, 400), np.ones(400, bool))
    return data, SoftSurvivalTree(depth=2, leaf="weibull", max_terms=1, l2=1e4).fit(data)  # slopes explain nothing


@pytest.fixture(scope="module")
def table(steady):
    return split_stability(steady[1], steady[0], n=8)


def test_a_true_split_is_found_again(steady, table):
    tree = steady[1]
    assert table.index.tolist() == [tree_view(tree).place_words(node) for node in tree_view(tree).branches]
    root = table.loc["root"]
    assert root["rule"] in tree.export_text()
    assert (root["feature"], root["same_feature"], root["asked_anywhere"]) == ("age", 1.0, 1.0)
    thresholds = table.attrs["thresholds"]["root"]
    assert len(thresholds) == 8
    assert 58 <= np.median(thresholds) <= 62
    assert [root["lower"], root["upper"]] == np.quantile(thresholds, [0.05, 0.95]).tolist()
    assert table["same_feature"].between(0, 1).all()
    assert (table["asked_anywhere"] >= table["same_feature"]).all()


def test_the_same_seed_gives_the_same_table(steady, table):
    data, tree = steady
    pd.testing.assert_frame_equal(split_stability(tree, data, n=8), table)
    assert tree.candidate_.depth == 2  # the tree itself stays as it was


def test_progress_is_shown_where_it_is_asked_for(steady, table, capsys):
    data, tree = steady
    split_stability(tree, data, n=2)
    assert capsys.readouterr().err == ""
    found = split_stability(tree, data, n=2, progress=True)
    assert "2/2" in capsys.readouterr().err
    pd.testing.assert_frame_equal(found, split_stability(tree, data, n=2, progress=False))


def test_the_same_rows_give_the_same_questions(steady):
    """The fit also looks at the trees of its folds, so that a threshold may move to where the last digits differ."""
    data, tree = steady
    view = tree_view(tree)
    encoded = data.with_features(pd.DataFrame(view.encode(data.X)))
    rules = rules_again(encoded, view.columns, [tree.tree_.family], tree.candidate_)
    assert tree.candidate_.leaves > 2  # begun with smaller trees, of which none may be given back
    for again, rule in zip(rules, tree.tree_.rules, strict=True):
        assert (again is None) == (rule is None)
        if again is not None and rule is not None:
            assert again.columns == rule.columns
            assert again.threshold == pytest.approx(rule.threshold, abs=0.5)


def test_noise_is_not_steady():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(150, 6)), columns=[*"abcdef"])
    data = SurvivalData(X, rng.exponential(size=150), np.ones(150, bool))
    tree = SoftSurvivalTree(depth=1, leaf="weibull", max_terms=1, l2=30.0, shrinkage=1.0).fit(data)
    if not tree.tree_.rules:
        pytest.skip("no split was kept")
    assert split_stability(tree, data, n=8).loc["root", "same_feature"] <= 0.75


def test_a_rule_turned_round_is_the_same_rule(steady):
    view = tree_view(steady[1])
    scale = _Scale(view.columns, view.typical, steady[1].spread_)
    high, low = LinearRule((0,), (1.0,), 60.0), LinearRule((0,), (-1.0,), -60.0)
    weight = LinearRule((1,), (1.0,), 70.0)
    own = placed((high, None, weight), scale)
    assert own == {"root": high, "no": weight}
    assert placed((low, weight, None), scale, own) == {"root": low, "no": weight}
    assert placed((high, weight, None), scale, own) == {"root": high, "yes": weight}
    assert placed((None, high, None), scale) == {"root": high}  # a node that asks nothing is passed over


def test_the_threshold_of_several_terms_is_that_of_a_typical_row(steady):
    view = tree_view(steady[1])
    scale = _Scale(view.columns, view.typical, steady[1].spread_)
    rule = LinearRule((1, 0), (0.1, 2.0), 100.0)
    feature, threshold = scale.leading(rule)
    X = steady[0].X
    assert feature == "age"
    assert 2 * threshold + 0.1 * X["weight"].mean() == pytest.approx(100.0)


def test_the_picture_and_the_report_show_it(steady, table):
    data, tree = steady
    ax = plot_split_stability(table)
    words = [text.get_text() for text in ax.texts]
    assert any(text.startswith(f"root: {table.loc['root', 'rule']}") for text in words)
    page = report_html(tree, data, n_boot=20, stability=2)
    assert "Stability of the splits" in page
    assert "hazard ratio" in page
    assert "Stability" not in report_html(tree, data, n_boot=20)


def test_what_has_no_rules_is_refused(gbsg2, steady):
    with pytest.raises(InvalidParameterError, match="tree must have rules"):
        split_stability(gbsg2.tree, gbsg2.train)
    models = OptimalModelTree(max_depth=1, complexity=0.0).fit(steady[0])
    with pytest.raises(InvalidParameterError, match="use a SoftSurvivalTree of rules"):
        split_stability(models, steady[0], n=2)
    told = "Stability over bootstrap samples is measured for soft trees of rules alone."
    assert told in report_html(models, steady[0], n_boot=20, stability=2)
    with pytest.raises(InvalidParameterError, match="n must be an integer >= 2, got 1"):
        split_stability(steady[1], steady[0], n=1)


def test_one_sample_with_a_feature_is_no_range(steady, monkeypatch):
    """The 5th and the 95th centile of one threshold were told as "90 % within 24 to 24"."""
    data, tree = steady
    own = tree.tree_.rules
    other = tuple(LinearRule((1,), (1.0,), 70.0) for _ in own)
    monkeypatch.setitem(unwrap(split_stability).__globals__, "_again", lambda *given: [own, other, other])
    table = split_stability(tree, data, n=3)
    assert np.isnan(table.loc["root", ["lower", "upper"]].astype(float)).all()
    (found,) = table.attrs["thresholds"]["root"]
    words = [text.get_text() for text in plot_split_stability(table).texts]
    assert any(f"(threshold {found:.4g}: {found:.4g} in the one sample with this feature)" in text for text in words)
    monkeypatch.setitem(unwrap(split_stability).__globals__, "_again", lambda *given: [own, own, other])
    words = [text.get_text() for text in plot_split_stability(split_stability(tree, data, n=3)).texts]
    assert any(f"90 % of 2 samples within {found:.4g} to {found:.4g})" in text for text in words)
