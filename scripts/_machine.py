"""What every measurement prints: the machine, and a Markdown table."""

from __future__ import annotations

import os
import platform
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def machine_line() -> str:
    """Processor, cores, Python, torch and numpy, and today's date."""
    import numpy as np
    import torch

    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        processor = names[0] if names else processor
    return (
        f"{processor}, {os.cpu_count()} cores; Python {platform.python_version()}, torch {torch.__version__}, "
        f"numpy {np.__version__}; {date.today().isoformat()}"
    )


def table_of(lines: list[dict[str, Any]]) -> pd.DataFrame:
    """Lines that need not have the same keys as a frame; a missing cell is empty."""
    import pandas as pd

    frame = pd.DataFrame(lines, dtype=object)
    return frame.where(frame.notna(), "")


def write_page(path: Path, script: str, title: str, note: str, lines: list[dict[str, Any]]) -> None:
    """A page with a title, the script and machine that made it, a note and the lines as a table."""
    import pandas as pd

    made = f"Made by [{script}](../{script}) on {machine_line()}."
    path.write_text(f"# {title}\n\n{made}\n{note}\n\n{as_markdown(pd.DataFrame(lines))}\n")


def as_markdown(frame: pd.DataFrame) -> str:
    """A frame as a Markdown table, values as they print."""
    rows = [list(frame.columns), ["---"] * frame.shape[1], *frame.astype(object).to_numpy().tolist()]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)
