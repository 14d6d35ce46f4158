"""Notebooks: stored with small outputs, without helpers, and running from start to end."""

import ast
import os
import re
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
TIME_LIMIT = 240
"""Seconds for one cell; all notebooks together take less than that."""

MAX_BYTES = 1_500_000
"""A larger notebook is slow to open and to review."""

STAND_IN = {"mgus2"}
"""Data sets that come with no package; a notebook that loads one takes another where it is not there."""

FIRST_TIME = "compiling the exact search"
"""What a machine says once."""


def read(path):
    return nbformat.read(path, as_version=4)


def data_sets(path):
    return set(re.findall(r'load_dataset\("([\w:]+)"', path.read_text(encoding="utf-8").replace('\\"', '"')))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_holds_small_outputs_and_defines_nothing(path):
    book = read(path)
    nbformat.validate(book)
    assert path.stat().st_size < MAX_BYTES
    assert book.cells[0].cell_type == "markdown"
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        assert not [out for out in cell.outputs if out.output_type == "error"]
        tree = ast.parse(cell.source)
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 4


def executed(path, folder, monkeypatch):
    """The notebook as it is after it ran in this folder."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (extra test)")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed (extra test)")
    monkeypatch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
    monkeypatch.setenv("PYTHONWARNINGS", "ignore:IProgress not found")  # of tqdm, where ipywidgets is not installed
    book = read(path)
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(book, timeout=TIME_LIMIT, kernel_name="python3", resources=resources).execute()
    return book


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_runs(path, tmp_path, monkeypatch):
    from softsurv import load_dataset
    from softsurv.errors import SoftsurvError

    for name in data_sets(path) - STAND_IN:
        try:
            load_dataset(name)
        except SoftsurvError as error:
            pytest.skip(f"data set {name}: {error}")
    book = executed(path, tmp_path, monkeypatch)
    for cell in book.cells:
        if cell.cell_type == "code" and re.search(r"\bplot_\w+\(", cell.source):
            assert any("image/png" in out.get("data", {}) for out in cell.outputs), cell.source
    said = [out for cell in book.cells if cell.cell_type == "code" for out in cell.outputs]
    assert not [out for out in said if out.output_type == "error"]
    notes = [out.text for out in said if out.output_type == "stream" and out.name == "stderr"]
    lines = [line for text in notes for line in text.splitlines()]
    assert not [line for line in lines if not line.startswith(FIRST_TIME)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_the_data_come_with_a_package(path, tmp_path, monkeypatch):
    """Whoever has the extras can run a notebook, without network or files of their own."""
    pytest.importorskip("SurvSet", reason="SurvSet is not installed (extra data)")
    from softsurv import load_dataset

    monkeypatch.delenv("SOFTSURV_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # a file that another test downloaded is none of a package
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: pytest.fail("a data set is downloaded"))
    names = data_sets(path) - STAND_IN
    assert names
    for name in names:
        assert len(load_dataset(name)) > 0


@pytest.mark.slow
def test_a_stand_in_takes_the_place_of_a_table_that_is_not_there(tmp_path, monkeypatch):
    pytest.importorskip("SurvSet", reason="SurvSet is not installed (extra data)")
    monkeypatch.delenv("SOFTSURV_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    paths = [path for path in NOTEBOOKS if data_sets(path) & STAND_IN]
    assert paths
    for path in paths:
        said = [out for cell in executed(path, tmp_path, monkeypatch).cells for out in cell.get("outputs", [])]
        assert any("takes the place of" in out.get("text", "") for out in said)
