"""The report: complete, self-contained, quiet in a browser, reachable by keyboard, printable."""

import re
import struct
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from softsurv import SoftSurvivalTree
from softsurv.cli import main
from softsurv.data.readers import survival_data
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.explore import report_html
from softsurv.explore.report_tree import logrank_words
from softsurv.explore.view import tree_view


class Outline(HTMLParser):
    """What a page holds."""

    def __init__(self, page):
        super().__init__()
        self.ids, self.links, self.images, self.headings, self.scrolls, self.tags = [], [], [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        if tag == "img":
            self.images.append(given)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if "scroll" in given.get("class", "").split():
            self.scrolls.append(given)


@pytest.fixture(scope="module")
def page(gbsg2):
    return report_html(gbsg2.tree, gbsg2.test, n_boot=40)


@pytest.fixture(scope="module")
def fair_page(mixed):
    return report_html(mixed.tree, mixed.data, group="f", time_unit="days", n_boot=40, title="Fair?")


def test_every_section_is_there(page, gbsg2):
    ids = Outline(page).ids
    leaves = [f"leaf-{k}" for k in tree_view(gbsg2.tree).leaves]
    assert [i for i in ids if i != "main"] == ["data", "quality", "calibration", "tree", *leaves, "card"]


def test_a_soft_tree_of_several_causes_has_its_effects_by_cause():
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(150, 2)), columns=["age", "dose"])
    time = rng.weibull(1.5, 150) * np.exp(-x["age"])
    data = survival_data(x, time=time, cause=rng.integers(0, 3, 150), cause_names=("relapse", "<b>death"))
    tree = SoftSurvivalTree(depth=1, leaf="weibull", l2=0.1, shrinkage=1.0).fit(data)
    page = report_html(tree, data, n_boot=20)
    for row in (r">relapse: (leaf 0: )?age, \+", r">&lt;b&gt;death: (leaf 0: )?dose, \+"):
        assert re.search(row, page)


def test_the_page_stands_alone(page, fair_page):
    for text in (page, fair_page):
        outline = Outline(text)
        assert not {"script", "link", "iframe"} & (set(outline.tags) - {"link"})
        assert outline.tags.count("link") == 1  # an empty icon, so that none is asked for
        assert all(image["src"].startswith("data:") for image in outline.images)
        assert not re.search(r"url\(|@import", text)


def test_reading_without_eyes_or_mouse(page):
    outline = Outline(page)
    assert all(image["alt"] for image in outline.images)
    assert all(link[1:] in outline.ids for link in outline.links)
    assert outline.links[0] == "#main"
    assert all(scroll.get("tabindex") == "0" for scroll in outline.scrolls)
    assert outline.headings[0] == 1
    assert all(b - a <= 1 for a, b in zip(outline.headings, outline.headings[1:], strict=False))
    assert 'lang="en"' in page


def test_numbers_are_those_of_evaluate(page, gbsg2):
    for name in ("harrell_c", "uno_c", "cd_auc", "ibs"):
        assert re.search(rf"<td[^>]*>{gbsg2.tree.evaluate(gbsg2.test)[name]:.3f}</td>", page)


def test_optimal_trees_have_reports(uneven, in_browser):
    text = report_html(uneven.tree, uneven.data, group="m", n_boot=20)
    assert "proven lower bound" in text
    script = "return [...document.querySelectorAll('h2')].map((e) => e.textContent)"
    assert in_browser(text, script)[-2:] == ["Fairness", "Model card"]


def test_fairness_only_with_a_group(page, fair_page):
    assert "Sensitive group: f" in fair_page
    assert "Sensitive group" not in page
    assert "<title>Fair?</title>" in fair_page


def test_a_group_of_data_without_groups_is_refused_before_the_work(gbsg2):
    with pytest.raises(InvalidSurvivalDataError, match="data must hold a group for fairness"):
        report_html(gbsg2.tree, gbsg2.test, group="f")


def test_training_rows_are_called_so_on_the_page(fair_page, page):
    assert "rows the tree was trained on" in fair_page
    assert "rows the tree was trained on" not in page


