"""What a page of the site loads from other hosts: there should be nothing, so that it shows without a network."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

LOADED = ("src", "srcset", "poster", "data")
"""Attributes whose address a browser loads by itself."""

LOADING = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch", "manifest"}
"""Relations of a ``link`` whose address it loads as well."""

FOREIGN = re.compile(r"(?:https?:)?//[^\s\"')]+", re.IGNORECASE)
IN_STYLES = re.compile(rf"(?:url\(\s*|@import\s+)[\"']?({FOREIGN.pattern})", re.IGNORECASE)
MERMAID = 'class="mermaid"'
"""A diagram, for which the theme's own script loads another one."""


def asked_of_others(site: Path) -> dict[str, list[str]]:
    """Addresses on other hosts by the page or style that loads them."""
    found = {path: loaded_by_page(path.read_text(encoding="utf-8")) for path in sorted(site.glob("**/*.html"))}
    found |= {path: IN_STYLES.findall(path.read_text(encoding="utf-8")) for path in sorted(site.glob("**/*.css"))}
    return {path.relative_to(site).as_posix(): addresses for path, addresses in found.items() if addresses}


def loaded_by_page(page: str) -> list[str]:
    """Addresses on other hosts that a browser asks for to show a page; links in the text are none."""
    reader = _Reader()
    reader.feed(page)
    return reader.found + ([MERMAID] if MERMAID in page else [])


class _Reader(HTMLParser):
    """Collects these addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Addresses in the attributes of an element."""
        known = {name: value or "" for name, value in attrs}
        self.style = tag == "style"
        loaded = [known[name] for name in LOADED if name in known]
        if tag == "link" and LOADING & set(known.get("rel", "").lower().split()):
            loaded.append(known.get("href", ""))
        self.found += [address for address in loaded if FOREIGN.match(address.strip())]
        self.found += IN_STYLES.findall(known.get("style", ""))

    def handle_data(self, data: str) -> None:
        """Addresses in a style sheet within the page."""
        if self.style:
            self.found += IN_STYLES.findall(data)
