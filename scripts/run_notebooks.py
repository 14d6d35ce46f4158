"""Run the notebooks from start to end and store them with small outputs: pictures of 128 colours, no large pages.

python scripts/run_notebooks.py [1_quick_start ...]
"""

from __future__ import annotations

import base64
import io
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
COLOURS = 128
OWN = ("site-packages", "once on this machine")
"""What is said of this machine, its folders and what it compiles, is for nobody else."""

LARGEST_PAGE = 100_000
"""Characters; a larger page, such as the explorer, is for those who run the notebook."""


def small(png: str) -> str:
    """A picture of few colours, as base64."""
    file = io.BytesIO()
    Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB").quantize(COLOURS).save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def tidy(output: Any) -> None:
    """Make one output small."""
    data = output.get("data", {})
    if "image/png" in data:
        data["image/png"] = small(data["image/png"])
    if len(data.get("text/html", "")) > LARGEST_PAGE:
        del data["text/html"]
        data["text/plain"] = "An interactive page: run the notebook to open it."


def main(names: list[str]) -> None:
    """Run and store."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        book = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            NotebookClient(book, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
        for cell in book.cells:
            cell.metadata.pop("execution", None)
            if "outputs" in cell:
                cell.outputs = [one for one in cell.outputs if not any(said in one.get("text", "") for said in OWN)]
            for output in cell.get("outputs", []):
                tidy(output)
        nbformat.write(book, path)


if __name__ == "__main__":
    main(sys.argv[1:])
