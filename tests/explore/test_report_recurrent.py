"""What a report says where events recur: those of one subject may depend on one another."""

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree, SoftSurvivalTree, survival_data
from softsurv.explore import leaf_summary, write_report
from softsurv.explore.report_tree import logrank_words
from softsurv.metrics.logrank import logrank_test


def repairs(recurrent=True):
    """Forty machines of very unequal failure rates; without recurrent, up to the first failure."""
    rng, rows = np.random.default_rng(0), []
    for machine in range(40):
        ends = np.unique(rng.integers(1, 60, rng.integers(1, 9)))
        begins = [0, *ends[:-1]]
        for begin, end in zip(begins, ends, strict=True):
            rows.append((machine, begin, end, end < ends[-1], machine % 2, round(rng.random(), 2)))
    frame = pd.DataFrame(rows, columns=["machine", "begin", "end", "broke", "old", "load"])
    frame = frame if recurrent else frame.groupby("machine").head(1)
    return survival_data(frame, start="begin", stop="end", event="broke", id="machine", recurrent=recurrent)


@pytest.fixture(scope="module", params=[OptimalSurvivalTree, SoftSurvivalTree])
def tree(request):
    settings = {"leaf": "exponential", "depth": 1, "max_terms": 1, "l2": 0.1, "shrinkage": 0.1, "n_restarts": 1}
    kind = request.param
    return kind(**(settings if kind is SoftSurvivalTree else {"max_depth": 1})).fit(repairs())


def test_the_test_between_leaves_is_robust_by_subject(tree):
    data = repairs()
    known = {"time": data.time.numpy(), "event": data.event.numpy(), "entry": data.entry.numpy()}
    leaf = tree.apply(data.X)
    robust = logrank_test(group=leaf, subject=data.subject.numpy(), **known)
    assert robust.degrees_of_freedom == 1
    assert f"{robust.statistic:.4g}" != f"{logrank_test(group=leaf, **known).statistic:.4g}"
    told = logrank_words(tree, data)
    assert told.startswith("Log-rank test that events have one rate in all leaves, robust by subject")
    assert f"statistic {robust.statistic:.4g} on 1 degrees" in told


def test_no_interval_takes_the_events_of_a_subject_for_independent(tree):
    for data in (None, repairs()):
        found = leaf_summary(tree, data)
        assert found["median"].notna().all()
        assert found[["median_lower", "median_upper"]].isna().all(axis=None)
    assert leaf_summary(tree, repairs(recurrent=False))["median_lower"].notna().any()


def test_a_report_says_what_its_curves_are(tree, tmp_path):
    page = write_report(tree, repairs(), tmp_path / "report.html", n_boot=20).read_text()
    assert "Events recur. Survival curves, medians and means on this page" in page
    assert "curve of all rows with its 95 % interval" not in page
    assert "Kaplan-Meier with its 95 % interval" not in page
