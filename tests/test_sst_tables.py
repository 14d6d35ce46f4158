"""The scripts that repeat the experiments of paper `sst`: tables beside print, runs that go on, equal starts."""

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from softsurv import load_dataset
from softsurv.errors import DataWarning

SCRIPTS = Path(__file__).parents[1] / "scripts"


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)


@pytest.fixture
def tables():
    import _sst_tables

    return _sst_tables


@pytest.fixture
def encoded():
    from softsurv.data.preprocess import Preprocessor

    data = load_dataset("veterans")
    return data.with_features(Preprocessor().fit(data.X).transform(data.X))


def fold(name, number, method, starts=None, **values):
    line = {"set": name, "variant": "default", "seed": 0, "fold": number, "method": method, "cpu_seconds": 1.0}
    return line | values | ({"starts": starts} if starts else {})


def printed_folds(tables, added):
    """Two folds of every set whose means are the printed figures plus something."""
    lines = []
    for name in tables.SETS:
        means = {m: tables.printed_by_set("Llog", m, 2)[name] for m in (*tables.MEASURES, *tables.PRINTED_MEASURE)}
        for number, off in enumerate((-0.1, 0.1)):
            values = {m: mean + added + off for m, mean in means.items()}
            lines.append(fold(name, number, "paper:loglogistic:2", {m: [v, v] for m, v in values.items()}, **values))
    return pd.DataFrame(lines)


def rows_of(markdown):
    """A Markdown table as one dictionary a row."""
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown.splitlines()]
    return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.mark.parametrize(
    ("method", "column"),
    [
        ("paper:loglogistic:2", ("Llog", 2)),
        ("paper:loglogistic:1:kmeans", ("Llog-init", 1)),
        ("paper:spline_ph:2", ("PH", 2)),
        ("tree5", ("SkSurv", 5)),
        ("ctree3", ("CTree", 3)),
        ("rpart2", ("RPART", 2)),
        ("cox", None),
        ("twin:loglogistic:2", None),
        ("paper:loglogistic:2 (thresholds of the text)", None),
    ],
)
def test_a_method_has_its_printed_column(tables, method, column):
    assert tables.column_of(method) == column


@pytest.mark.parametrize(("added", "mean", "below"), [(0.02, "+0.020", "0"), (-0.01, "-0.010", "13")])
def test_distances_from_print_keep_their_sign(tables, added, mean, below):
    rows = rows_of(tables.distances(printed_folds(tables, added)))
    assert [row["reading"] for row in rows] == ["harrell_c", "harrell_c_ties", "uno_c", "cd_auc", "ibs", "ibs_log"]
    for row in rows:
        assert (row["mean"], row["below print"], row["sets"], row["aids"]) == (mean, below, "13", mean)
        assert not {"flchain", "uissurv"} & set(row)


def test_distances_at_depth_one_are_those_of_soft_trees_alone(tables):
    frame = pd.DataFrame([fold("aids", 0, method, harrell_c=0.8) for method in ("paper:weibull:1", "tree5")])
    rows = rows_of(tables.distances(frame, 1))
    print_ = tables.printed_by_set("W", "harrell_c", 1)["aids"]
    assert {row["column"] for row in rows} == {"W"}
    assert rows[0]["aids"] == f"{0.8 - print_:+.3f}"


def test_a_cell_has_our_mean_over_folds_and_the_printed_one(tables):
    rows = rows_of(tables.beside_print(printed_folds(tables, 0.001), "harrell_c", 2))
    assert rows[0] == {"set": "aids", "Llog": "0.742 / 0.741"}
    assert [row["set"] for row in rows[-2:]] == ["mean", "mean without flchain and uissurv"]
    print_ = tables.printed_by_set("Llog", "harrell_c", 2)
    assert rows[-2]["Llog"] == f"{print_.mean() + 0.001:.3f} / {print_.mean():.3f}"
    rest = print_.drop(["flchain", "uissurv"]).mean()
    assert rows[-1]["Llog"] == f"{rest + 0.001:.3f} / {rest:.3f}"


def test_a_printed_zero_is_no_figure(tables):
    assert "flchain" not in tables.printed_by_set("Llog", "harrell_c", 1, "train")
    assert "flchain" in tables.printed_by_set("Llog", "harrell_c", 1)


