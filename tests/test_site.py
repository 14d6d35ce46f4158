"""The documentation site: every public name has a docstring and a place. `.ci/run` builds it, warnings as errors."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from _site import REFERENCE, home_of, reference

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("package", sorted({package for _, package, _, _ in REFERENCE.values()}))
def test_every_public_name_is_in_the_reference(package):
    shown = "\n".join(map(reference, REFERENCE))
    for name in import_module(package).__all__:
        if name == "__version__":
            continue
        assert f"::: {home_of(package, name)}\n" in shown
        assert getattr(import_module(package), name).__doc__


def test_the_navigation_names_what_is_there():
    known = {f"api/{page}.md" for page in REFERENCE}
    for target in re.findall(r": ([\w/]+\.(?:md|ipynb))$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE):
        assert target in known or (ROOT / "docs" / target).is_file() or (ROOT / target).is_file(), target
