"""Explanations in words, and the changes that lead elsewhere."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from softsurv import OptimalSurvivalTree, SoftSurvivalTree
from softsurv.errors import DataWarning, InvalidParameterError
from softsurv.explore import explain
from softsurv.explore.view import tree_view
from softsurv.explore.words import apart_words


def test_explanation_follows_the_path(gbsg2):
    for k in range(0, gbsg2.test.n, 40):
        row = gbsg2.test.X.iloc[[k]]
        said = explain(gbsg2.tree, row)
        assert said.leaf == gbsg2.tree.apply(row)[0]
        product = np.prod([step.probability for step in said.steps])
        assert product == pytest.approx(gbsg2.tree.leaf_probability(row)[0, said.leaf])
        assert all(step.probability >= 0.5 for step in said.steps)
        text = str(said)
        assert all(
            words in text for words in (f"Leaf {said.leaf}:", "Its curve: median", *(s.rule for s in said.steps))
        )


def test_pushes_add_up_to_the_difference_from_a_typical_row(gbsg2):
    view = tree_view(gbsg2.tree)
    x = view.encode(gbsg2.test.X.iloc[[3]])[0]
    for node in view.branches:
        margin, usual = (node.split.weights[0] + node.split.weights[1:] @ v for v in (x, view.typical))
        assert sum(node.split.pushes(x, view.typical).values()) == pytest.approx(margin - usual)


@pytest.mark.parametrize("form", ["frame", "series", "dict", "data", "polars"])
def test_a_row_comes_in_any_form(mixed, form):
    frame = mixed.data.X.iloc[[7]]
    forms = {
        "frame": frame,
        "series": frame.iloc[0],
        "dict": frame.iloc[0].to_dict(),
        "data": mixed.data.take([7]),
        "polars": pl.DataFrame({name: frame[name].tolist() for name in frame}),
    }
    assert str(explain(mixed.tree, forms[form])) == str(explain(mixed.tree, frame))


def test_several_rows_are_refused(mixed):
    with pytest.raises(InvalidParameterError, match="row must be one row as a frame, a Series or a dict, got 2 rows"):
        explain(mixed.tree, mixed.data.X.iloc[:2])


def test_times_carry_their_unit_and_empty_leaves_are_named(lopsided, stump):
    assert "days" in str(explain(lopsided.tree, lopsided.data.take([0])))
    assert "weeks" in str(explain(stump.tree, stump.data.X.iloc[[0]], time_unit="weeks"))


def test_an_optimal_path_in_words(uneven):
    row = uneven.data.X.iloc[[9]]
    said = explain(uneven.tree, row)
    assert said.leaf == uneven.tree.apply(row)[0]
    assert [step.rule for step in said.steps] == [
        uneven.tree.tree_.text(node) for node, _ in uneven.tree.tree_.path(said.leaf)
    ]
    assert all(step.probability is None for step in said.steps)
    for step in said.steps:
        ((words, push),) = step.reasons
        assert (push > 0) == step.left
        name = words.split()[0]
        assert name in step.rule
        value = row[name].iloc[0]
        assert words == (f"{name} = {value}" if isinstance(value, str) else f"{name} = {value:.4g}")


def test_a_missing_answer_is_told_with_what_it_counts_as(uneven):
    used = {node.split.source.name for node in tree_view(uneven.tree).branches}
    name = "age" if "age" in used else used.pop()
    row = uneven.data.X.iloc[[9]].assign(**{name: np.nan})
    fill = next(source.fill for source in uneven.tree.tree_.sources if source.name == name)
    with pytest.warns(DataWarning, match=f"none missing in training: '{name}' in 1 row"):
        assert f"{name} is missing and counts as {fill}" in str(explain(uneven.tree, row))


def test_what_sets_rows_apart_reads_well(mixed):
    rows = np.flatnonzero(mixed.tree.apply(mixed.data) == mixed.tree.apply(mixed.data)[0])
    words = apart_words(view := tree_view(mixed.tree), view.encode(mixed.data.X), rows)
    share = (mixed.data.X["grade"].iloc[rows] == "III").mean()
    assert words.loc["grade=III", "here"] == f"{share:.0%}"
    assert words.loc["age", "here"] == f"{mixed.data.X['age'].iloc[rows].mean():.4g}"
    assert words["difference"].str.fullmatch(r"[+-]\d+\.\d\d").all()


def test_only_the_terms_of_a_rule_are_argued_with(ruled):
    X, tree = ruled
    asked = set()
    for k in range(0, 500, 25):
        if X.iloc[k].isna().any():
            continue
        for step in explain(tree, X.iloc[[k]]).steps:
            source = step.rule.split(" ")[0]
            asked.add(source)
            ((reason, push),) = step.reasons
            shown = f"{X[source].iloc[k]:g}" if source == "age" else X[source].iloc[k]
            assert reason == f"{source} = {shown}"
            assert (push > 0) == step.left
    assert asked == {"age", "grade"}


def test_imputed_values_and_unseen_levels_are_marked(ruled):
    X, tree = ruled
    said = str(explain(tree, {"age": np.nan, "grade": "I"}))
    assert f"age = {X['age'].mean():.6g}, imputed" in said
    with pytest.warns(DataWarning, match="not seen in training"):
        said = str(explain(tree, {"age": 50.0, "grade": "IV"}))
    assert "grade = IV, a level that was not seen in training" in said


def test_the_typical_row_of_plain_numbers_is_their_mean():
    rng = np.random.default_rng(0)
    x = rng.normal([5, 100], [1, 10], (80, 2))
    tree = SoftSurvivalTree(depth=0, leaf="weibull", l2=1.0, preprocess=False).fit(
        x, (np.ones(80, bool), rng.random(80) + 0.1)
    )
    np.testing.assert_allclose(tree_view(tree).typical, x.mean(0))


@pytest.mark.parametrize(
    "estimator", [SoftSurvivalTree(depth=1, leaf="weibull", l2=0.1), OptimalSurvivalTree(max_depth=1)]
)
def test_a_level_that_reads_as_an_operator_is_in_quotes(estimator):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.choice(["<=20mm", ">20mm"], 200), "dose": rng.normal(size=200)})
    time = rng.weibull(1.5, 200) * np.where(X["size"] == ">20mm", 0.2, 1.0)
    said = str(explain(estimator.fit(X, (np.ones(200, bool), time)), X[X["size"] == "<=20mm"].head(1)))
    assert 'size = "<=20mm"' in said
    assert "= <=" not in said


@pytest.mark.parametrize(
    ("leaf", "note"), [("nelson_aalen", "Relative risk: the hazard"), ("km", "Time lost: expected before")]
)
def test_the_number_that_ranks_a_leaf_is_told_as_the_text_prints_it(leaf, note, gbsg2):
    tree = OptimalSurvivalTree(max_depth=1, leaf=leaf).fit(gbsg2.train.X, gbsg2.train.y)
    row = gbsg2.test.X.head(1)
    told, number = str(explain(tree, row)), int(tree.apply(row)[0])
    assert f"{tree.ranked_by()[number]}. {note}" in told
    assert tree.ranked_by()[number] in tree.export_text()


def test_recurrent_events_are_told_as_mean_counts():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=60)})
    columns = {"start": [0.0] * 30 + [1.0] * 30, "stop": [1.0] * 30 + [3.0] * 30, "id": [*range(30)] * 2}
    tree = OptimalSurvivalTree(max_depth=0).fit(X, event=rng.random(60) < 0.7, recurrent=True, **columns)
    told = str(explain(tree, X.head(1)))
    assert f"{tree.predict_mean_count(X.head(1), [2.0])[0, 0]:.2f} by 2" in told
    assert "median" not in told


def test_a_number_of_reasons_that_is_none_is_told(gbsg2):
    with pytest.raises(InvalidParameterError, match="n_reasons must be an integer >= 0, got 'a'"):
        explain(gbsg2.tree, gbsg2.test.X.iloc[[0]], n_reasons="a")


@pytest.mark.parametrize("estimator", [OptimalSurvivalTree(max_depth=1, tune=None), SoftSurvivalTree(1, max_terms=1)])
def test_numbers_given_as_text_are_told_as_numbers(estimator):
    """Where a column of text was read as numbers, an optimal tree ended in a ValueError on the format of text."""
    rng = np.random.default_rng(0)
    number = rng.integers(0, 500, 200) / 2
    frame = pd.DataFrame({"x": number.astype(str)})
    tree = estimator.fit(frame, time=1 + 99.0 * (number > 120) + rng.random(200), event=np.ones(200, bool))
    for text, told in (("17.0", "17"), ("17.5", "17.5")):
        found = re.findall(r"x = ([\d.]*\d)", str(explain(tree, pd.DataFrame({"x": [text]}))))
        assert set(found) == {told}
