"""The interactive page repeats the tree's arithmetic: the browser's numbers are Python's."""

import json

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree, SoftSurvivalTree
from softsurv.data.readers import survival_data
from softsurv.errors import InvalidParameterError
from softsurv.explore import crossings, explorer
from softsurv.explore.interactive import explorer_page
from softsurv.explore.payload import explorer_payload
from softsurv.explore.view import tree_view

FAMILIES = ("loglogistic", "weibull", "lognormal", "exponential", "spline_ph", "spline_po")

ALL = """
return models.map((model) => ({
  leaf: model.rows.map((row) => softsurv.route(model, row).leaf),
  routing: model.rows.map((row) => softsurv.routing(model, row)),
  survival: model.rows.map((row) => softsurv.curve(model, row)),
}));
"""


def test_routing_and_curves_equal_those_of_python(mixed, in_browser):
    settings = {"depth": 2, "l2": 1.0, "shrinkage": 0.3, "routing_l2": 0.01, "n_restarts": 1}
    trees = [SoftSurvivalTree(leaf=leaf, **settings).fit(mixed.data) for leaf in FAMILIES]
    payloads = [explorer_payload(tree, mixed.data, max_rows=80) for tree in trees]
    models = f"const models = {json.dumps(payloads)};"
    X = mixed.data.X.iloc[[int(label) for label in payloads[0]["labels"]]]
    for tree, payload, found in zip(trees, payloads, in_browser(explorer_page(payloads[0]), models + ALL), strict=True):
        np.testing.assert_array_equal(found["leaf"], tree.apply(X))
        expected = tree.predict_survival_function(X, times=payload["times"])
        np.testing.assert_allclose(found["survival"], expected, atol=1e-12)
        order = [node.branch for node in tree_view(tree).branches]
        np.testing.assert_allclose(found["routing"], tree.routing_probability(X)[:, order], atol=1e-12)


def test_crossings_equal_those_of_python(mixed, in_browser):
    script = "return MODEL.rows.map((row) => softsurv.crossings(MODEL, row))"
    found = in_browser(explorer(mixed.tree, mixed.data).page, script)
    for k in range(0, mixed.data.n, 25):
        expected = crossings(mixed.tree, mixed.data.X.iloc[[k]], mixed.data).set_index("feature")
        assert {c["feature"] for c in found[k]} == set(expected.index)
        for change in found[k]:
            row = expected.loc[change["feature"]]
            assert change["effort"] == pytest.approx(row["effort"], rel=1e-9)
            if not isinstance(change["to"], str):
                assert change["to"] == pytest.approx(row["needed"], rel=1e-9)
                assert change["leaf"] == row["leaf"]


def test_crossings_of_whole_numbers_equal_those_of_python(ruled, in_browser):
    X, tree = ruled
    data = survival_data(X, (np.ones(len(X), bool), 1.0 + np.arange(len(X))))
    page = explorer(tree, data).page
    found = in_browser(page, "return MODEL.rows.map((row) => [row, softsurv.crossings(MODEL, row)])")
    for row, changes in found[::10]:
        frame = pd.DataFrame([row]).astype({"age": float})
        expected = crossings(tree, frame, data).set_index("feature")
        assert {one["feature"]: one["to"] for one in changes} == expected["needed"].to_dict()


def test_an_optimal_tree_in_the_browser(uneven, in_browser):
    script = """
      return {
        leaf: MODEL.rows.map((row) => softsurv.route(MODEL, row).leaf),
        survival: MODEL.rows.map((row) => softsurv.curve(MODEL, row)),
        crossings: softsurv.crossings(MODEL, MODEL.rows[7]),
        words: document.getElementById("row").textContent,
      };
    """
    found = in_browser(explorer(uneven.tree, uneven.data).page, script)
    times = explorer_payload(uneven.tree, uneven.data)["times"]
    np.testing.assert_array_equal(found["leaf"], uneven.tree.apply(uneven.data))
    expected = uneven.tree.predict_survival_function(uneven.data.X, times=times)
    np.testing.assert_allclose(found["survival"], expected, atol=1e-12)
    table = crossings(uneven.tree, uneven.data.X.iloc[[7]], uneven.data)
    assert [c["feature"] for c in found["crossings"]] == table["feature"].tolist()
    assert "with probability" not in found["words"]


