"""``softsurv export``: what it writes is what the loaded tree writes; options of another language are wrong usage."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from oracles.trial import make_table

from softsurv import OptimalSurvivalTree, SoftSurvivalTree, load_model
from softsurv.cli import main


@pytest.fixture(scope="session")
def rows():
    """Numbers and categories."""
    return make_table(300)[["age", "arm"]]


@pytest.fixture(scope="session")
def saved(rows, tmp_path_factory, compiled):
    """The folders of a soft tree and an optimal one, in whose leaves hazards differ tenfold."""
    rng, old = np.random.default_rng(0), rows["age"] > 60
    y = (np.ones(len(rows), bool), rng.exponential(np.where(old & (rows["arm"] == "new"), 1.0, 10.0)))
    soft = SoftSurvivalTree(depth=2, leaf="weibull", l2=0.3, shrinkage=5.0, random_state=0)
    folder = tmp_path_factory.mktemp("export")
    for name, tree in {"soft": soft, "optimal": OptimalSurvivalTree(max_depth=2)}.items():
        assert len(np.unique(tree.fit(rows, y).apply(rows))) > 1
        tree.save(folder / name)
    return {name: str(folder / name) for name in ("soft", "optimal")}


@pytest.mark.parametrize("kind", ["soft", "optimal"])
def test_each_language_is_that_of_the_loaded_tree(kind, saved, capsys):
    path = saved[kind]
    tree = load_model(path)
    for language, expected in {
        "text": tree.export_text(),
        "dot": tree.export_dot(),
        "sql": tree.export_sql(),
        "python": tree.export_python(),
    }.items():
        capsys.readouterr()
        assert main(["export", path, "--as", language]) == 0
        assert capsys.readouterr().out == f"{expected.rstrip()}\n"


def test_the_name_of_the_file_says_the_language(trial, rows, saved, capsys):
    model = saved["soft"]
    tree = load_model(model)
    assert main(["export", model, "--out", "side.py", "--name", "side"]) == 0
    assert capsys.readouterr().out == "python of the tree in side.py\n"
    scope = {}
    exec((trial / "side.py").read_text(), scope)
    assert [scope["side"](row) for row in rows.to_dict("records")] == tree.apply(rows).tolist()
    assert main(["export", model, "--out", "leaf.SQL", "--quote", "`"]) == 0
    assert (trial / "leaf.SQL").read_text() == tree.export_sql("`") + "\n"
    assert main(["export", model, "--as", "dot", "--out", "tree"]) == 0
    assert (trial / "tree").read_text().startswith("digraph tree {")


def test_onnx_holds_the_survival_curves(trial, rows, saved):
    runtime = pytest.importorskip("onnxruntime")
    assert main(["export", saved["soft"], "--out", "tree.onnx", "--times", "2", "5"]) == 0
    session = runtime.InferenceSession("tree.onnx")
    inputs = {"age": rows[["age"]].to_numpy(), "arm": rows[["arm"]].to_numpy(object)}
    (survival,) = session.run(["survival"], inputs)
    expected = load_model(saved["soft"]).predict_survival_function(rows, [2, 5])
    np.testing.assert_allclose(survival, expected, atol=1e-9)


def test_an_optimal_tree_is_no_onnx_graph(trial, saved, capsys):
    pytest.importorskip("onnx")
    assert main(["export", saved["optimal"], "--out", "tree.onnx"]) == 1
    assert (
        "tree must be a soft tree for ONNX, got an optimal one; export it as Python, SQL or Graph"
        in capsys.readouterr().err
    )
    assert not (trial / "tree.onnx").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--quote", "`"], "--quote is for sql, and the tree is written as text; add --as sql"),
        (["--as", "sql", "--name", "f"], "--name is for python"),
        (["--as", "python", "--times", "1"], "--times is for onnx"),
        (["--as", "onnx"], "ONNX is no text; add --out FILE"),
        (["--as", "pmml"], "invalid choice: 'pmml'"),
    ],
)
def test_wrong_usage(trial, model, options, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["export", model, *options])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "tree.pdf"], "--out must end in one of .txt, .dot, .gv, .py, .sql, .onnx where --as is left out"),
        (["--out", "no/tree.sql"], "--out must lie in an existing folder"),
        (["--as", "python", "--name", "class"], "name must be a Python identifier"),
    ],
)
def test_wrong_files_and_names(trial, model, options, message, capsys):
    assert main(["export", model, *options]) == 1
    assert message in capsys.readouterr().err
    assert main(["export", "nowhere"]) == 1
    assert "'nowhere' holds no model; pass a folder that fit wrote" in capsys.readouterr().err


def test_a_pipe_gets_the_text_as_it_is(saved):
    model = saved["soft"]
    command = [sys.executable, "-m", "softsurv", "export", model, "--as", "sql"]
    found = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    assert found.stdout == load_model(model).export_sql() + "\n"
    assert not found.stderr
