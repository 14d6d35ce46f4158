"""The pages for readers: their code runs, their links and paths lead somewhere, and what they say of the code is so."""

from __future__ import annotations

import ast
import pkgutil
import re
import tomllib
import traceback
from pathlib import Path

import pytest
import torch
from _site_outputs import code_of, kept

import softsurv
from softsurv import OptimalSurvivalTree, SoftSurvivalTree, load_dataset

ROOT = Path(__file__).parents[1]
TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
PAGES = [*TOP, *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]

LANGUAGES = ("bash", "python", "text")


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page, language):
    """What stands between the fences of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(page), re.MULTILINE | re.DOTALL)


# -- code of the pages ----------------------------------------------------------------------------------------------
def test_the_readme_opens_with_the_two_commands():
    first = blocks("README.md", "bash")[0].splitlines()
    assert [line.split("#")[0].strip() for line in first] == ["scripts/demo", "scripts/test"]


@pytest.mark.parametrize("page", [page for page in PAGES if code_of(text_of(page))])
def test_the_code_of_a_page_runs(page):
    """All blocks of a page, one after the other, as a reader would type them; in CI a newcomer's clone runs them."""
    pieces = code_of(text_of(page))
    outputs = kept(pieces)
    assert len(outputs) == len(pieces)
    if page == "docs/first_steps.md":
        assert {name for output in outputs for name, _ in output["pictures"]} == {"tree.png", "leaves.png"}
    if page == "README.md":
        shown = blocks(page, "text")[0]
        assert shown in outputs[1]["text"], "the README shows another tree: put the new one there"


def test_the_readme_shows_every_main_command():
    lines = "".join(blocks("README.md", "bash")).splitlines()
    shown = {line.split()[1] for line in lines if line.startswith("softsurv ")}
    assert shown >= {"datasets", "fit", "evaluate", "predict", "report", "tune"}


# -- links and paths ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", text_of(page)):
        assert target.startswith("http") or (ROOT / page).parent.joinpath(target).exists(), target


@pytest.mark.parametrize("page", [page for page in PAGES if page != "CHANGELOG.md"])
def test_paths_exist(page):
    """Every path of the repository that is named in code quotes."""
    for path in re.findall(r"`((?:softsurv|tests|scripts|docs)/[\w./]*)`", text_of(page)):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", PAGES)
def test_fences_are_of_known_languages(page):
    """A block of another language would be run by none of these tests."""
    openings = re.findall(r"^```(.*)$", text_of(page), re.MULTILINE)[::2]
    assert set(openings) <= set(LANGUAGES)


# -- what the pages say ---------------------------------------------------------------------------------------------
def test_the_layers_are_those_of_the_page():
    """The table of the architecture page and the order that `test_layers.py` holds are one."""
    body = ast.parse((ROOT / "tests" / "test_layers.py").read_text(encoding="utf-8")).body
    (rows,) = [
        ast.literal_eval(node.value) for node in body if isinstance(node, ast.Assign) and node.targets[0].id == "ROWS"
    ]
    shown = re.findall(r"^\| (\d) \| ([^|]*) \|", text_of("docs/architecture.md"), re.MULTILINE)
    assert {int(row): set(re.findall(r"`(\w+)`", parts)) for row, parts in shown} == dict(enumerate(rows))


WAYS = {
    "A tree of rules": (
        lambda: SoftSurvivalTree(depth=1, leaf="weibull", l2=0.3, shrinkage=10.0),
        "softsurv.sparse.leaf_fit.one_pass",
    ),
    "The same way while candidates are grown": (
        lambda: SoftSurvivalTree(depth=1, leaf="weibull", l2=0.3, shrinkage=10.0),
        "softsurv.sparse.leaf_fit.one_pass",
    ),
    "A dense soft tree": (
        lambda: SoftSurvivalTree(depth=1, max_terms=None, l2=1.0, shrinkage=3.0, routing_l2=1.0),
        "softsurv.soft.objective.expected_loss",
    ),
    "An optimal tree": (lambda: OptimalSurvivalTree(max_depth=3), "softsurv.exact.depth_run.solve_root"),
}
"""Section of the architecture page: a tree, and where its way ends."""


