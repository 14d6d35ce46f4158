"""Small fitted trees and a headless browser, shared by the tests of exploration."""

import copy
import json
import re
import shutil
import subprocess
from types import SimpleNamespace

import matplotlib
import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree, SoftSurvivalTree, load_dataset
from softsurv.data.survival_data import SurvivalData
from softsurv.trees.leaf_table import leaf_table

matplotlib.use("Agg")

SETTINGS = {"l2": 1.0, "shrinkage": 0.3, "routing_l2": 0.01, "n_restarts": 2}
BROWSER = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
]


def mixed_data(seed=0, n=240, extra=0, long_names=False):
    """Numbers, categories, missing values; the first two features decide."""
    rng = np.random.default_rng(seed)
    age, grade = rng.normal(60, 12, n).round(1), rng.choice(["I", "II", "III"], n)
    time = rng.weibull(1.4, n) * 900 * np.exp(-(age - 60) / 25 - 0.5 * (grade == "III"))
    censored = rng.exponential(1500, n)
    names = ("age", "grade", "marker")
    if long_names:
        names = tuple(f"{name}_as_recorded_at_the_very_first_visit_to_the_clinic" for name in names)
    marker = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    frame = pd.DataFrame({names[0]: age, names[1]: grade, names[2]: marker})
    for k in range(extra):
        frame[f"noise_{k}"] = rng.normal(size=n)
    group = np.where(rng.random(n) < 0.4, "f", "m")
    return SurvivalData(frame, np.minimum(time, censored) + 1.0, time <= censored, group=group, name="mixed")


@pytest.fixture(scope="session")
def gbsg2():
    train, test = load_dataset("gbsg2").split(test_size=0.4, seed=0)
    tree = SoftSurvivalTree(depth=2, **SETTINGS).fit(train)
    return SimpleNamespace(train=train, test=test, tree=tree)


@pytest.fixture(scope="session")
def mixed():
    data = mixed_data()
    return SimpleNamespace(data=data, tree=SoftSurvivalTree(depth=2, **SETTINGS).fit(data))


@pytest.fixture(scope="session")
def lopsided(gbsg2):
    """A tree with leaves that no row reaches, neither in training, as it remembers it, nor in the data."""
    leaf = gbsg2.tree.apply(gbsg2.train)
    data = gbsg2.train.take(leaf == np.bincount(leaf).argmax())
    tree = copy.deepcopy(gbsg2.tree)
    counts = len(tree.leaf_table_.n)
    tree.leaf_table_ = leaf_table(tree.apply(data), data.time.numpy(), data.event.numpy(), counts)
    return SimpleNamespace(data=data, tree=tree)


@pytest.fixture(scope="session")
def deep():
    """Eight leaves, long names, many features."""
    data = mixed_data(1, 400, extra=20, long_names=True)
    return SimpleNamespace(data=data, tree=SoftSurvivalTree(depth=3, **SETTINGS).fit(data))


@pytest.fixture(scope="session")
def optimal(gbsg2):
    """An optimal tree, whose leaves hold one curve of steps each."""
    tree = OptimalSurvivalTree(max_depth=3, min_samples_leaf=12).fit(gbsg2.train)
    return SimpleNamespace(train=gbsg2.train, test=gbsg2.test, tree=tree)


@pytest.fixture(scope="session")
def large(gbsg2):
    """An optimal tree of more leaves than stand side by side."""
    tree = OptimalSurvivalTree(max_depth=4, max_leaves=13, min_samples_leaf=12).fit(gbsg2.train)
    return SimpleNamespace(train=gbsg2.train, test=gbsg2.test, tree=tree)


@pytest.fixture(scope="session")
def uneven(mixed):
    """An optimal tree with leaves at several levels, on numbers, categories and missing values."""
    settings = {"objective": "ibs", "max_depth": 4, "max_leaves": 5, "min_samples_leaf": 10}
    return SimpleNamespace(data=mixed.data, tree=OptimalSurvivalTree(**settings).fit(mixed.data))


@pytest.fixture(scope="session")
def stump():
    """A single leaf."""
    data = mixed_data(2)
    return SimpleNamespace(data=data, tree=SoftSurvivalTree(depth=0, l2=1.0).fit(data))


@pytest.fixture(scope="session")
def ruled():
    """A tree of rules that asks for the grade and the age, both with gaps."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"age": rng.integers(30, 80, 500).astype(float), "grade": rng.choice(["I", "II", "III"], 500)})
    time = rng.weibull(2, 500) * np.where(X["grade"] == "III", 1.0, np.where(X["age"] > 60, 8.0, 64.0))
    X = X.mask(rng.random(X.shape) < 0.02)
    return X, SoftSurvivalTree(depth=2, leaf="weibull", max_terms=1).fit(X, (np.ones(500, bool), time))


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A function page -> (document after scripts have run, console lines); also takes screenshots and prints."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed (Debian package chromium)")

    def run(page, *options):
        folder = tmp_path_factory.mktemp("page")
        (folder / "page.html").write_text(page, encoding="utf-8")
        profile = tmp_path_factory.mktemp("profile")
        done = subprocess.run(
            [
                program,
                *BROWSER,
                f"--user-data-dir={profile}",
                *(options or ["--dump-dom"]),
                f"file://{folder}/page.html",
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]

    return run


@pytest.fixture(scope="session")
def in_browser(browser):
    """Run a script after a page's own scripts and return the JSON value of its last expression."""

    def run(page, script):
        value = f"JSON.stringify((() => {{ {script} }})())"
        tail = f"<script>document.body.textContent = {value};</script></body>"
        document, console = browser(page.replace("</body>", tail))
        assert console == []
        text = re.search(r"<body[^>]*>(.*)</body>", document, re.DOTALL).group(1)
        return json.loads(text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))

    return run
