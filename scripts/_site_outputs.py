"""What the code of a page prints and draws: run once for one code and one package, whoever asks.

A page's Python blocks, and the ``softsurv`` lines of its bash blocks, are run in order in one folder. What they say is
kept in build/outputs under a name made of the code and of the package's source, so that it is never stale.
``newcomer.py`` runs the pages word for word in a clone, the site shows what they print, and the tests hold them to it:
whoever comes first runs them.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import hashlib
import html
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "outputs"
FENCE = re.compile(r"^```(python|bash)\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)

Output = dict[str, Any]
"""``text`` that a block printed, and the ``pictures`` that it saved: pairs of a name and of base64 text."""


def code_of(markdown: str) -> list[list[str]]:
    """Language and code of each block of a page; none where no block holds something to run."""
    blocks = [[match[1], match[2]] for match in FENCE.finditer(markdown)]
    return blocks if any(language == "python" or commands(code) for language, code in blocks) else []


def with_outputs(markdown: str) -> str:
    """A page's text with what each block prints, and the pictures it saves, below the block.

    Raises
    ------
    RuntimeError
        If a block fails.
    """
    blocks = code_of(markdown)
    if not blocks:
        return markdown
    outputs = iter(kept(blocks))
    return FENCE.sub(lambda match: match[0] + shown(next(outputs)), markdown)


def commands(code: str) -> list[str]:
    """The ``softsurv`` lines of a bash block."""
    return [line for line in code.splitlines() if line.startswith("softsurv ")]


def shown(output: Output) -> str:
    """Markdown of an output."""
    parts = []
    if output["text"].strip():
        fence = "`" * (3 + max((len(run) for run in re.findall("`{3,}", output["text"])), default=0))
        parts.append(f"\n{fence}{{ .text .output }}\n{output['text'].rstrip()}\n{fence}\n")
    for name, data in output["pictures"]:
        parts.append(f'\n<img class="output" alt="{html.escape(name)}" src="data:image/png;base64,{data}">\n')
    return "".join(parts)


def place(blocks: list[list[str]], package: Path) -> Path:
    """The file that keeps what these blocks print with this package."""
    sources = [path.read_bytes() for path in sorted(package.glob("**/*.py"))]
    content = json.dumps(blocks).encode() + b"".join([*sources, Path(__file__).read_bytes()])
    return KEPT / f"{hashlib.sha256(content).hexdigest()}.json"


def kept(blocks: list[list[str]]) -> list[Output]:
    """The outputs of a page's blocks, run in an empty folder if that was not done for this code and this package."""
    import softsurv

    package = Path(softsurv.__file__).parent
    file = place(blocks, package)
    if not file.is_file():
        KEPT.mkdir(parents=True, exist_ok=True)
        env = os.environ | {"PYTHONPATH": str(package.parent), "MPLBACKEND": "agg", "PYTHONWARNINGS": "ignore"}
        command = [sys.executable, str(Path(__file__)), str(file)]
        with tempfile.TemporaryDirectory() as folder:
            text = json.dumps(blocks)
            done = subprocess.run(command, input=text, cwd=folder, env=env, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the code of a page fails:\n{done.stderr}")
    return list(json.loads(file.read_text(encoding="utf-8")))


def run_blocks(blocks: list[list[str]]) -> list[Output]:
    """Run the blocks of a page in this folder, one after the other."""
    names: dict[str, Any] = {"__name__": "page"}
    outputs, known = [], pictures()
    for language, code in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            if language == "python":
                run_python(code, names)
            else:
                run_commands(code)
        now = pictures()
        fresh = [[name, base64.b64encode(data[1]).decode()] for name, data in now.items() if known.get(name) != data]
        known = now
        outputs.append({"text": printed.getvalue().replace(f"{Path.cwd()}/", ""), "pictures": fresh})
    return outputs


def run_python(code: str, names: dict[str, Any]) -> None:
    """Run a block; what its last line is, if it is a value, is printed as an interpreter prints it."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "page", "exec"), names)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), "page", "eval"), names)
        if value is not None:
            print(repr(value))


def run_commands(code: str) -> None:
    """Run the ``softsurv`` lines of a block in a shell, each below its own text."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    for line in commands(code):
        done = subprocess.run(line, shell=True, env=os.environ | {"PATH": path}, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{line}\n{done.stdout}{done.stderr}")
        print(f"$ {line.partition('#')[0].rstrip()}\n{done.stdout}")


def pictures() -> dict[str, tuple[int, bytes]]:
    """The PNG files of this folder, and when each was written."""
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in sorted(Path().glob("*.png"))}


if __name__ == "__main__":
    found = run_blocks(json.load(sys.stdin))
    Path(sys.argv[1]).write_text(json.dumps(found), encoding="utf-8")
