"""Levels that read as operators are in quotes wherever a person reads them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree, SoftSurvivalTree
from softsurv.data.preprocess import Preprocessor
from softsurv.data.readers import survival_data
from softsurv.explore import leaf_summary, report_html

LEVELS = ["20-50mm", "<=20mm", ">50mm"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    size = rng.choice(LEVELS, 300)
    time = rng.weibull(1.3, 300) * np.where(size == ">50mm", 5.0, 20.0) + 0.1
    frame = pd.DataFrame({"size": size, "age": rng.normal(60, 9, 300), "time": time, "event": rng.random(300) < 0.7})
    return survival_data(frame, time="time", event="event")


def test_columns_of_levels_are_named_with_quotes(rows):
    names = {column.name for column in Preprocessor().fit(rows.X).columns_}
    assert names == {"size=20-50mm", 'size="<=20mm"', 'size=">50mm"', "age"}


@pytest.mark.parametrize(
    "tree",
    [SoftSurvivalTree(depth=1, leaf="weibull", l2=0.3, shrinkage=10.0, device="cpu"), OptimalSurvivalTree(max_depth=1)],
    ids=["soft", "optimal"],
)
def test_what_a_person_reads_has_quotes(tree, rows):
    """Nowhere does a sign of equality stand beside a bare level."""
    tree.fit(rows)
    page = report_html(tree, rows, n_boot=20)
    said = [page, tree.export_text(), str(tree.explain(rows.X.head(1))), leaf_summary(tree, rows).to_string()]
    said += [str(tree.summary())] if hasattr(tree, "summary") else []
    text = "\n".join(said).replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&#x27;", "'")
    for bare in ("=<=20mm", "=>50mm", "= <=20mm", "= >50mm", "size <=20mm", "size >50mm", ", >50mm vs", " vs <=20mm"):
        assert bare not in text, bare
    assert '">50mm"' in text or '"<=20mm"' in text
