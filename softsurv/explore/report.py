"""The report: one page to hand over, with data, quality, calibration, tree, leaves, fairness and model card."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from softsurv.estimators.shared.checks import whole
from softsurv.explore.page import page, paragraph
from softsurv.explore.quality import sensitive_rows
from softsurv.explore.report_card import card_section, intro
from softsurv.explore.report_data import data_section, fairness_section
from softsurv.explore.report_quality import calibration_section, quality_section
from softsurv.explore.report_tree import leaf_sections, tree_section
from softsurv.explore.stability import LEAST_SAMPLES
from softsurv.explore.style import read_data, survival_tree, takes_tables
from softsurv.files import replace_file


@takes_tables
def report_html(
    tree: Any,
    data: Any,
    *,
    title: str | None = None,
    time_unit: str | None = None,
    group: str | None = None,
    n_boot: int = 200,
    seed: int = 0,
    stability: int = 0,
    note: str = "",
) -> str:
    """The report as one HTML page without scripts and without anything from outside.

    Parameters
    ----------
    tree : fitted tree
        Soft or optimal.
    data : SurvivalData, (X, y), or a table with ``time=`` and ``event=``
        Rows to report on, preferably rows that the tree has not seen.
    title : str, optional
    time_unit : str, optional
        For labels; known for the package's own data sets.
    group : str, optional
        Name of the sensitive group, of data that hold groups; the last of ``data.group_names`` by default.
    n_boot : int
        Bootstrap samples behind the intervals.
    seed : int
        Seed of the bootstrap.
    stability : int
        Samples of these rows on which the rules of a soft tree are found again, for the stability of its splits; 0:
        none, otherwise at least 2. Give the training rows then.
    note : str
        What readers should know of these rows before the measures, such as that some of them were trained on.

    Returns
    -------
    str
    """
    read, tree = read_data(data), survival_tree(tree)
    if stability != 0:  # before what takes long
        whole("stability", stability, LEAST_SAMPLES)
    if group is not None:
        sensitive_rows(read, group)
    name = title or f"Survival tree on {read.name or 'data'}"
    before = paragraph(note, "note") if note else ""
    sections = [
        ("data", "Data", data_section(read, time_unit)),
        ("quality", "Quality", before + quality_section(tree, read, time_unit, n_boot, seed)),
        ("calibration", "Calibration", calibration_section(tree, read, time_unit)),
        ("tree", "Tree", tree_section(tree, read, time_unit, stability, seed)),
        *leaf_sections(tree, read, time_unit),
    ]
    if read.group is not None:
        sections.append(("fairness", "Fairness", fairness_section(tree, read, group, time_unit)))
    sections.append(("card", "Model card", card_section(tree, read, time_unit)))
    return page(name, intro(tree, read), sections)


def write_report(tree: Any, data: Any, path: str | PathLike[str], **options: Any) -> Path:
    """Write :func:`report_html` to a file.

    Parameters
    ----------
    tree, data
        As in :func:`report_html`.
    path : str or path
        File to write, such as ``report.html``; one that is there is replaced.
    **options
        The other arguments of :func:`report_html`, such as ``title``, ``time_unit`` or ``stability``.

    Returns
    -------
    Path

    Examples
    --------
    >>> write_report(tree, test, "report.html", time_unit="days")  # doctest: +SKIP
    """
    return replace_file(path, report_html(tree, data, **options))
