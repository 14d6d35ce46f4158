"""What joins docs/ in the site: notebooks, tables, pages of the root, a reference of all public names, and outputs."""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs loads this file by its path alone
from _site_formulas import with_formulas
from _site_hosts import asked_of_others
from _site_outputs import with_outputs

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

ROOT = Path(__file__).resolve().parents[1]
JOINED = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "notebooks/*.ipynb", "scripts/*", "scripts/tables/*.md")

OF_DATA = ("SurvivalData", "load_dataset", "survival_data")
REFERENCE = {
    "estimators": ("Estimators", "softsurv", (*OF_DATA, "compare", "__version__"), False),
    "data": ("Data", "softsurv", OF_DATA, True),
    "explore": ("Pictures, words and reports", "softsurv.explore", (), False),
    "metrics": ("Measures", "softsurv.metrics", (), False),
    "tune": ("Studies", "softsurv.tune", (), False),
    "hazards": ("Leaf families", "softsurv.hazards", (), False),
}
"""Page: its title, the package whose public names it lists, names, and whether those alone or all but those."""


def on_files(files: Files, config: Any) -> Files:
    """Add what does not lie in docs/."""
    from mkdocs.structure.files import File

    for pattern in JOINED:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file():
                place = path.relative_to(ROOT).as_posix()
                # by its folder: the plugin that renders notebooks looks for nothing else
                files.append(File(place, str(ROOT), config["site_dir"], config["use_directory_urls"]))
    for page in REFERENCE:
        files.append(File.generated(config, f"api/{page}.md", content=reference(page)))
    return files


on_files.mkdocs_priority = 100  # before the plugin that renders notebooks looks for them


def on_post_build(config: Any) -> None:
    """Refuse a site whose notebooks are files to download, not pages, and one that loads from other hosts.

    Raises
    ------
    RuntimeError
        If a notebook has no page, or a page loads a script, a style, a font or a picture from another host.
    """
    made = Path(config["site_dir"]) / "notebooks"
    missing = [
        path.stem for path in sorted(ROOT.glob("notebooks/*.ipynb")) if not (made / f"{path.stem}.html").is_file()
    ]
    if missing:
        raise RuntimeError(f"no page was made of the notebooks {', '.join(missing)}; see on_files")
    if asked := asked_of_others(Path(config["site_dir"])):
        raise RuntimeError(f"pages load from other hosts: {asked}; put a copy into docs/, or leave it out")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links of docs/ into the repository, and of its root into docs/, lead to where these lie in the site."""
    if page.file.src_uri.startswith(("scripts/", "CHANGELOG")):
        page.meta["search"] = {"boost": 0.1}  # long, they hold every word: pages that explain come first
    if "/" in page.file.src_uri:
        return markdown.replace("](../../docs/", "](../../")
    markdown = re.sub(r"\]\((?:\.\./|docs/)", "](", markdown)
    return with_outputs(markdown) if (ROOT / "docs" / page.file.src_uri).is_file() else markdown


def on_page_content(html: str, **_: Any) -> str:
    """Formulas as MathML."""
    return with_formulas(html)


def reference(page: str) -> str:
    """A page of the reference: each public name by the docstring of the module it lives in."""
    title, package, names, those = REFERENCE[page]
    public = [name for name in import_module(package).__all__ if (name in names) == those]
    blocks = [f"::: {home_of(package, name)}" for name in public]
    return "\n\n".join([f"# {title}", f"Import from `{package}`.", *blocks]) + "\n"


def home_of(package: str, name: str) -> str:
    """Where a public name is defined."""
    found = getattr(import_module(package), name)
    if inspect.isclass(found) or inspect.isfunction(found):
        return f"{inspect.unwrap(found).__module__}.{name}"
    return f"{package}.{name}"
