"""The documentation site: every public name has a docstring and a place. `.ci/run` builds it, warnings as errors."""

from __future__ import annotations

import re
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest
from _site import REFERENCE, home_of, on_files, on_page_content, on_post_build, reference
from _site_hosts import asked_of_others, loaded_by_page

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


ELSEWHERE = re.compile(r"[Aa]rguments (?:and errors )?as (?:in|there)")
"""A docstring that says where its arguments are explained."""


@pytest.mark.parametrize("package", sorted({package for _, package, _, _ in REFERENCE.values()}))
def test_every_argument_of_a_public_name_is_in_its_docstring(package):
    """``time`` and ``event`` of a table are told with it: "a table with ``time=`` and ``event=``"."""
    for name in import_module(package).__all__:
        public = getattr(import_module(package), name)
        if not callable(public) or ELSEWHERE.search(public.__doc__):
            continue
        arguments = [one.name for one in signature(public).parameters.values() if one.kind is not one.VAR_KEYWORD]
        wanted = set(arguments) - ({"time", "event"} if arguments[-2:] == ["time", "event"] else set())
        assert wanted <= set(re.findall(r"\w+", public.__doc__)), name


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


def markdown_as_the_site_reads_it():
    config = pytest.importorskip("mkdocs.config", reason="mkdocs is not installed (extra docs)")
    markdown = pytest.importorskip("markdown")
    settings = config.load_config(str(ROOT / "mkdocs.yml"))
    return markdown.Markdown(extensions=settings.markdown_extensions, extension_configs=settings.mdx_configs)


def test_every_formula_becomes_mathml():
    pytest.importorskip("math_core", reason="math-core is not installed (extra docs)")
    text = (ROOT / "docs" / "mathematics.md").read_text(encoding="utf-8")
    page = on_page_content(markdown_as_the_site_reads_it().convert(text))
    formulas = re.findall(r"<math.*?</math>", page, re.DOTALL)
    assert len(formulas) == len(re.findall(r"\\\(.+?\\\)|\\\[.+?\\\]", text, re.DOTALL)) > 30
    assert "\\" not in page  # a command that was not read, or a mark of a formula
    assert sum('display="block"' in formula for formula in formulas) == text.count("\\[\n")
    words = [re.sub("<[^>]+>", "", formula) for formula in formulas]
    assert "ci∈{0,1}" in words
    assert any(word.endswith("+λ#leaves") for word in words)


def test_a_formula_that_cannot_be_read_is_an_error():
    pytest.importorskip("math_core", reason="math-core is not installed (extra docs)")
    page = '<p>a &lt; b, <span class="arithmatex">\\(a&lt;b\\)</span></p>'
    assert on_page_content(page).startswith('<p>a &lt; b, <span class="arithmatex"><math>')
    with pytest.raises(RuntimeError, match=r"the formula .nosuch x cannot be read"):
        on_page_content('<div class="arithmatex">\\[\\nosuch x\\]</div>')


@pytest.mark.parametrize(
    "asks",
    [
        '<script src="https://unpkg.com/a.js"></script>',
        "<script src=//unpkg.com/a.js></script>",
        '<link rel="preconnect stylesheet" href="https://fonts.example">',
        '<img alt="x" src="http://example.org/x.png">',
        '<p style="background: url(https://example.org/x.png)">x</p>',
        "<style>@font-face{src:url('//example.org/x.woff')}</style>",
        '<style>@import "https://example.org/x.css";</style>',
        '<pre class="mermaid"><code>graph</code></pre>',
    ],
)
def test_what_a_page_loads_from_another_host_is_found(asks):
    page = f"<html><head></head><body>{asks}</body></html>"
    assert len(loaded_by_page(page)) == 1


def test_links_and_files_of_the_site_are_no_such_thing():
    assert not loaded_by_page(
        '<link rel="canonical" href="https://example.org/"><link rel="stylesheet" href="../site.css">'
        '<script src="assets/a.js"></script><script>var url = "https://example.org/x.js"</script>'
        '<a href="https://example.org">x</a><img src="data:image/png;base64,AA//"> <p>url(https://example.org)</p>'
    )


def test_a_site_that_loads_from_another_host_is_refused(tmp_path):
    (tmp_path / "notebooks").mkdir()
    for path in ROOT.glob("notebooks/*.ipynb"):
        (tmp_path / "notebooks" / f"{path.stem}.html").touch()
    (tmp_path / "site.css").write_text("@import url(https://example.org/x.css);")
    assert asked_of_others(tmp_path) == {"site.css": ["https://example.org/x.css"]}
    with pytest.raises(RuntimeError, match=r"pages load from other hosts: .'site.css'"):
        on_post_build({"site_dir": str(tmp_path)})


def test_the_settings_name_no_other_host():
    """What the theme and the settings put on every page; ``on_post_build`` looks at the pages themselves."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "//" not in settings
    assert "font: false" in settings  # or the theme asks for its fonts


def test_the_colours_follow_the_system():
    """The theme remembers an entry; the first one asks the system each time, the others hold for good."""
    media = re.findall(r'media: "(.*)"', (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert media[0] == "(prefers-color-scheme)"
