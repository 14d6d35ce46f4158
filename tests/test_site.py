"""The documentation site: every public name has a docstring and a place, and the site builds without a warning."""

from __future__ import annotations

import os
import re
import subprocess
import sys
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


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed (extra docs)")
    pytest.importorskip("mkdocs_jupyter", reason="mkdocs-jupyter is not installed (extra docs)")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "SoftSurvivalTree" in (tmp_path / "api" / "estimators.html").read_text(encoding="utf-8")
