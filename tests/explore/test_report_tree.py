"""The report's sections on the tree: leaves compared by the log-rank test, numbers at risk, and a section a leaf."""

import re
from dataclasses import replace

import lifelines.statistics
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from softsurv.explore.curves import leaf_summary
from softsurv.explore.report_tree import (
    leaf_sections,
    logrank_words,
    stability_section,
    summary_section,
    write_at_risk,
)
from softsurv.explore.view import tree_view


def test_numbers_at_risk_stand_under_the_ticks(gbsg2):
    ax = Figure().subplots()
    ax.set_xlim(0, 2000)
    write_at_risk(ax, gbsg2.test)
    time = gbsg2.test.time.numpy()
    assert [text.get_text() for text in ax.texts] == [
        f"{(time >= max(tick, 1e-9)).sum():.4g}" for tick in ax.get_xticks() if tick <= 2000
    ]


def test_the_leaves_are_compared_by_the_log_rank_test(gbsg2, stump):
    leaf, y = gbsg2.tree.apply(gbsg2.test.X), gbsg2.test
    statistic = lifelines.statistics.multivariate_logrank_test(y.time.numpy(), leaf, y.event.numpy()).test_statistic
    said = logrank_words(gbsg2.tree, gbsg2.test)
    assert f"statistic {statistic:.4g} on {np.unique(leaf).size - 1} degrees of freedom" in said
    assert logrank_words(stump.tree, stump.data) == ""  # a single leaf has nothing to differ from
    one_leaf = gbsg2.test.take(leaf == leaf[0])
    assert logrank_words(gbsg2.tree, one_leaf) == ""


@pytest.mark.parametrize("which", ["optimal", "lopsided"])
def test_every_leaf_that_rows_reach_has_a_section_with_its_numbers(which, request):
    subject = request.getfixturevalue(which)
    data = getattr(subject, "data", None) or subject.test
    summary, view = leaf_summary(subject.tree, data), tree_view(subject.tree)
    sections = leaf_sections(subject.tree, data, "days")
    assert [name for name, *_ in sections] == [f"leaf-{k}" for k in view.leaves]
    for (_, heading, body), k in zip(sections, view.leaves, strict=True):
        assert heading == f"Leaf {k}"
        n, events = summary.loc[k, ["n", "events"]].astype(int)
        if n == 0:
            assert "<img" not in body
        else:
            assert re.search(rf"\b{n} rows?\b.*\b{events} events?\b", body)
            assert "rows at risk" in body
            assert ("curves of single rows" in body) == view.soft


def test_weights_at_risk_are_called_weights(gbsg2):
    weighted = replace(gbsg2.test, weight=torch.full((gbsg2.test.n,), 0.3, dtype=torch.float64))
    (_, _, body), *_ = leaf_sections(gbsg2.tree, weighted, "days")
    assert "below the axis: weight at risk." in body
    assert "rows at risk" not in body


def test_effects_stand_with_their_leaf_and_intervals(gbsg2, optimal):
    summary = gbsg2.tree.summary()
    section = summary_section(gbsg2.tree)
    leaf, feature, words = summary.effects.index[0]
    first = summary.effects.iloc[0]
    place = "" if leaf == "all" else f"leaf {leaf}: "
    assert f">{place}{feature}, {words}</th>" in section
    assert f">{first['effect']:.4g}</td>" in section
    assert "coefficient" not in section
    assert "Typical row of each leaf" in section
    assert "Stability over bootstrap samples is measured for soft trees of rules" in stability_section(
        optimal.tree, optimal.test, 20, 0
    )
