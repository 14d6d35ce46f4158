"""Names and levels that look like formulas, markup or nothing at all come out of every picture and page as they are."""

import io
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from softsurv import OptimalSurvivalTree, SoftSurvivalTree
from softsurv.data.survival_data import SurvivalData
from softsurv.explore import (
    explorer,
    plot_brier,
    plot_feature_profile,
    plot_leaf_curves,
    plot_leaf_effects,
    plot_routing_effects,
    plot_tree,
    plot_tree_parts,
    report_html,
    tree_html,
)
from softsurv.explore.page import figure
from softsurv.explore.style import in_xml

ODD = ("rate_$%$", "bell\x07", "<!--<script>", "$x^{2$")
LEVELS = ("a$_b$", "\x01", "</script>")


@pytest.fixture(scope="module", params=["soft", "optimal"])
def odd(request):
    rng = np.random.default_rng(0)
    n = 200
    frame = pd.DataFrame({name: rng.normal(size=n) for name in ODD})
    frame["level $%$"] = rng.choice(LEVELS, n)
    risk = frame[ODD[0]] + frame[ODD[1]] + (frame["level $%$"] == LEVELS[1]) + frame[ODD[2]]
    time = rng.exponential(np.exp(-risk)) + 0.01
    group = np.where(rng.random(n) < 0.5, "$%$", "\x02")
    data = SurvivalData(frame, time, rng.random(n) < 0.8, group=group, name="$%$")
    soft = {"depth": 2, "l2": 1.0, "shrinkage": 0.3, "routing_l2": 0.01, "n_restarts": 1}
    tree = SoftSurvivalTree(**soft) if request.param == "soft" else OptimalSurvivalTree(max_depth=3)
    return SimpleNamespace(data=data, tree=tree.fit(data))


def saved(ax):
    """Whether a picture can be kept as PNG, and as an SVG that is sound XML."""
    files = {kind: io.BytesIO() for kind in ("svg", "png")}
    for kind, file in files.items():
        ax.figure.savefig(file, format=kind)
    drawn = ElementTree.fromstring(files["svg"].getvalue().decode())
    return drawn.tag.endswith("svg") and files["png"].getvalue().startswith(b"\x89PNG")


def test_pictures_show_names_as_they_are(odd):
    assert saved(plot_tree(odd.tree, odd.data, time_unit="$%$"))
    for ax in plot_tree_parts(odd.tree, odd.data, most_leaves=2, time_unit="$%$"):
        assert saved(ax)
    assert saved(plot_leaf_curves(odd.tree, odd.data, time_unit="\x03$%$"))
    assert saved(plot_brier({"$%$": odd.tree, "\x04": odd.tree}, odd.data))
    for name in (ODD[0], ODD[1], "level $%$"):
        assert saved(plot_feature_profile(odd.tree, odd.data, name, time_unit="$%$"))
    if isinstance(odd.tree, SoftSurvivalTree):
        assert saved(plot_leaf_effects(odd.tree))
        assert saved(plot_routing_effects(odd.tree))


def test_pages_show_names_as_they_are(odd, browser):
    page = report_html(odd.tree, odd.data, title="<!--<script> \x05", time_unit="$%$", n_boot=20)
    document, console = browser(page)
    assert console == []
    assert "rate_$%$" in document
    assert "Model card" in document
    assert not set("\x01\x02\x05\x07") & set(page)
    ElementTree.fromstring(tree_html(odd.tree))


def test_the_explorer_starts_whatever_names_say(odd, in_browser):
    script = "return [MODEL.sources.map((s) => s.name), document.getElementById('row').textContent.length > 20]"
    names, filled = in_browser(explorer(odd.tree, odd.data).page, script)
    assert filled
    assert set(ODD) - {"$x^{2$"} <= set(names)


def test_text_without_shape_is_marked():
    ax = Figure().subplots()
    ax.set(title="a $x^{2$ b", xlabel="and\x00")
    assert "svg" in figure(ax, "\ud800")
    assert ax.get_title() == "a $x^{2$ b"
    assert ax.get_xlabel() == "and\ufffd"
    assert in_xml("a\nb\tc\ud800") == "a\nb\tc\ufffd"


def test_other_axes_keep_their_formulas(odd):
    mine, ours = Figure().subplots(2)
    mine.set_title("$x^2$")
    plot_leaf_curves(odd.tree, odd.data, ours)
    assert mine.title.get_parse_math()
    assert not ours.title.get_parse_math()
