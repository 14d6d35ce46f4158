"""The source distribution holds what is needed to test it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_sdist(sys.argv[1]))"


def test_every_test_and_script_is_in_the_sdist(tmp_path):
    pytest.importorskip("setuptools", minversion="77", reason="setuptools is not installed")
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("the tests run apart from the source")
    source = tmp_path / "source"
    parts = ("softsurv", "tests", "scripts", ".ci")
    skip = shutil.ignore_patterns("__pycache__")
    for part in parts:
        shutil.copytree(ROOT / part, source / part, ignore=skip)
    for file in (path for path in ROOT.iterdir() if path.is_file() and not path.name.startswith(".")):
        shutil.copy(file, source)
    command = [sys.executable, "-c", BUILD, str(tmp_path)]
    name = subprocess.run(command, cwd=source, check=True, capture_output=True, text=True).stdout.split()[-1]
    with tarfile.open(tmp_path / name) as archive:
        held = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    wanted = {
        str(path.relative_to(source)) for part in parts for path in (source / part).rglob("*.*") if path.is_file()
    }
    assert sorted(one for one in wanted - held if "egg-info" not in one) == []
    named = {"SECURITY.md", "CHANGELOG.md", "LICENSE", "constraints.txt"}  # the scripts are tested too
    assert named | {"tests/conftest.py", "scripts/test", ".ci/run"} <= held
