"""``python -m softsurv`` is the command line: the same answers and the same exit codes."""

import runpy
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