@pytest.fixture
def one_thread():
    """Parts of a stack are then called from where they are made, so that the stack shows the whole way."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("section", WAYS)
def test_the_way_of_a_fit_is_that_of_the_page(section, monkeypatch):
    """The calls from ``fit`` to the formula, as they are on the stack when the formula is reached."""
    estimator, end = WAYS[section]
    home, name = end.rsplit(".", 1)
    owner = pkgutil.resolve_name(home)
    formula, package, ways = getattr(owner, name), Path(softsurv.__file__).parent, set()
    source = getattr(formula, "function", formula).__code__.co_filename  # of an entry the function that is compiled

    def reached(*args, **kwargs):
        frames = [frame for frame in traceback.extract_stack()[:-1] if Path(frame.filename).is_relative_to(package)]
        named = [f for f in frames if f.name not in ("<listcomp>", "guarded")]  # a decorator of `fit` is no hop
        calls = [(f.name, Path(f.filename).relative_to(package).as_posix()) for f in named]
        ways.add((*calls, (name, Path(source).relative_to(package).as_posix())))
        return formula(*args, **kwargs)

    monkeypatch.setattr(owner, name, reached)
    train, _ = load_dataset("veterans").split(seed=0)
    estimator().fit(train)
    told = text_of("docs/architecture.md").split(f"### {section}\n")[1].split("```text\n")[1].split("```")[0]
    lines = re.findall(r"^(\d+)  (\S+) +(\S+)$", told, re.MULTILINE)
    assert [int(number) for number, _, _ in lines] == list(range(len(lines)))
    assert tuple((function, path) for _, function, path in lines) in ways, ways


COMPILED_WAY = [
    ("kernels/recursion.py", "solve", "problem.calls.solve_two"),
    ("base_cases/sums.py", "solve_two", "price_sides"),
    ("base_cases/leaf_prices.py", "price_sides", "problem.calls.price"),
    ("base_cases/task_costs.py", "price", "leaf_costs"),
]
"""The compiled rest of the way of an optimal tree, hops 6 to 9: file, function, and what the function calls."""


@pytest.mark.parametrize(("file", "function", "called"), COMPILED_WAY)
def test_the_compiled_way_is_that_of_the_page(file, function, called):
    tree = ast.parse(text_of(f"softsurv/exact/{file}"))
    body = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function)
    calls = [node for node in ast.walk(body) if isinstance(node, ast.Call)]
    named = {ast.unparse(part) for call in calls for part in (call.func, *call.args)}
    assert called in named
    assert called.rpartition(".")[2] in text_of("docs/architecture.md")


def test_every_measurement_is_listed():
    """Each script that measures, and each table, stands on the page of measurements."""
    scripts = {path.name for kind in ("bench", "reproduce", "fuzz") for path in ROOT.glob(f"scripts/{kind}_*.py")}
    tables = {f"tables/{path.name}" for path in ROOT.glob("scripts/tables/*.md")}
    linked = re.findall(r"\]\(\.\./scripts/([^)]+)\)", text_of("docs/benchmarks.md"))
    assert sorted((scripts | tables) - set(linked)) == []


def test_versions_are_one():
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    assert softsurv.__version__ == project["version"]
    assert re.search(r'^version: "?([\d.]+)"?$', text_of("CITATION.cff"), re.MULTILINE).group(1) == project["version"]


def rows_of(text):
    """Cells of the first table in a text, the names of its columns first."""
    table = re.search(r"(^\|.*\n)+", text, re.MULTILINE).group()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    return [rows[0], *rows[2:]]


@pytest.mark.parametrize("page", ["README.md", "docs/benchmarks.md"])
@pytest.mark.parametrize("table", ["survset_soft", "survset_paper"])
def test_the_default_tree_is_told_as_it_was_measured(page, table):
    """Concordance and Brier score of the default soft tree, of one leaf and of Cox regression."""
    names, *rows = rows_of(text_of(f"scripts/tables/{table}.md").split(": means over the sets\n")[1])
    places = [names.index(name) for name in ("harrell_c", "ibs")]
    measured = {row[0]: [f"{float(row[place]):.3f}"[1:] for place in places] for row in rows}
    for model in ("soft", "soft:depth=0", "cox"):
        assert " and ".join(measured[model]) in text_of(page), model


@pytest.mark.parametrize("page", ["README.md", "docs/benchmarks.md"])
def test_how_often_the_default_is_a_tree_is_told_as_it_was_measured(page):
    names, *rows = rows_of(text_of("scripts/tables/survset_soft.md"))
    share = next(row for row in rows if row[0] == "soft")[names.index("is a tree")].rstrip("%")
    assert re.search(rf"{share} % of the\s+folds", text_of(page))


def test_what_each_tree_costs_is_told_as_it_was_measured():
    names, *measured = rows_of(text_of("scripts/tables/which_tree.md"))
    _, *told = rows_of(text_of("docs/which_tree.md").split("## What it costs")[1])
    places = [names.index(name) for name in ("harrell_c", "ibs", "cpu_seconds")]
    assert len(told) == len(measured)
    for row, (_, *cells) in zip(measured, told, strict=True):
        concordance, brier, seconds = (float(row[place]) for place in places)
        digits = len(cells[2].partition(".")[2])
        assert cells == [f"{concordance:.3f}"[1:], f"{brier:.3f}"[1:], f"{seconds:.{digits}f}"], row[0]


def test_trees_of_thousands_of_genes_are_told_as_they_were_measured():
    names, *measured = rows_of(text_of("scripts/tables/genes.md").split(": means over the sets\n")[1])
    _, *told = rows_of(text_of("docs/large_tables.md").split("## Many columns")[1])
    places = [names.index(name) for name in ("harrell_c", "ibs", "CPU s")]
    found = {row[0]: [float(row[place]) for place in places] for row in measured}
    for model, (_, *cells) in zip(("soft", "forest", "coxnet", "km"), told, strict=True):
        concordance, brier, seconds = found[model]
        assert cells == [f"{concordance:.3f}"[1:], f"{brier:.3f}"[1:], f"{seconds:.1f}"]


def test_near_optimal_trees_are_told_as_they_were_counted():
    table, page = text_of("scripts/tables/rashomon.md"), text_of("docs/benchmarks.md")
    ended, cases = re.search(r"treefarms ended in (\d+) of (\d+) cases", table).groups()
    assert re.search(rf"ended in {ended} of {cases}\s+cases", page)
    count, seconds = re.search(
        r"framingham \| 4699 \| 7 \| 3 \| 0.02 \| (\d+),.*\| (\S+) \|$", table, re.MULTILINE
    ).groups()
    assert f"{count} million of depth 3 on Framingham, counted in {float(seconds):.1f} s" in page


def test_what_routed_values_cost_is_told_as_it_was_measured():
    _, *sets = rows_of(text_of("scripts/tables/missing.md").split("## Each set")[1])
    ((*_, seconds),) = [row for row in sets if (row[0], row[3]) == ("smarto", "depth 3")]
    imputed, routed = seconds.split(" / ")
    assert f"took {routed} s in the place of {imputed} s" in text_of("docs/missing_values.md")


def test_splits_of_noise_are_told_as_they_were_counted():
    found = {row[0]: [] for row in rows_of(text_of("scripts/tables/noise.md"))}
    for ratio, rows, _, optimal, *_ in rows_of(text_of("scripts/tables/noise.md")):
        found[ratio] += [optimal.split()[0]] if rows == "1000" else []
    answer = re.sub(r"\s+", " ", text_of("docs/questions.md").split("## How many events do I need?")[1])
    for ratio in ("1.0", "2.0"):
        assert "{}, {}, {} and {}".format(*found[ratio]) in answer


def test_times_of_predictions_are_told_as_they_were_measured():
    answer = text_of("docs/questions.md").split("## How do I serve a model?")[1].split("##")[0]
    for rows, words in (
        ("1", "takes {} to {} ms .* {} ms for the median"),
        ("10000", "take {} to {} ms, and {} ms for"),
    ):
        ours = [
            row for row in rows_of(text_of("scripts/tables/predict.md")) if row[0] == rows and "scikit" not in row[1]
        ]
        asked = [float(cell) for _, _, *cells in ours for cell in cells[:3]]
        ((_, _, *splines),) = [row for row in ours if "spline" in row[1]]
        numbers = (f"{value:.0f}" for value in (min(asked), max(asked), float(splines[3])))
        assert re.search(words.format(*numbers), answer, re.DOTALL)


def test_the_readme_can_be_read_in_two_minutes():
    """But for its code and its literature; a tenth of it is the commands of a table."""
    prose = re.sub(r"^```.*?^```$", "", text_of("README.md").split("## Papers")[0], flags=re.MULTILINE | re.DOTALL)
    assert len(prose.split()) <= 600
