"""What a newcomer does, word for word: a clone named softsurv, an empty home, README, then the pages of the site.

    python scripts/newcomer.py            # all of it: some minutes and 2 GB, removed at the end
    python scripts/newcomer.py --pages README.md docs/index.md

README's ``scripts/demo`` makes the environment, and README's code runs in the same clone. Pages are read two at a time,
all others each in a clone of its own with that environment, since a reader may begin on any. Python blocks and the
``softsurv`` lines of bash blocks are run as they stand and in their order, after ``source .venv/bin/activate``; lines
that install something are run before all pages. README's ``scripts/test`` is left to the run of the tests. A block that
fails ends the run. What the blocks print is kept for the site and the tests, which then do not run them again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from _site_outputs import KEPT, code_of, place

ROOT = Path(__file__).resolve().parents[1]
README = "README.md"
ACTIVATE = "source .venv/bin/activate\n"

KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy")
"""What the newcomer's environment takes over: the programs, and the way to the network."""


def pages() -> list[str]:
    """README, then the pages of the site in the order of its navigation."""
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    named = [f"docs/{name}" for name in re.findall(r": (\w+\.md)$", nav, re.MULTILINE)]
    return [README, *(name for name in named if (ROOT / name).is_file())]


def run(command: str, clone: Path, env: dict[str, str], said: str, given: str | None = None) -> None:
    """Run a line of bash in the clone, and say how long it took."""
    begin = time.monotonic()
    done = subprocess.run(["bash", "-ec", command], cwd=clone, env=env, capture_output=True, text=True, input=given)
    print(f"{time.monotonic() - begin:6.1f} s  {said}", flush=True)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nThis fails: {said}")


def install(page: str, clone: Path, env: dict[str, str]) -> None:
    """Run the lines of a page that install what its code needs."""
    lines = [line for language, code in blocks_of(page, clone) if language == "bash" for line in code.splitlines()]
    for line in (line for line in lines if line.startswith("python -m pip install ")):
        run(ACTIVATE + line, clone, env, line)


def read_page(page: str, clone: Path, env: dict[str, str]) -> None:
    """Run the code of a page, and keep what it prints."""
    if blocks := blocks_of(page, clone):
        part = clone.parent / "outputs.json"
        run(f"{ACTIVATE}python scripts/_site_outputs.py {part}", clone, env, page, json.dumps(blocks))
        shutil.move(part, place(blocks, clone / "softsurv"))


def read_alone(page: str, first: Path, env: dict[str, str]) -> None:
    """Read a page in a clone of its own, which shares the environment of the first one."""
    with tempfile.TemporaryDirectory() as name:
        clone = Path(name) / "softsurv"
        subprocess.run(["git", "clone", "--quiet", str(first), str(clone)], check=True)
        (clone / ".venv").symlink_to(first / ".venv")
        read_page(page, clone, env)


def blocks_of(page: str, clone: Path) -> list[list[str]]:
    """Language and code of a page's blocks."""
    return code_of((clone / page).read_text(encoding="utf-8"))


def main() -> None:
    """Clone, install, and read the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", nargs="+", default=pages(), help="pages to read (default: all)")
    chosen = parser.parse_args().pages
    KEPT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        clone, home = Path(name) / "softsurv", Path(name) / "home"
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        env = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ} | {"HOME": str(home)}
        run("scripts/demo", clone, env, "scripts/demo")
        for page in chosen:
            install(page, clone, env)

        def read(page: str) -> None:
            """README where it was cloned, any other page in a clone of its own."""
            (read_page if page == README else read_alone)(page, clone, env)

        with ThreadPoolExecutor(2) as readers:
            list(readers.map(read, chosen))


if __name__ == "__main__":
    main()
