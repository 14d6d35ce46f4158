"""The documentation site: every public name has a docstring and a place. `.ci/run` builds it, warnings as errors."""

from __future__ import annotations

import re
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest
from _site import REFERENCE, home_of, on_files, on_post_build, reference

import softsurv

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("package", sorted({package for _, package, _, _ in REFERENCE.values()}))
def test_every_public_name_is_in_the_reference(package):
    shown = "\n".join(map(reference, REFERENCE))
    for name in import_module(package).__all__:
        if name == "__version__":
            continue
        assert f"::: {home_of(package, name)}\n" in shown
        assert getattr(import_module(package), name).__doc__


DOCSTRING = """One line.

Parameters
----------
depth : int
    Levels.
l2, shrinkage,
ridge : float, optional
    Penalties.

    Both.
missing : {"impute", "route"} or None
    What becomes of gaps.

Returns
-------
DataFrame, index ``leaf``
    Of ``depth`` levels.
"""

ONE_BY_ONE = """One line.

Parameters
----------
depth : int
    Levels.
l2 : float, optional
    Penalties.

    Both.
shrinkage : float, optional
    Penalties.

    Both.
ridge : float, optional
    Penalties.

    Both.
missing : "impute" or "route" or None
    What becomes of gaps.

Returns
-------
DataFrame, index leaf
    Of ``depth`` levels.
"""


def test_the_reference_has_an_entry_for_each_parameter():
    pytest.importorskip("griffe", reason="griffe is not installed (extra docs)")
    from _site_docstrings import plain_parameters

    assert plain_parameters(DOCSTRING) == ONE_BY_ONE
    assert plain_parameters("One line.") == "One line."


def test_the_reference_shows_the_defaults_of_the_code():
    """As the site's parser reads them, also those of a group of names."""
    griffe = pytest.importorskip("griffe", reason="griffe is not installed (extra docs)")
    from _site_docstrings import PlainParameters

    extensions = griffe.load_extensions(PlainParameters)
    package = griffe.load("softsurv", search_paths=[ROOT], docstring_parser="numpy", extensions=extensions)
    estimators = [name for name in softsurv.__all__ if name.endswith("Tree")]
    assert len(estimators) > 10
    for name in estimators:
        found = package[home_of("softsurv", name).partition(".")[2]]
        section = next(part for part in found.docstring.parsed if part.kind.value == "parameters")
        shown = {
            one.name: str(one.default).replace('"', "'").replace("DEFAULT_THRESHOLDS", "10") for one in section.value
        }
        code = {key: repr(one.default) for key, one in signature(getattr(softsurv, name)).parameters.items()}
        assert shown == {key: code[key] for key in shown}
        assert all(one.description for one in section.value)


def test_the_navigation_names_what_is_there():
    known = {f"api/{page}.md" for page in REFERENCE}
    for target in re.findall(r": ([\w/]+\.(?:md|ipynb))$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE):
        assert target in known or (ROOT / "docs" / target).is_file() or (ROOT / target).is_file(), target


def test_a_site_whose_notebooks_are_no_pages_is_refused(tmp_path):
    assert on_files.mkdocs_priority > 0  # the plugin that renders them runs at 0
    names = [path.stem for path in sorted(ROOT.glob("notebooks/*.ipynb"))]
    (tmp_path / "notebooks").mkdir()
    for name in names[1:]:
        (tmp_path / "notebooks" / f"{name}.html").touch()
    with pytest.raises(RuntimeError, match=f"no page was made of the notebooks {names[0]};"):
        on_post_build({"site_dir": str(tmp_path)})
    (tmp_path / "notebooks" / f"{names[0]}.html").touch()
    on_post_build({"site_dir": str(tmp_path)})


def test_notebooks_become_pages():
    """The files that join the site, as mkdocs and the plugin see them."""
    config = pytest.importorskip("mkdocs.config", reason="mkdocs is not installed (extra docs)")
    files = pytest.importorskip("mkdocs.structure.files")
    pytest.importorskip("mkdocs_jupyter.plugin")
    settings = config.load_config(str(ROOT / "mkdocs.yml"))
    found = settings.plugins.on_files(files.Files([]), config=settings)
    pages = [file for file in found if file.src_uri.endswith(".ipynb")]
    assert [file.dest_uri.rpartition(".")[2] for file in pages] == ["html"] * len(pages)
    assert pages
