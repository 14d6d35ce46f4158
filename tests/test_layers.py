"""Imports go down only: the layer order of the package, checked on its syntax trees."""

import ast
from pathlib import Path

import pytest

import softsurv

ROOT = Path(softsurv.__file__).parent
ROWS = [
    {"errors", "results", "numerics", "arrays", "stopping", "budget"},
    {"nonparametric", "data"},
    {"hazards", "trees", "metrics"},
    {"soft", "exact"},
    {"estimators", "persistence", "run_record"},
    {"tune", "explore"},
    {"cli", "commands", "__main__"},
]
"""Bottom row first. Inside a row a part imports itself alone, but for :data:`NEIGHBOURS`."""

NEIGHBOURS = {
    ("trees", "hazards"),  # a soft tree is routing and hazards
    ("stopping", "results"),  # why to stop is a Status
    ("budget", "stopping"),
    ("estimators", "persistence"),  # save() hands itself over, when called
    ("persistence", "estimators"),  # load_model() knows the estimators
    ("cli", "commands"),
    ("__main__", "cli"),
    ("commands", "cli"),
}

HOMES = {"optuna": {"tune"}, "matplotlib": {"explore"}, "plotly": {"explore"}}
"""Libraries that only one part may import."""

MODULES = sorted(ROOT.rglob("*.py"))


def part_of(name):
    """The part of the package that a dotted name belongs to; None for the package itself."""
    pieces = name.split(".")
    return pieces[1] if len(pieces) > 1 else None


def imports(path):
    """Dotted names that a module imports, anywhere in it, with the line."""
    package = ["softsurv", *path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            # "from softsurv import trees" names the part in its list
            yield from ((f"{stem}.{alias.name}" if stem == "softsurv" else stem, node.lineno) for alias in node.names)


def row_of(part):
    found = [k for k, row in enumerate(ROWS) if part in row]
    assert found, f"softsurv.{part} is in no layer: add it to ROWS in {Path(__file__).name}"
    return found[0]


def complaint(here, name):
    """Why a module of the part ``here`` may not import a name, or None."""
    top = name.split(".")[0]
    if top in HOMES and here not in HOMES[top]:
        return f"only {', '.join(HOMES[top])} may import {top}"
    there = part_of(name) if top == "softsurv" else None
    if there is None or there == here or there in softsurv.__all__ or (here, there) in NEIGHBOURS:
        return None
    if row_of(there) == row_of(here):
        return f"{here} and {there} stand side by side"
    return f"{here} lies below {there}" if row_of(there) > row_of(here) else None


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path):
    here = path.relative_to(ROOT).with_suffix("").parts[0]
    if here == "__init__":
        return  # the public names come from every layer, when first used
    faults = [f"line {line}: {why} ({name})" for name, line in imports(path) if (why := complaint(here, name))]
    assert not faults, "; ".join(faults)


ENGINE = [path for part in ("", "kernels", "base_cases") for path in sorted((ROOT / "exact" / part).glob("*.py"))]


@pytest.mark.parametrize("path", ENGINE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_engine_knows_no_task(path):
    """A new task is a declaration: the search works on the contract alone."""
    assert not {name for name, _ in imports(path) if name.startswith("softsurv.exact.objectives")}


def test_every_part_has_a_layer():
    for path in MODULES:
        here = path.relative_to(ROOT).with_suffix("").parts[0]
        assert here == "__init__" or row_of(here) >= 0


@pytest.mark.parametrize(
    ("here", "name"),
    [
        ("soft", "softsurv.exact.problem"),
        ("exact", "softsurv.soft.problem"),
        ("data", "softsurv.trees.routing"),
        ("hazards", "softsurv.trees"),
        ("metrics", "softsurv.estimators.base"),
        ("soft", "optuna"),
        ("estimators", "matplotlib.pyplot"),
        ("tune", "plotly.graph_objects"),
    ],
)
def test_a_violation_is_seen(here, name):
    assert complaint(here, name) is not None


def test_imports_are_found_wherever_they_are(tmp_path):
    module = ROOT / "soft" / "made_up.py"
    inner = ("from softsurv.exact import problem", "from softsurv import explore", "from ..tune import study")
    source = "\n    ".join(["import optuna\ndef f():", *inner])

    class Fake(type(module)):
        def read_text(self, *args, **kwargs):
            return source

    found = [name for name, _ in imports(Fake(module))]
    assert sorted(found) == ["optuna", "softsurv.exact", "softsurv.explore", "softsurv.tune"]