def test_means_are_over_the_sets_that_both_have(tables):
    frame = printed_folds(tables, 0.0)
    few = frame[frame["set"].isin(["aids", "credit"])]
    row = rows_of(tables.beside_print(few, "ibs", 2))[-2]
    print_ = tables.printed_by_set("Llog", "ibs", 2)[["aids", "credit"]].mean()
    assert row["Llog"] == f"{print_:.3f} / {print_:.3f}"


def test_deviations_are_over_folds_and_starts(tables):
    starts = [{"uno_c": [0.6, 0.7]}, {"uno_c": [0.8, 0.9]}]
    frame = pd.DataFrame([fold("aids", k, "paper:weibull:1", s, uno_c=0.7) for k, s in enumerate(starts)])
    ours = np.std([0.6, 0.7, 0.8, 0.9])
    print_ = tables.printed_by_set("W", "uno_c", 1, what="sd")["aids"]
    assert rows_of(tables.deviations(frame, "uno_c", 1))[0]["W"] == f"{ours:.3f} / {print_:.3f}"


def test_runs_name_the_sets_with_fewer_starts(tables):
    many, few = ({"harrell_c": [0.5] * n} for n in (20, 5))
    lines = [
        fold("aids", 0, "paper:weibull:2", many),
        fold("employee", 0, "paper:weibull:2", few),
        fold("aids", 0, "km"),
    ]
    paper, km = rows_of(tables.runs(pd.DataFrame(lines)))
    assert (paper["sets"], paper["starts a fold"], paper["fewer starts"]) == ("2", "20", "5: employee")
    assert (km["starts a fold"], km["fewer starts"]) == ("1", "")


def test_twin_and_preset_are_compared_on_the_starts_that_both_have(tables):
    preset = {m: [0.7, 0.8, 0.0] for m in tables.MEASURES}
    twin = {m: [0.6, 0.8] for m in tables.MEASURES}
    lines = [fold("aids", 0, "paper:loglogistic:2", preset), fold("aids", 0, "twin:loglogistic:2", twin)]
    row = rows_of(tables.twin_beside_preset(pd.DataFrame(lines)))[0]
    assert (row["preset ibs"], row["twin ibs"], row["preset less twin, harrell_c"]) == ("0.75", "0.7", "+0.0500")
    assert tables.twin_beside_preset(pd.DataFrame(lines[:1])) == ""


def test_choices_count_single_and_shrunken_leaves(tables):
    chosen = [(0.0, 1), (3.0, 4), (0.0, 2), (3.0, 1)]
    lines = [fold("aids", k, "default", candidate={"shrinkage": s}, leaves=n) for k, (s, n) in enumerate(chosen)]
    *_, last = rows_of(tables.choices(pd.DataFrame([*lines, fold("aids", 0, "km")])))
    counted = {"folds": "4", "one leaf": "2", "shrunken": "1", "penalties": "3", "mean leaves": "2.0"}
    assert last == {"set": "all"} | counted


def test_the_default_stands_beside_those_that_have_its_sets(tables):
    def folds(method, sets, value):
        same = dict.fromkeys(tables.MEASURES, value)
        return [fold(name, k, method, **same) for name in sets for k in range(5)]

    lines = folds("default", ["aids", "credit"], 0.7) + folds("cox", ["aids", "credit", "gbsg2"], 0.8)
    lines += folds("tree5", ["aids", "gbsg2"], 0.9)
    rows = rows_of(tables.beside_default(pd.DataFrame(lines)))
    assert [(row["method"], row["sets"], row["ibs"]) for row in rows] == [("cox", "2", "0.8"), ("default", "2", "0.7")]
    assert tables.beside_default(pd.DataFrame(lines[10:])) == ""


def test_pages_hold_every_table_and_no_nan(tables):
    from _sst_report import report, training_report

    frame = printed_folds(tables, 0.0)
    frame = pd.concat([frame, pd.DataFrame([fold("aids", 0, "cox", harrell_c=0.7, **{"train ibs": 0.1})])])
    frame[[f"train {m}" for m in tables.MEASURES]] = 0.5
    held_out, training = report(frame), training_report(frame)
    for title in ("What was run", "Ours less printed", "Benchmarks at depths 2 to 5", "ibs_log, depth 2"):
        assert f"## {title}" in held_out
    assert "## cd_auc on training rows, depth 2" in training
    assert "## harrell_c standard deviations on held-out rows, depth 2" in training
    assert " nan" not in held_out + training


