"""What the scripts of paper `osst` compute beside the searches: trees of R, comparisons by leaves, printed figures."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"
LADDER = [{"leaves": leaves, "train": ratio, "test": 0.0} for leaves, ratio in ((2, 0.1), (4, 0.3), (6, 0.25))]


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    yield
    for name in [name for name in sys.modules if name.startswith(("_osst", "_r_trees"))]:
        del sys.modules[name]


def need_r():
    from _osst_r import why_not

    if why := why_not():
        pytest.skip(why)


def two_groups(n=120, seed=4):
    """Columns (N, 3), the first of which halves the times; every fourth row censored."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (n, 3)).astype(np.uint8)
    return x, np.ceil(20 * rng.random(n) * (1 + x[:, 0])), np.arange(n) % 4 > 0


@pytest.mark.parametrize(("leaves", "found"), [(1, (1, 0.0)), (3, (2, 0.1)), (5, (4, 0.3)), (9, (4, 0.3))])
def test_the_best_tree_of_at_most_so_many_leaves(leaves, found):
    from _osst_r import at_most

    best = at_most([{**one, "method": "RPART"} for one in LADDER], "RPART", leaves)
    assert (best["leaves"], best["train"]) == found
    assert at_most([{**one, "method": "RPART"} for one in LADDER], "CTree", leaves)["leaves"] == 1


def test_a_lead_is_that_of_ours_with_at_most_as_many_leaves():
    from _osst_beside import beside

    row = beside("RPART", [0.0, 0.1, 0.15, 0.35], LADDER)
    assert row["RPART: ours not behind"] == "3 of 3"
    assert row["RPART: our lead, least and median"] == "+0.0000, +0.0500"
    assert beside("RPART", [0.0, 0.05], LADDER)["RPART: ours not behind"] == "0 of 3"


def test_lambdas_of_the_same_trees_share_a_line():
    from _osst_beside import add

    table: list[dict] = []
    for c, leaves in (("0.1", 2), ("0.05", 2), ("0.01", 3)):
        add(table, {"lambda": c, "leaves": leaves})
    assert table == [{"lambda": "0.1, 0.05", "leaves": 2}, {"lambda": "0.01", "leaves": 3}]


def test_our_trees_of_every_size_are_the_best_of_their_depth():
    from _osst_beside import every_size
    from _osst_models import our_tree

    data = two_groups()
    found = every_size(data, 2, SimpleNamespace(time_limit=10.0))
    assert found["status"] == "optimal"
    assert found["ratios"] == sorted(found["ratios"])
    for complexity in (0.0, 0.01, 0.1):
        one = our_tree(data, data, 2, complexity, 10.0)
        assert one["train"] == pytest.approx(found["ratios"][one["leaves"] - 1])


def test_without_r_a_sentence_says_so_and_no_column_is_made_up(monkeypatch, tmp_path):
    import _osst_beside
    import _osst_r
    import _r_trees
    from _results import Results

    _r_trees.missing_r.cache_clear()
    monkeypatch.setattr(_r_trees.shutil, "which", lambda name: None)
    try:
        assert "there is no Rscript" in (_osst_r.why_not() or "")
        monkeypatch.setattr(_osst_beside, "load", lambda folder, name: two_groups())
        options = SimpleNamespace(data=tmp_path, sets=["a"], time_limit=10.0, complexity=[0.001], quick=False, depths=1)
        monkeypatch.setattr("_osst_whole.load", lambda folder, name: two_groups())
        rows = _osst_beside.frontier(options, Results(tmp_path / "r.jsonl"))
        rows += _osst_beside.optimality(options, Results(tmp_path / "r.jsonl"))
        assert len(rows) == 2
        assert not [key for row in rows for key in row if key.startswith(("CTree", "RPART"))]
    finally:
        _r_trees.missing_r.cache_clear()


@pytest.mark.slow
def test_trees_of_r_keep_to_their_settings():
    need_r()
    from _osst_r import RPART_COSTS, r_trees

    data = two_groups(400)
    found = pd.DataFrame(r_trees(data, data, range(1, 4))["trees"])
    assert len(found) == 3 * (1 + len(RPART_COSTS))
    assert (found["deepest"] <= found["depth"]).all()
    rpart = found[found["method"] == "RPART"]
    assert (rpart.sort_values(["depth", "cp"]).groupby("depth")["leaves"].diff().dropna() <= 0).all()
    np.testing.assert_allclose(found["train"], found["test"])
    few = pd.DataFrame(r_trees(data, data, range(3, 4), 1)["trees"])
    assert few["leaves"].max() >= found["leaves"].max()


@pytest.mark.slow
def test_rpart_is_the_printed_tree_of_figure_35():
    """27.95 %, ten leaves, at depth 4 with leaves of any size."""
    need_r()
    folder = Path(os.environ.get("SOFTSURV_DATA", "data")) / "osst"
    if not (folder / "veterans.csv").exists():
        pytest.skip("needs the sets of paper osst in SOFTSURV_DATA")
    from _osst_beside import by_depth
    from _osst_models import load
    from _osst_printed import PRINTED_TREES
    from _osst_r import r_trees

    data = load(folder, "veterans")
    found = [one for one in r_trees(data, data, range(4, 5), 1)["trees"] if one["method"] == "RPART"]
    (printed,) = [one[4] for one in PRINTED_TREES if one[2] == "RPART"]
    assert by_depth({4: found}, 10) == f"depth 4: {printed}"


def test_every_set_has_the_seconds_of_the_other_methods():
    from _osst_greedy import DEPTHS, PRINTED
    from _osst_printed import PRINTED_TIMES

    table = pd.read_csv(PRINTED)
    assert table.notna().all().all()
    found = {name: tuple(lines["depth"]) for name, lines in table.groupby("set")}
    assert found == dict.fromkeys(PRINTED_TIMES, tuple(DEPTHS))


def test_a_method_that_took_too_long_is_asked_no_more(monkeypatch, tmp_path):
    import _osst_household
    from _results import Results

    monkeypatch.setattr(_osst_household, "SIZES", (100, 200, 400))
    monkeypatch.setattr(_osst_household, "CENSORED", (0.5,))
    monkeypatch.setattr(_osst_household, "why_not", lambda: "no R")
    monkeypatch.setattr(_osst_household, "of_sksurv", lambda data, limit: {"seconds": len(data[0]) / 100, "end": ""})
    options = SimpleNamespace(data=tmp_path, time_limit=1.5)
    rows = _osst_household.household(options, Results(tmp_path / "r.jsonl"))
    assert [row["scikit-survival (s)"] for row in rows] == ["1.000", "2.000", "not asked"]
    assert {row["rows of"] for row in rows} == {"drawn"}
    assert all(row["ours: leaves"] >= 1 for row in rows)
    _, _, event = _osst_household.sample(tmp_path, 2000, 0.8)
    assert event.mean() == pytest.approx(0.2, abs=0.03)