def test_choosing_and_moving_change_the_page(mixed, in_browser):
    script = """
      const text = (id) => document.getElementById(id).textContent;
      const before = text("row");
      VIEW.chooseRow(5);
      const chosen = text("row"), picked = document.getElementById("pick").value;
      const source = MODEL.sources.findIndex((s) => s.name === "age");
      VIEW.move(source, String(MODEL.sources[source].high));
      const moved = text("row");
      document.getElementById("reset").click();
      const reset = text("row");
      const enter = new KeyboardEvent("keydown", {key: "Enter", bubbles: true});
      document.querySelector('[data-leaf="1"]').dispatchEvent(enter);
      const leaf = text("leaf");
      const neighbour = document.querySelector("#row [data-row]");
      neighbour.click();
      return {before, chosen, picked, moved, reset, leaf, arrived: VIEW.state.row === Number(neighbour.dataset.row),
              unlabelled: [...document.querySelectorAll("input, select")].filter((e) => !e.labels.length).length};
    """
    seen = in_browser(explorer(mixed.tree, mixed.data, time_unit="days").page, script)
    assert seen["before"].startswith("Row 0")
    assert seen["chosen"].startswith("Row 5")
    assert seen["picked"] == "5"
    assert seen["moved"].startswith("Row 5, moved")
    assert seen["reset"] == seen["chosen"]
    assert seen["leaf"].startswith("Leaf 1")
    assert seen["arrived"]
    assert seen["unlabelled"] == 0


@pytest.mark.parametrize("which", ["mixed", "uneven"])
def test_neighbours_are_nearest_in_shares_of_the_ranges(which, request, in_browser):
    subject = request.getfixturevalue(which)
    script = """
      const paths = MODEL.rows.map((row) => softsurv.route(MODEL, row));
      return softsurv.neighbours(MODEL, paths.map((p) => p.x), paths.map((p) => p.leaf), 4, 3);
    """
    found = in_browser(explorer(subject.tree, subject.data).page, script)
    x, leaf = tree_view(subject.tree).encode(subject.data), subject.tree.apply(subject.data)
    spread = np.ptp(x, axis=0)
    distance = np.linalg.norm((x - x[4]) / np.where(spread > 0, spread, 1), axis=1)
    distance[(leaf != leaf[4]) | (np.arange(len(x)) == 4)] = np.inf
    np.testing.assert_allclose([d for _, d in found], np.sort(distance)[:3], rtol=1e-9)


def test_median_is_interpolated_between_grid_times(mixed, in_browser):
    script = "return MODEL.rows.map((r) => softsurv.median(MODEL, r))"
    found = np.array(in_browser(explorer(mixed.tree, mixed.data).page, script), dtype=float)
    exact = mixed.tree.predict_median(mixed.data.X)
    seen = np.isfinite(found)
    np.testing.assert_allclose(found[seen], exact[seen], rtol=0.01)


def test_an_early_median_is_not_read_off_the_first_long_step(in_browser):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=300)})
    data = survival_data(X, time=rng.exponential(np.exp(-3 * X["x"])), event=np.ones(300, bool))
    tree = SoftSurvivalTree(depth=0, leaf="weibull", l2=0.01).fit(data)
    script = "return MODEL.rows.map((r) => softsurv.median(MODEL, r))"
    found = np.array(in_browser(explorer(tree, data).page, script), dtype=float)
    exact, end = tree.predict_median(X), tree.unique_times_[-1]
    assert (exact < 0.1 * end / 79).any()
    seen = (exact < end) & (exact > 1e-6 * end)
    np.testing.assert_allclose(found[seen], exact[seen], rtol=0.01)