def test_data_as_printed_stand_beside_ours(tables):
    lines = [fold("flchain", 0, m, **dict.fromkeys(tables.MEASURES, 0.7)) for m in ("cox", "paper:loglogistic:2")]
    lines += [line | {"variant": "paper"} | dict.fromkeys(tables.MEASURES, 0.9) for line in lines]
    rows = rows_of(tables.with_printed_data(pd.DataFrame(lines)))
    cells = [(row["method"], row["our data"], row["data as printed"], row["printed"]) for row in rows[::4]]
    assert cells == [("cox", "0.7", "0.9", "-"), ("paper:loglogistic:2", "0.7", "0.9", "0.933")]


# -- runs ------------------------------------------------------------------------------------------------------------
def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    import reproduce_sst

    asked = []

    def run_fold(name, variant, seed, number, method, how):
        asked.append((name, number, method))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return fold(name, number, method, **dict.fromkeys(reproduce_sst.MEASURES, 0.5))

    monkeypatch.setattr(reproduce_sst, "run_fold", run_fold)
    command = ["reproduce_sst.py", "--sets", "aids", "--methods", "km", "--out", str(tmp_path / "r.jsonl")]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(KeyboardInterrupt):
        reproduce_sst.main()
    reproduce_sst.main()
    assert asked == [("aids", k, "km") for k in (0, 1, 2, 2, 3, 4)]
    monkeypatch.setattr(sys, "argv", [*command[:4], *command[5:]])  # no method: tables alone
    reproduce_sst.main()
    assert len(asked) == 6
    assert (tmp_path / "r.md").read_text() in capsys.readouterr().out
    assert (tmp_path / "r_training.md").exists()


def test_more_starts_run_the_folds_again_that_had_fewer(tmp_path, monkeypatch):
    import reproduce_sst
    from _sst_report import finished

    asked = []

    def run_fold(name, variant, seed, number, method, how):
        asked.append((method, number, how.starts))
        starts = {m: [0.5] * how.starts for m in reproduce_sst.MEASURES}
        return fold(name, number, method, starts if ":" in method else None, **dict.fromkeys(starts, 0.5))

    monkeypatch.setattr(reproduce_sst, "run_fold", run_fold)
    command = ["reproduce_sst.py", "--sets", "aids", "--folds", "0", "--methods", "paper:weibull:1", "km"]
    for starts in ("2", "5", "3"):
        monkeypatch.setattr(sys, "argv", [*command, "--out", str(tmp_path / "r.jsonl"), "--starts", starts])
        reproduce_sst.main()
    assert asked == [("paper:weibull:1", 0, 2), ("km", 0, 2), ("paper:weibull:1", 0, 5)]
    frame = finished(tmp_path / "r.jsonl")
    assert len(frame) == 2
    assert {len(s["ibs"]) for s in frame["starts"].dropna()} == {5}


def test_fairness_fits_are_not_repeated(tmp_path, monkeypatch):
    import reproduce_fairness
    from _results import Results

    fits = []
    monkeypatch.setattr(reproduce_fairness, "STRENGTHS", (0, 5))
    monkeypatch.setattr(reproduce_fairness, "DECADES", ())
    part = {"gini": 0.5}

    def run_fit(*at):
        fits.append(at)
        return {"fairness": 1.0, "train": part, "test": part}

    monkeypatch.setattr(reproduce_fairness, "run_fit", run_fit)
    for _ in range(2):
        frame = reproduce_fairness.run(Results(tmp_path / "f.jsonl"), 2, "paper", "sum")
    assert fits == [(f, k, "paper", "sum") for f in (0, 1) for k in (0, 5)]
    assert list(frame.groupby(["fold", "k", "part"]).size()) == [1] * 8
    assert json.loads((tmp_path / "f.jsonl").read_text().splitlines()[0])["case"] == "paper/sum/0/0"


def test_the_strength_beside_a_mean_is_n_times_that_beside_a_sum(encoded):
    import reproduce_fairness

    of_mean, of_sum = (reproduce_fairness.strength(5, encoded, error) for error in ("mean", "sum"))
    assert of_mean == 5 * len(np.unique(encoded.time.numpy()))
    assert of_sum == pytest.approx(of_mean / encoded.n)


