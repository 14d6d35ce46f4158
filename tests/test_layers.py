"""Imports go down only: the layer order of the package, checked on its syntax trees."""

import ast
from pathlib import Path

import pytest

import softsurv
import softsurv.explore

ROOT = Path(softsurv.__file__).parent
ROWS = [
    {
        "arrays",
        "errors",
        "results",
        "clamps",
        "numerics",
        "roots",
        "stopping",
        "in_thread",
        "cores",
        "files",
        "kernel_cache",
        "kernel_parts",
        "loops",
    },
    {"greenwood", "nonparametric", "aalen_johansen", "cox", "float_bits", "data"},
    {"hazards", "trees", "metrics"},
    {"soft", "exact"},
    {"sparse"},
    {"persistence", "run_record"},
    {"estimators"},
    {"tune", "explore"},
    {"cli", "commands", "__main__"},
]
"""Bottom row first. Inside a row a part imports itself alone, but for :data:`NEIGHBOURS`."""

NEIGHBOURS = {
    ("trees", "hazards"),  # a soft tree is routing and hazards
    ("aalen_johansen", "nonparametric"),  # it counts who is at risk as Kaplan-Meier does
    ("cox", "nonparametric"),  # who is at risk when the baseline hazard rises
    ("nonparametric", "greenwood"),  # the variance of Kaplan-Meier
    ("stopping", "results"),  # why to stop is a Status
    ("stopping", "in_thread"),  # work whose limits are looked after
    ("numerics", "clamps"),
    ("kernel_cache", "errors"),
    ("cores", "errors"),  # a limit that is no number
    ("kernel_parts", "kernel_cache"),
    ("loops", "kernel_cache"),
    ("cli", "commands"),
    ("__main__", "cli"),
    ("commands", "cli"),
}

UPWARD = {("estimators/shared/pictures.py", "explore")}
"""Single modules that may import a part above them, when called: see their docstrings."""

BY_NAME = {
    "__init__.py",
    "explore/__init__.py",
    "commands/__init__.py",
    "estimators/names.py",
    "estimators/saved.py",
}
"""Modules that may import by name: tables of public names and commands, and what loads a saved estimator."""

HOMES = {"optuna": {"tune"}, "matplotlib": {"explore"}}
"""Libraries that only one part may import."""

MODULES = sorted(ROOT.rglob("*.py"))


def name_of(path):
    """Dotted name of a module."""
    pieces = ["softsurv", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(pieces[:-1] if pieces[-1] == "__init__" else pieces)


NAMES = {name_of(path) for path in MODULES}


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


def imported_modules(path):
    """Modules of the package that a module imports, anywhere in it: at its top, in a function, for types alone."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in NAMES else node.module for name in names]
        else:
            continue
        yield from (name for name in names if name in NAMES)


def names_in_text(path):
    """Modules of the package that are named by a text of their own, with the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in NAMES - {"softsurv"}:
            yield node.value, node.lineno


def uses_import_module(path):
    """Whether a module can import by name."""
    nodes = ast.walk(ast.parse(path.read_text()))
    used = {getattr(node, "id", getattr(node, "attr", getattr(node, "name", None))) for node in nodes}
    return bool(used & {"import_module", "__import__"})


def circles(graph):
    """Groups of modules that import one another, directly or through others."""
    reached = {}
    for start in graph:
        seen, todo = set(), list(graph[start])
        while todo:
            here = todo.pop()
            if here not in seen:
                seen.add(here)
                todo += graph.get(here, set()) - seen
        reached[start] = seen
    return sorted({tuple(sorted(b for b in graph if b in reached[a] and a in reached[b])) for a in graph} - {()})


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
    allowed = {part for module, part in UPWARD if module == str(path.relative_to(ROOT))}
    found = [(name, line) for name, line in imports(path) if part_of(name) not in allowed]
    faults = [f"line {line}: {why} ({name})" for name, line in found if (why := complaint(here, name))]
    assert not faults, "; ".join(faults)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_import_by_name_leaves_its_part(path):
    """A name in text hides an import from the test above. Within a part, the exact engine runs templates by name."""
    if str(path.relative_to(ROOT)) in BY_NAME:
        return
    here = path.relative_to(ROOT).parts[0]
    assert [(name, line) for name, line in names_in_text(path) if part_of(name) != here] == []
    assert not uses_import_module(path)


def test_no_circle_among_modules():
    """Whatever imports whom: at the top, in a function or for types. The package itself names all and is left out."""
    graph = {
        name_of(path): set(imported_modules(path)) - {"softsurv"} for path in MODULES if path != ROOT / "__init__.py"
    }
    assert circles(graph) == []


def test_a_circle_is_seen():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [("a", "b", "c")]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_the_public_names_are_those_that_type_checkers_see():
    """`softsurv/__init__.py` says each name twice, once for type checkers: both must mean the same module."""
    for package in ("__init__.py", "explore/__init__.py"):
        tree = ast.parse((ROOT / package).read_text())
        (block,) = [node for node in tree.body if isinstance(node, ast.If)]
        seen = {alias.name: node.module for node in block.body for alias in node.names}
        module = softsurv if package == "__init__.py" else softsurv.explore
        homes = {name: home if "." in home else f"softsurv.explore.{home}" for name, home in module._HOME.items()}
        assert seen == homes


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
        ("metrics", "softsurv.estimators.shared.base"),
        ("soft", "optuna"),
        ("estimators", "matplotlib.pyplot"),
        ("tune", "matplotlib.pyplot"),
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
