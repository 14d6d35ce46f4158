"""What a newcomer does, word for word: a clone named softsurv, an empty home, README, then the pages of the site.

    python scripts/newcomer.py            # all of it: about ten minutes and 2 GB, removed at the end
    python scripts/newcomer.py --pages README.md docs/index.md

README's ``scripts/demo`` makes the environment. Then the Python blocks of each page are run as one script, and of its
bash blocks the ``softsurv`` lines, and those that install something, as they stand, in the clone, after
``source .venv/bin/activate``. README's ``scripts/test`` is left to the run of the tests. The first block that fails
ends the run.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CALLED = ("softsurv ", "python -m pip install ")

KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy", "SOFTSURV_DATA")
"""What the newcomer's environment takes over: the programs, and the way to the network and to the data."""


def pages() -> list[str]:
    """README, then the pages of the site in the order of its navigation."""
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    named = [f"docs/{name}" for name in re.findall(r": (\w+\.md)$", nav, re.MULTILINE)]
    return ["README.md", *(name for name in named if (ROOT / name).is_file())]


def blocks(text: str, language: str) -> list[str]:
    """What stands between the fences of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[str]:
    """The lines of the bash blocks that call softsurv, or install what a page asks for."""
    return [line for line in "".join(blocks(text, "bash")).splitlines() if line.startswith(CALLED)]


def run(command: str, clone: Path, env: dict[str, str]) -> None:
    """Run a line of bash in the clone, and say how long it took."""
    begin = time.monotonic()
    done = subprocess.run(["bash", "-ec", command], cwd=clone, env=env, capture_output=True, text=True)
    print(f"{time.monotonic() - begin:6.1f} s  {command.splitlines()[-1]}", flush=True)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nThis fails:\n{command}")


def read_page(page: str, clone: Path, env: dict[str, str]) -> None:
    """Run the code of a page."""
    text = (clone / page).read_text(encoding="utf-8")
    activate = "source .venv/bin/activate\n"
    lines = commands(text)
    for line in (line for line in lines if not line.startswith("softsurv ")):  # what the page's code needs
        run(activate + line, clone, env)
    if code := "\n".join(blocks(text, "python")):
        script = clone.parent / f"{Path(page).stem}.py"
        script.write_text(code, encoding="utf-8")
        run(f"{activate}python {script}", clone, env)
    for line in (line for line in lines if line.startswith("softsurv ")):
        run(activate + line, clone, env)


def main() -> None:
    """Clone, install, and read the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", nargs="+", default=pages(), help="pages to read (default: all)")
    chosen = parser.parse_args().pages
    with tempfile.TemporaryDirectory() as name:
        clone, home = Path(name) / "softsurv", Path(name) / "home"
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        env = {name: os.environ[name] for name in KEPT if name in os.environ} | {"HOME": str(home)}
        run("scripts/demo", clone, env)
        for page in chosen:
            print(page)
            read_page(page, clone, env)


if __name__ == "__main__":
    main()
