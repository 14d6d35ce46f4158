"""The examples in docstrings do what they show."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import softsurv

ROOT = Path(softsurv.__file__).parent
WITH_EXAMPLES = sorted(path for path in ROOT.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
    assert doctest.testmod(import_module(name), raise_on_error=False).failed == 0
