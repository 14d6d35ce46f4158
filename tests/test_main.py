"""``python -m softsurv`` is the command line: the same answers and the same exit codes."""

import os
import runpy
import subprocess
import sys

import pytest

from softsurv import __version__


@pytest.mark.parametrize(("arguments", "code", "words"), [
    (["--version"], 0, f"softsurv {__version__}"),
    ([], 0, "first steps:"),
    (["fti"], 2, "usage: softsurv"),
])  # fmt: skip
def test_the_module_ends_as_the_command_does(arguments, code, words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["softsurv", *arguments])
    with pytest.raises(SystemExit) as stop:
        runpy.run_module("softsurv", run_name="__main__")
    assert stop.value.code == code
    assert words in "".join(capsys.readouterr())


def test_a_ctrl_c_in_text_that_is_executed_ends_with_130(tmp_path):
    """numba executes text while it compiles. Python then ended the process by the signal, whatever its exit code."""
    (tmp_path / "sitecustomize.py").write_text(
        "import softsurv.cli\nsoftsurv.cli.build_parser = lambda: exec('raise KeyboardInterrupt')\n"
    )
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    command = [sys.executable, "-m", "softsurv"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths})
    assert (done.returncode, done.stderr) == (130, "softsurv: interrupted\n")