def test_medians_of_an_optimal_tree_are_those_of_python(in_browser):
    """Of more event times than the page has steps for: they were up to 2 % late."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=900)})
    data = survival_data(X, time=rng.exponential(np.exp(-X["x"])), event=rng.random(900) < 0.6)
    tree = OptimalSurvivalTree(max_depth=2, tune=None).fit(data)
    found = in_browser(explorer(tree, data).page, "return MODEL.rows.map((r) => softsurv.median(MODEL, r))")
    exact = tree.predict_median(X)
    assert np.isfinite(exact).any()
    assert found == [value if np.isfinite(value) else None for value in exact]


@pytest.mark.filterwarnings("ignore:column 'site' has 1 level:softsurv.errors.DataWarning")
@pytest.mark.filterwarnings("ignore:values are missing in columns:softsurv.errors.DataWarning")
def test_every_level_can_be_chosen_and_the_controls_show_the_row_as_moved(in_browser):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"site": rng.choice(["missing", "a  b", " c", "\u0639"], 200), "code": rng.integers(10**5, 10**6, 200)}
    )
    early = X["site"].isin(["missing", " c"]) | (X["code"] < 345_678)
    data = survival_data(X, time=np.where(early, 1.0, 9.0) * rng.weibull(2, 200) + 0.01, event=np.ones(200, bool))
    tree = OptimalSurvivalTree(max_depth=2, tune=None, thresholds=200).fit(data)
    X = X.astype(object)
    X.loc[0, "site"], X.loc[1, "site"] = None, "new"
    rows = survival_data(X, time=data.time.numpy(), event=np.ones(200, bool))
    script = """
      const site = () => document.getElementById("move-0"), shown = () => site().selectedOptions[0].textContent;
      const out = {gone: shown(), levels: []};
      for (const option of site().options) {
        option.selected = true;
        site().dispatchEvent(new Event("input", {bubbles: true}));
        out.levels.push(VIEW.state.moved.site);
      }
      const slider = document.getElementById("move-1");
      slider.value = 345678;
      slider.dispatchEvent(new Event("input", {bubbles: true}));
      document.querySelector('[data-leaf="1"]').dispatchEvent(new MouseEvent("click", {bubbles: true}));
      out.kept = [document.getElementById("move-1").value, document.getElementById("out-1").textContent];
      out.focus = [document.activeElement.dataset.leaf];
      document.getElementById("reset").click();
      out.focus.push(document.activeElement.id);
      document.querySelector("#row [data-row]").click();
      out.focus.push(document.activeElement.dataset.row === String(VIEW.state.row));
      VIEW.chooseRow(1);
      out.new = shown();
      return out;
    """
    found = in_browser(explorer(tree, rows).page, script)
    assert found["gone"] == "missing"
    assert found["levels"] == [None, *sorted(["missing", "a  b", " c", "\u0639"])]
    assert found["kept"] == ["345678", "345678"]
    assert found["focus"] == ["1", "reset", True]
    assert found["new"] == "new"


def test_an_empty_level_is_shown_in_quotes(in_browser):
    X = pd.DataFrame({"site": ["", "b"] * 40})
    data = survival_data(X, time=np.where(X["site"] == "b", 9.0, 1.0) + np.arange(80) / 100, event=np.ones(80, bool))
    tree = OptimalSurvivalTree(max_depth=1, tune=None).fit(data)
    script = """
      VIEW.chooseRow(0);
      const site = document.getElementById("move-0");
      return [site.value, ...[...site.options].map((one) => one.textContent)];
    """
    assert in_browser(explorer(tree, data).page, script) == ["", '""', "b"]


def test_smallest_changes_name_the_threshold_and_of_whole_numbers_the_number_itself(in_browser):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"code": rng.integers(10**5, 10**6, 300)})
    time = np.where(X["code"] < 345_678, 1.0, 9.0) * rng.weibull(3, 300) + 0.01
    data = survival_data(X, time=time, event=np.ones(300, bool))
    hard = OptimalSurvivalTree(max_depth=1, tune=None, thresholds=300).fit(data)
    soft = SoftSurvivalTree(1, max_terms=1, leaf="weibull", l2=1.0, shrinkage=1.0, slope_shrinkage=1.0).fit(data)
    script = """
      return MODEL.rows.slice(0, 20).map((_, k) => { VIEW.chooseRow(k);
        const cells = [...document.querySelectorAll("#row tbody tr:first-child td")];
        return cells.slice(1, 4).map((cell) => cell.textContent); });
    """
    edge = f"{hard.tree_.threshold[0]:.10g}"
    for code, found in zip(X["code"], in_browser(explorer(hard, data).page, script), strict=False):
        side = "above" if code <= hard.tree_.threshold[0] else "below"
        assert found[:2] == [str(code), f"{side} {edge}"]
    for code, (came, goes, leaf) in zip(X["code"], in_browser(explorer(soft, data).page, script), strict=False):
        assert came == str(code)
        there = pd.DataFrame({"code": [int(goes)]})
        assert f"leaf {soft.apply(there)[0]}" == leaf


def test_page_needs_no_network_and_survives_odd_names(mixed):
    page = explorer(mixed.tree, mixed.data).page
    assert "http" not in page.replace("http-equiv", "")
    payload = explorer_payload(mixed.tree, mixed.data)
    assert json.loads(json.dumps(payload, allow_nan=False)) == payload
    shown = explorer(mixed.tree, mixed.data)._repr_html_()
    assert shown.startswith("<iframe")
    assert "<script" not in shown


OVERLAPS = """
  const seen = [...document.querySelectorAll("#tree rect")].map((r) => r.getBoundingClientRect());
  const hit = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const inside = [...document.querySelectorAll("#tree g")].every((g) => {
    const box = g.querySelector("rect").getBBox();
    return [...g.querySelectorAll("text")].every((t) => t.getBBox().x >= box.x && t.getBBox().width <= box.width);
  });
  const tree = document.getElementById("tree"), lines = new Set(
    [...document.querySelectorAll("[data-leaf]")].map((g) => Math.round(g.querySelector("rect").getBBox().y))
  );
  return {
    overlaps: seen.flatMap((a, i) => seen.slice(i + 1).filter((b) => hit(a, b))).length,
    boxes: seen.length, inside, beside: lines.size === 1, room: tree.clientWidth, width: tree.scrollWidth,
  };
