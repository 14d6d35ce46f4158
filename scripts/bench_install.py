"""What an installation holds: megabytes that each requirement and each extra brings along.

    python scripts/bench_install.py

writes scripts/tables/install.md from the packages of this environment, which must hold the extra ``test``. What a
requirement brings is what would not be there without it.
"""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pandas as pd
from _machine import as_markdown, machine_line
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "scripts" / "tables" / "install.md"
EXTRAS = ("data", "explore", "onnx", "postgres")


def plain(name: str) -> str:
    """A package's name as indexes compare it."""
    return name.lower().replace("_", "-")


def needed(wanted: list[str], without: str = "") -> dict[str, float]:
    """Megabytes of the packages that requirements lead to, one of them left out."""
    found: dict[str, float] = {}
    todo = [(one, "") for one in wanted]
    while todo:
        text, extra = todo.pop()
        requirement = Requirement(text)
        name = plain(requirement.name)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        if name in found or name in (plain(without), "softsurv"):
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:  # needed by something that is not used here
            continue
        files = [Path(str(package.locate_file(file))) for file in package.files or []]
        found[name] = sum(file.stat().st_size for file in files if file.is_file()) / 1e6
        todo += [(one, extra) for one in package.requires or [] for extra in ("", *requirement.extras)]
    return found


def main() -> None:
    """Measure and write the table."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    base = project["dependencies"]
    whole = needed(base)
    rows = []
    for text in base:
        name = Requirement(text).name
        rows.append((name, sum(whole.values()) - sum(needed(base, without=name).values())))
    rows.sort(key=lambda row: -row[1])
    for extra in EXTRAS:
        more = needed([*base, *project["optional-dependencies"][extra]])
        rows.append((f"extra {extra}", sum(more.values()) - sum(whole.values())))
    rows.append((f"all {len(whole)} packages without extras", sum(whole.values())))
    table = pd.DataFrame([(what, f"{size:.0f}") for what, size in rows], columns=["what", "MB"])
    title = f"# {__doc__.splitlines()[0]}"
    words = "Made by `scripts/bench_install.py`. What two requirements share is in neither of their rows."
    OUT.write_text("\n".join([title, "", words, "", machine_line(), "", as_markdown(table), ""]))


if __name__ == "__main__":
    main()
