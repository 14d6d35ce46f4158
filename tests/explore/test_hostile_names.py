"""Names as weapons: pictures and pages show them, and neither break nor run."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

from matplotlib import pyplot as plt

from softsurv import OptimalSurvivalTree, SoftSurvivalTree
from softsurv.explore import explorer, plot_leaf_effects, plot_routing_effects, plot_tree, report_html
from softsurv.explore.interactive import explorer_page

HOSTILE = [
    "rate_$%$",
    "$\\frac$",
    "a\x01b\x0b",
    "<!--<script>",
    "</script><script>alert(1)</script>",
    "'\"&<b>",
    "\u202e",
]


@pytest.fixture(scope="module")
def case():
    """A tree on columns and a level of hostile names, and its rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, len(HOSTILE))), columns=HOSTILE)
    X["arm"] = rng.choice(["$x_{$", "<!--<script>"], 120)
    time = rng.exponential(np.exp(-X[HOSTILE[0]])) + 0.1
    y = (rng.random(120) < 0.8, time)
    model = SoftSurvivalTree(depth=1, l2=0.1, shrinkage=0.1, routing_l2=0.01, n_restarts=1, device="cpu")
    return model.fit(X, y), (X, y)


def svg(ax):
    file = io.BytesIO()
    ax.figure.savefig(file, format="svg")
    plt.close(ax.figure)
    return file.getvalue()


@pytest.mark.parametrize("plot", [plot_tree, plot_leaf_effects, plot_routing_effects])
def test_pictures_are_whole(case, plot):
    arguments = case if plot is plot_tree else case[:1]
    with plt.rc_context({"svg.fonttype": "none"}):
        drawn = ET.fromstring(svg(plot(*arguments)))
    shown = " ".join(drawn.itertext())
    assert plot is plot_tree or "rate_$%$" in shown  # the tree shows its split alone


def test_a_report_is_whole(case):
    model, data = case
    page = report_html(model, data, n_boot=20)
    assert "<script>" not in page
    assert "rate_$%$" in page


MODEL = re.compile(r'<script type="application/json" id="model">(.*)</script><script>')


def test_the_explorer_holds_its_numbers_and_one_script_that_are_whole(case):
    model, data = case
    page = explorer(model, data).page
    assert page.count("<script") == page.count("</script>") == 2
    assert "<!--" not in page
    assert "<!--<script>" in json.dumps(json.loads(MODEL.search(page)[1]), ensure_ascii=False)


def test_a_feature_may_be_named_as_the_parts_of_every_object_of_a_browser(in_browser):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"__proto__": rng.normal(size=200), "constructor": rng.choice(["u", "v"], 200)})
    time = rng.exponential(np.exp(X["__proto__"] + (X["constructor"] == "u"))) + 0.1
    tree = OptimalSurvivalTree(max_depth=2, tune=None).fit(X, (np.ones(200, bool), time))
    page = explorer(tree, (X, (np.ones(200, bool), time))).page
    found = in_browser(page, "return MODEL.rows.map((row) => softsurv.route(MODEL, row).leaf)")
    np.testing.assert_array_equal(found, tree.apply(X))


def test_no_name_turns_the_rule_behind_it_round_in_the_explorer(in_browser):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age\u202e": rng.normal(size=200)}, index=[f"\u2067{k}" for k in range(200)])
    y = (np.ones(200, bool), rng.exponential(np.exp(X["age\u202e"])) + 0.1)
    page = explorer(OptimalSurvivalTree(max_depth=1, tune=None).fit(X, y), (X, y)).page
    script = "return [...document.body.children].map((e) => (e.tagName === 'SCRIPT' ? '' : e.outerHTML)).join('')"
    shown = in_browser(page, script)
    assert "age\ufffd &lt;= " in shown
    assert not {"\u202e", "\u2067"} & set(shown)


def test_no_text_of_a_payload_ends_the_script():
    for text in ("</script>", "<!--<script>", "\u2028"):
        page = explorer_page({"name": text})
        assert json.dumps({"name": text}).replace("<", "\\u003c") in page
        assert page.count("</script>") == 2