# -- models ----------------------------------------------------------------------------------------------------------
def test_the_twin_begins_where_the_preset_does(encoded, monkeypatch):
    import _sst_twin
    import reproduce_sst

    from softsurv.soft import fit

    starts, stacks = [], []

    def at_start(routing, leaves, rows, analytic):
        starts.append((routing, leaves))
        return routing, leaves, 0.0

    whole = fit.fit_stack

    def keep(stack, *others):
        stacks.append(stack)
        return whole(stack, *others)

    monkeypatch.setattr(_sst_twin, "nodec_dr", at_start)
    monkeypatch.setattr(fit, "fit_stack", keep)
    _sst_twin.twin_starts(encoded, 2, [3000, 3001])
    reproduce_sst.paper_starts("loglogistic", 2, "random", encoded, 3, reproduce_sst.Asked(starts=2))
    for own, (routing, leaves) in enumerate(starts):
        np.testing.assert_allclose(stacks[0].routing[own], routing)
        np.testing.assert_allclose(stacks[0].leaves[own], leaves)


@pytest.mark.parametrize("method", ["km", "cox", "tree2", "rpart2", "ctree2"])
def test_benchmarks_give_falling_curves_of_both_parts(encoded, method):
    import _r_trees
    from _sst_benchmarks import fitted_curves

    if method[:-1] in _r_trees.R_PACKAGES and (why := _r_trees.missing_r(method[:-1])):
        pytest.skip(why)
    rows = np.arange(encoded.n)
    train, test = encoded.take(rows[:100]), encoded.take(rows[100:])
    times = np.array([10.0, 50.0, 200.0])
    for part, curves in zip((train, test), fitted_curves(method, train, test, 0), strict=True):
        table = np.exp(curves(times))
        assert table.shape == (part.n, 3)
        assert (np.diff(table) >= 0).all()
        distinct = len(np.unique(table.round(9), axis=0))
        assert distinct == 1 if method == "km" else distinct > 1
        assert distinct <= 4 or method == "cox"


def test_measures_of_training_rows_leave_the_readings_out(encoded):
    import reproduce_sst
    from _sst_benchmarks import benchmark_curves

    curves = benchmark_curves("cox", encoded, encoded, 0)
    whole = reproduce_sst.measures_of(encoded, encoded, curves)
    own = reproduce_sst.training_scores(encoded, curves)
    assert own == {f"train {m}": whole[m] for m in reproduce_sst.MEASURES}
    assert set(whole) == {*reproduce_sst.MEASURES, "harrell_c_ties", "ibs_log"}


def test_a_held_out_row_of_time_zero_counts_as_training_takes_it(encoded):
    """Half the smallest positive training time: below every curve's first step, and ranked before all others."""
    import reproduce_sst
    from _sst_benchmarks import benchmark_curves

    train, zero = encoded, encoded.time.clone()
    zero[:5] = 0.0
    least = float(train.time[train.time > 0].min()) / 2
    seen = []

    def curves(at):
        seen.append(at.min())
        return benchmark_curves("cox", train, encoded, 0)(at)

    with pytest.warns(DataWarning, match="time is 0 in 5"):
        held = dataclasses.replace(encoded, time=zero)
    floored = dataclasses.replace(encoded, time=torch.where(zero > 0, zero, least))
    found = reproduce_sst.measures_of(train, held, curves)
    assert found == reproduce_sst.measures_of(train, floored, curves)
    assert min(seen) > 0


def test_an_unknown_figure_is_named(tmp_path, monkeypatch, capsys):
    import draw_sst

    nowhere = str(tmp_path / "none")
    options = ["--results", nowhere, "--fairness", nowhere, "--out", str(tmp_path), "--only", "6", "7"]
    monkeypatch.setattr(sys, "argv", ["draw_sst.py", *options])
    with pytest.raises(SystemExit):
        draw_sst.main()
    assert "no figure 7; there are 6, 10, 9, 13" in capsys.readouterr().err


def test_box_plots_and_trends_are_drawn(tmp_path, tables):
    import draw_sst

    draw_sst.box_plots(printed_folds(tables, 0.0), "ibs", {"paper:loglogistic:2": "Llog"}, tmp_path / "box.png")
    names = ("gini", "gini_weighted", "penalty_per_pair", *tables.MEASURES)
    rows = [{"k": k, "part": part, **dict.fromkeys(names, 0.5)} for k in (0, 5) for part in ("train", "test")]
    draw_sst.trends(pd.DataFrame(rows), tmp_path / "7.png")
    draw_sst.accuracies(pd.DataFrame(rows), tmp_path / "11.png")
    for name in ("box", "7", "11"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