def test_browser_reports_nothing(page, fair_page, browser):
    for text in (page, fair_page):
        document, console = browser(text)
        assert console == []
        assert "Model card" in document


def test_page_fits_wide_and_narrow_screens(page, in_browser):
    """Nothing but what scrolls by itself reaches beyond the edge."""
    script = """
      return [1280, 400].map((width) => {
        document.documentElement.style.width = document.body.style.width = width + "px";
        const parts = [...document.querySelectorAll("section, figure, table, p")].filter((e) => !e.closest(".scroll"));
        return width - Math.max(...parts.map((e) => Math.ceil(e.getBoundingClientRect().right)));
      });
    """
    assert min(in_browser(page, script)) >= 0


def test_words_above_a_table_wrap_and_do_not_scroll_with_it(page, in_browser):
    script = """
      document.documentElement.style.width = document.body.style.width = "400px";
      const spans = [...document.querySelectorAll("caption span")];
      return [spans.length, Math.max(...spans.map((e) => Math.ceil(e.getBoundingClientRect().right)))];
    """
    count, right = in_browser(page, script)
    assert count > 3
    assert right <= 400


def test_it_prints(page, browser, tmp_path):
    out = tmp_path / "report.pdf"
    _, console = browser(page, f"--print-to-pdf={out}", "--no-pdf-header-footer")
    assert console == []
    assert out.read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(("which", "across"), [("gbsg2", 0), ("uneven", 1), ("optimal", 0)])
def test_on_paper_a_wide_picture_has_a_page_across_and_a_wider_one_is_in_parts(
    which, across, browser, tmp_path, request
):
    subject, out = request.getfixturevalue(which), tmp_path / "report.pdf"
    data = getattr(subject, "data", None) or subject.test
    browser(report_html(subject.tree, data, n_boot=20), f"--print-to-pdf={out}", "--no-pdf-header-footer")
    sizes = re.findall(rb"/MediaBox \[0 0 (\d+) (\d+)\]", out.read_bytes())
    assert len(sizes) > 5
    assert sum(int(width) > int(height) for width, height in sizes) == across


def test_screenshots_have_content(page, browser, tmp_path):
    out = tmp_path / "report.png"
    browser(page, f"--screenshot={out}", "--window-size=400,900", "--hide-scrollbars")
    data = out.read_bytes()
    assert struct.unpack(">II", data[16:24]) == (400, 900)
    assert len(data) > 10_000  # an empty page is a tenth of that


def test_the_command_writes_the_page(gbsg2, tmp_path, capsys):
    model, table = tmp_path / "model", tmp_path / "rows.csv"
    gbsg2.tree.save(model)
    frame = gbsg2.test.X.assign(T=gbsg2.test.time.numpy(), E=gbsg2.test.event.numpy().astype(int))
    frame.to_csv(table, index=False)
    out = tmp_path / "report.html"
    options = ["--time", "T", "--event", "E", "--time-unit", "days", "--bootstrap", "20", "--out", str(out)]
    assert main(["report", str(model), str(table), *options]) == 0
    assert "wrote" in capsys.readouterr().out
    assert "20 bootstrap samples" in out.read_text()
    assert main(["report", str(model), str(table), *options[:-1], str(tmp_path / "none" / "r.html")]) == 1
    assert "--out must lie in an existing folder" in capsys.readouterr().err
    assert main(["report", str(model), str(table), *options, "--stability", "1"]) == 1
    assert "--stability must be 0 or at least 2 samples, got 1" in capsys.readouterr().err


def test_one_sample_for_the_stability_is_refused_before_the_work(gbsg2, monkeypatch):
    monkeypatch.setattr("softsurv.explore.report.data_section", None)
    with pytest.raises(InvalidParameterError, match="stability must be an integer >= 2, got 1"):
        report_html(gbsg2.tree, gbsg2.test, stability=1)


def test_the_log_rank_test_of_the_leaves_is_on_the_page(page, gbsg2):
    assert logrank_words(gbsg2.tree, gbsg2.test) in page
