"""Tests mirror the package: every module has a test file of its name in the folder of its name."""

import ast
from pathlib import Path

import softsurv

ROOT, TESTS = Path(softsurv.__file__).parent, Path(__file__).parent

EXCEPTIONS = {
    "__init__.py": "a table of names, or nothing: held by `test_layers.py`, `test_names.py` and `tests/hazards`",
}
"""Names of files that need no test file, with the reason."""

MODULES = [path for path in sorted(ROOT.rglob("*.py")) if path.name not in EXCEPTIONS]
"""All others."""


def file_of(module):
    """Where the tests of a module are: underscores around its name are dropped."""
    return TESTS / module.relative_to(ROOT).parent / f"test_{module.stem.strip('_')}.py"


def test_every_module_has_a_file_with_tests():
    missing = [file_of(module) for module in MODULES if not has_tests(file_of(module))]
    assert not missing, "write tests in " + ", ".join(str(path.relative_to(TESTS.parent)) for path in missing)


def has_tests(file):
    """Whether a file is there and holds a test function."""
    if not file.is_file():
        return False
    nodes = ast.walk(ast.parse(file.read_text()))
    return any(isinstance(node, ast.FunctionDef) and node.name.startswith("test_") for node in nodes)


def test_a_missing_file_and_one_without_tests_are_seen(tmp_path):
    assert file_of(ROOT / "__main__.py") == TESTS / "test_main.py"
    assert file_of(ROOT / "commands" / "_input.py") == TESTS / "commands" / "test_input.py"
    assert not has_tests(tmp_path / "test_none.py")
    (tmp_path / "test_empty.py").write_text("def helper():\n    pass\n")
    assert not has_tests(tmp_path / "test_empty.py")
    (tmp_path / "test_one.py").write_text("def test_it():\n    assert 1 + 1 == 2\n")
    assert has_tests(tmp_path / "test_one.py")
