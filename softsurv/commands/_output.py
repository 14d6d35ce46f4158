"""What commands write: lines, tables and JSON on stdout."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softsurv.errors import InvalidParameterError, SoftsurvWarning, warn

if TYPE_CHECKING:
    from softsurv.data.survival_data import SurvivalData

CAUSE_MEASURES = ("concordance", "auc", "ibs")

_UNSEEN = (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_WRITTEN = {code: f"\\u{code:04x}" for code in _UNSEEN if chr(code) not in "\t\n"}
"""What a terminal would obey, such as colours or another order of letters, as Python and JSON write it."""

_OTHER_FORMATS = {".parquet", ".gz", ".zip", ".bz2", ".xz", ".zst", ".xlsx", ".feather", ".json"}
"""Names of files that other programs would read as something else than text."""


def readable(text: str) -> str:
    """Text of which a terminal obeys nothing: names of a table or a model may come from anybody."""
    return text.translate(_WRITTEN)


def echo(*lines: str) -> None:
    """Write lines to stdout. Where its reader, such as head, has seen enough, the command goes on in silence."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        for line in map(readable, lines):  # a name that the screen cannot show must not cost the fit
            sys.stdout.write(f"{line}\n".encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        write_to_nobody()


def write_to_nobody() -> None:
    """Let nothing that is written to stdout from now on reach anybody."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def echo_json(value: Any) -> None:
    """Write a value of plain parts to stdout as JSON."""
    echo(json.dumps(value, indent=1))


def output_file(path: str | Path, option: str = "--out", data: str | None = None) -> Path:
    """The file that an option names, in a folder that exists and not DATA itself: asked before the work is done."""
    file = Path(path)
    if not file.parent.is_dir():
        raise InvalidParameterError(
            f"{option} must lie in an existing folder, got {str(path)!r}; make the folder first"
        )
    if file.is_dir():
        raise InvalidParameterError(f"{option} must be a file, got the folder {str(path)!r}; add a file name")
    if data is not None and file.exists() and os.path.exists(data) and os.path.samefile(file, data):
        raise InvalidParameterError(
            f"{option} must not be DATA, which would be lost, got {str(path)!r}; choose another"
        )
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise InvalidParameterError(f"{option} must be writable, got {str(path)!r}; choose another place")
    return file


def output_csv(path: str, what: str, data: str) -> Path:
    """The csv file that --out names; ``what`` would be written there."""
    if set(Path(path).suffixes) & _OTHER_FORMATS:
        raise InvalidParameterError(f"--out must be a .csv file, got {path!r}; {what} are written as csv")
    return output_file(path, data=data)


def output_folder(path: str | Path) -> Path:
    """The folder that --out names, to be made later: asked before the work is done."""
    folder = Path(path).resolve()
    if folder.exists() and not folder.is_dir():
        raise InvalidParameterError(f"--out must be a folder, got the file {str(folder)!r}; choose another name")
    above = next(place for place in (folder, *folder.parents) if place.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise InvalidParameterError(f"--out must be writable, got {str(path)!r} below {str(above)!r}; choose another")
    return folder


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table, the first row being its head; the first column left-aligned, the others right-aligned."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        first, *others = (
            cell.rjust(width) if k else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join([first, *others]).rstrip())
    return lines


def measure_table(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Lines of a table of the four measures, one row for each model."""
    from softsurv.metrics.evaluate import MEASURES

    rows = [["", *MEASURES]]
    rows += [[name, *(_number(result[key]) for key in MEASURES)] for name, result in results.items()]
    return table(rows)


def cause_table(result: Mapping[str, Any]) -> list[str]:
    """Lines of a table of the measures of each cause; none where events have no causes."""
    if "causes" not in result:
        return []
    rows = [["cause", *CAUSE_MEASURES, "events"]]
    for name, found in result["causes"].items():
        rows.append([name, *(_number(found[key]) for key in CAUSE_MEASURES), str(found["events"])])
    return ["", *table(rows)]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def measure_note(result: Mapping[str, Any]) -> str:
    """What the measures rest on, and how to read them."""
    low, high = result["range"]
    of = f" of {result['subjects']} subjects" if "subjects" in result else ""
    return (
        f"{result['n']} rows{of}, {result['events']} events, measured at times {low:g} to {high:g}. "
        "Concordance and AUC: 0.5 is chance, 1 is perfect; ibs: lower is better."
    )


def data_line(data: SurvivalData) -> str:
    """A data set in one line."""
    facts = data.summary()
    of = f" of {facts['subjects']} subjects" if facts["subjects"] < facts["n"] else ""
    without = "of subjects without event" if of else "censored"
    between = facts["interval_censored"]
    events = _counted(facts["events"] + between, "event") + (f", {between} within an interval" if between else "")
    parts = [
        f"{facts['name'] or 'data'}: {_counted(facts['n'], 'row')}{of}, {_counted(facts['p'], 'feature')}",
        f"{events} ({facts['censoring_percent']:g} % {without})",
        f"times {facts['time_min']:g} to {facts['time_max']:g}, median {facts['time_median']:g}",
    ]
    if facts["causes"]:
        parts.append("causes " + ", ".join(f"{name} ({count})" for name, count in facts["causes"].items()))
    if facts["late_entries"]:
        parts.append(f"{facts['late_entries']} late {'entry' if facts['late_entries'] == 1 else 'entries'}")
    if facts["missing_cells"]:
        parts.append(_counted(facts["missing_cells"], "missing value"))
    return ", ".join(parts)


def _counted(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def warn_of_differences(record: Mapping[str, Any], data: SurvivalData | str) -> None:
    """Say in what a run cannot repeat the recorded one; nothing where there is no record."""
    from softsurv.run_record import differences

    for change in differences(record, data) if record else []:
        warn(f"{change}, so the result may differ from the recorded one", SoftsurvWarning)