"""


@pytest.mark.parametrize("which", ["mixed", "deep", "large", "short"])
def test_a_tree_fits_its_page_and_its_words_their_boxes(which, request, in_browser):
    if which == "short":
        data = request.getfixturevalue("mixed").data
        tree = OptimalSurvivalTree(max_depth=1).fit(data)
    else:
        subject = request.getfixturevalue(which)
        tree, data = subject.tree, subject.test if which == "large" else subject.data
    found = in_browser(explorer(tree, data, time_unit="months").page, OVERLAPS)
    assert found["overlaps"] == 0
    assert found["inside"]
    assert found["boxes"] == len(tree_view(tree).nodes)
    assert found["beside"] == (which == "short")
    assert found["width"] <= found["room"]


def test_a_single_leaf_and_a_saved_page(stump, browser, tmp_path):
    path = explorer(stump.tree, stump.data).save(tmp_path / "explorer.html")
    document, console = browser(path.read_text(encoding="utf-8"))
    assert console == []
    assert "leaf 0" in document


def test_a_wheel_goes_on_in_the_notebook_only_at_the_end_of_the_page(mixed, browser):
    script = """
      window.addEventListener("load", () => {
        const inner = document.querySelector("iframe").contentWindow, page = inner.document.documentElement;
        let arrived = 0;
        document.addEventListener("wheel", () => { arrived += 1; });
        const turn = (where, deltaY) => {
          const before = arrived, wheel = new inner.WheelEvent("wheel", {deltaY, bubbles: true});
          inner.document.querySelector(where).dispatchEvent(wheel);
          return arrived - before;
        };
        const atTop = [turn("h1", -100), turn("h1", 100)];
        page.scrollTop = page.scrollHeight;
        const atEnd = [turn("h1", -100), turn("h1", 100), turn("#leaf > :last-child td", 100)];
        document.body.textContent = JSON.stringify([atTop, atEnd]);
      });
    """
    shown = explorer(mixed.tree, mixed.data)._repr_html_()
    document, console = browser(f"<!DOCTYPE html><body>{shown}<script>{script}</script></body>")
    assert console == []
    assert "[[1,0],[0,1,0]]" in document


def test_missing_values_that_are_routed(mixed, in_browser):
    rng = np.random.default_rng(0)
    X = mixed.data.X.mask(rng.random(mixed.data.X.shape) < 0.2)
    data = mixed.data.with_features(X)
    tree = OptimalSurvivalTree(max_depth=3, missing="route").fit(data)
    script = """
      const leaf = MODEL.rows.map((row) => softsurv.route(MODEL, row).leaf);
      const encoded = MODEL.rows.map((row) => softsurv.encode(MODEL, row));
      return {
        leaf,
        crossings: MODEL.rows.map((row) => softsurv.crossings(MODEL, row).length),
        near: softsurv.neighbours(MODEL, encoded, leaf, 0, 5).map((pair) => pair[1]),
      };
    """
    found = in_browser(explorer(tree, data).page, script)
    np.testing.assert_array_equal(found["leaf"], tree.apply(data))
    assert any(" missing" in tree.tree_.text(node) for node in np.flatnonzero(tree.tree_.feature >= 0))
    assert found["crossings"][:40] == [len(crossings(tree, data.X.iloc[[k]], data)) for k in range(40)]
    assert len(found["near"]) == 5
    assert np.isfinite(found["near"]).all()


def test_a_page_shows_one_row_at_least(mixed):
    with pytest.raises(InvalidParameterError, match="max_rows must be at least 1, got 0"):
        explorer(mixed.tree, mixed.data, max_rows=0)


def test_long_levels_are_broken_in_the_tables(ruled, in_browser):
    X, _ = ruled
    X = pd.DataFrame({"grade": X["grade"].fillna("II") + " according to the revised classification of 1997"})
    time = np.where(X["grade"].str.startswith("III"), 1.0, 8.0) * np.random.default_rng(0).weibull(2, len(X)) + 0.01
    data = survival_data(X, time=time, event=np.ones(len(X), bool))
    tree = OptimalSurvivalTree(max_depth=1).fit(data)
    script = """
    const long = [...document.querySelectorAll("#row td")].filter((cell) => cell.textContent.length > 24);
    return long.map((cell) => [getComputedStyle(cell).whiteSpace, cell.clientWidth]);
    """
    cells = in_browser(explorer(tree, data).page, script)
    assert len(cells) >= 2  # from one level, to another
    assert all(space == "normal" and width < 280 for space, width in cells)
