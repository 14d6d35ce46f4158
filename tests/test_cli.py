"""The command line as a whole: help, versions, wrong usage, errors that nobody foresaw, and pipes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from softsurv import __version__, load_model
from softsurv.cli import build_parser, main
from softsurv.commands import modules


def test_help_teaches_the_first_steps(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    text = capsys.readouterr().out
    assert stop.value.code == 0
    for word in ("first steps", "softsurv fit", "softsurv predict", "softsurv evaluate", "exit codes"):
        assert word in text


@pytest.mark.parametrize("module", modules(), ids=lambda m: m.__name__.rpartition(".")[2])
def test_every_command_explains_itself_with_an_example(module, capsys):
    name = module.__name__.rpartition(".")[2].replace("_", "-")
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    text = capsys.readouterr().out
    assert stop.value.code == 0
    assert f"softsurv {name} " in text.split("usage:")[1]
    assert "example" in text or "by hand" in text
    assert "``" not in text


def test_no_arguments_show_help(capsys):
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert "first steps:" in out
    assert err == ""


def test_sigterm_ends_a_command_in_order(monkeypatch, capsys):
    """The workers of a study went on to its end without it."""
    command = next(one for one in modules() if one.__name__.endswith("datasets"))
    monkeypatch.setattr(command, "run", lambda args: signal.raise_signal(signal.SIGTERM))
    assert main(["datasets"]) == 143
    assert capsys.readouterr().err == "softsurv: ended by SIGTERM\n"
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_ctrl_c_in_compiled_code_is_a_ctrl_c(monkeypatch, capsys):
    def run(args):
        raise SystemError("CPUDispatcher(...) returned a result with an exception set") from KeyboardInterrupt()

    monkeypatch.setattr("softsurv.commands.datasets.run", run)
    assert main(["datasets"]) == 130
    assert capsys.readouterr().err == "softsurv: interrupted\n"


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"softsurv {__version__}\n"


@pytest.mark.parametrize("arguments", [["fti"], ["fit"], ["fit", "a.csv", "--time", "t"], ["predict", "--times", "x"]])
def test_wrong_usage_ends_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: softsurv" in capsys.readouterr().err


def test_building_the_parser_imports_nothing_heavy():
    code = (
        "import sys; from softsurv.cli import build_parser; build_parser(); "
        "print([m for m in ('torch', 'pandas', 'sksurv', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("module", ["softsurv", "softsurv.cli"])
def test_both_modules_run(module):
    done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"softsurv {__version__}\n"


def test_a_reader_that_stops_reading():
    """A pipe that nobody reads any more, as with ``softsurv datasets | head -1``."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([sys.executable, "-m", "softsurv", "datasets"], stdout=writer, stderr=subprocess.PIPE)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_fit_whose_reader_stops_reading_is_saved(tmp_path):
    """As ``softsurv fit ... | head -3``."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "time": rng.exponential(size=60), "event": rng.random(60) < 0.7})
    frame.to_csv(tmp_path / "t.csv", index=False)
    how = ["--time", "time", "--event", "event", "--model", "optimal", "--depth", "1", "--test-size", "0.3"]
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, "-m", "softsurv", "fit", "t.csv", *how, "--out", "model"]
        done = subprocess.run(command, stdout=writer, cwd=tmp_path)
    finally:
        os.close(writer)
    assert done.returncode == 0
    assert load_model(tmp_path / "model").tree_.n_leaves <= 2


@pytest.mark.skipif(sys.platform == "win32", reason="no such shell")
def test_no_output_at_all_costs_no_command():
    command = f'"{sys.executable}" -m softsurv datasets veterans >&- 2>&-'
    assert subprocess.run(command, shell=True).returncode == 0


def test_a_table_that_the_screen_cannot_show_asks_for_a_file(capsys, monkeypatch):
    def encode(*_):
        "ö".encode("ascii")

    monkeypatch.setattr("softsurv.commands.datasets.run", encode)
    assert main(["datasets"]) == 1
    assert "the screen cannot show '\\xf6' in ascii; write to --out" in capsys.readouterr().err


def test_processes_of_a_command_import_nothing_from_the_working_folder(tmp_path, capsys, monkeypatch):
    """joblib starts its workers by ``python -m``: a threading.py beside somebody's table would run in them."""
    (tmp_path / "threading.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    command = [sys.executable, "-m", "joblib.externals.loky.backend.resource_tracker"]
    monkeypatch.setattr("softsurv.commands.datasets.run", lambda args: subprocess.run(command, check=True).returncode)
    assert main(["datasets"]) == 0
    assert not (tmp_path / "ran").exists()
    assert "PYTHONSAFEPATH" not in os.environ


@pytest.mark.parametrize("library", [np, torch])
def test_too_little_memory_is_said_whichever_library_asked(library, capsys, monkeypatch):
    monkeypatch.setattr("softsurv.commands.datasets.run", lambda args: library.empty(1 << 50))
    assert main(["datasets"]) == 1
    assert capsys.readouterr().err == "softsurv: error: not enough memory; use fewer rows or columns, or --memory\n"


def test_an_error_gives_the_screen_no_orders(tmp_path, capsys):
    file = tmp_path / "rows.csv"
    file.write_text("a\x1b[2J,b\u202e\n1,2\n")
    assert main(["fit", str(file), "--time", "t", "--event", "e"]) == 1
    err = capsys.readouterr().err
    assert "a\\u001b[2J" in err
    assert not {"\x1b", "\u202e"} & set(err)


def test_the_parser_knows_every_command_by_its_file():
    folder = Path(sys.modules["softsurv.commands"].__path__[0])
    files = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
    assert {module.__name__.rpartition(".")[2] for module in modules()} == files
    assert build_parser().prog == "softsurv"
