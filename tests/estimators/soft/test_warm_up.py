"""Compilation is said, and done before the clock starts."""

from __future__ import annotations

import logging
import subprocess
import sys

import numpy as np
import pytest

from softsurv import SoftSurvivalTree
from softsurv.estimators.soft import warm_up
from softsurv.exact.jit import is_on_disk

COMPILED_LATER = """
import numpy as np
from numba.core.dispatcher import Dispatcher
from softsurv import SoftSurvivalTree, load_dataset
from softsurv.estimators.soft import warm_up
from softsurv.estimators.soft.parameters import SoftParameters

tree, late, compile_ = SoftSurvivalTree({arguments}), [], Dispatcher.compile
warm_up.is_on_disk = lambda function: False
warm_up.ready(SoftParameters(**tree.get_params(deep=False)))

def compile_and_note(self, signature):
    late.append(self.py_func.__name__)
    return compile_(self, signature)

Dispatcher.compile = compile_and_note
tree.fit(load_dataset("veterans"))
print(late)
"""


@pytest.fixture
def nothing_on_disk(monkeypatch):
    monkeypatch.setattr(warm_up, "_called", set())
    monkeypatch.setattr(warm_up, "is_on_disk", lambda function: False)


@pytest.mark.parametrize("arguments", ["depth=1", "max_terms=None, depth=1"])
def test_the_fit_itself_compiles_nothing(arguments):
    """`Dispatcher.compile` also reads from disk: so this takes no time where compiled code was kept."""
    code = COMPILED_LATER.format(arguments=arguments)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"


@pytest.mark.usefixtures("nothing_on_disk")
def test_it_is_said_once(caplog):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), (rng.random(80) < 0.8, rng.exponential(size=80) + 0.01)
    tree = SoftSurvivalTree(depth=1, max_terms=None, l2=0.1, shrinkage=1.0, routing_l2=0.1, leaf="weibull")
    with caplog.at_level(logging.WARNING, logger="softsurv"):
        for _ in range(2):
            tree.fit(X, y)
    assert caplog.messages == ["compiling the training of soft trees, once on this machine"]


def test_what_is_on_disk_is_not_looked_for_again(monkeypatch, caplog):
    rng = np.random.default_rng(0)
    tree = SoftSurvivalTree(depth=1, max_terms=None, l2=0.1, shrinkage=1.0, routing_l2=0.1, leaf="weibull")
    tree.fit(rng.normal(size=(80, 2)), (rng.random(80) < 0.8, rng.exponential(size=80) + 0.01))
    monkeypatch.setattr(warm_up, "_called", set())
    assert all(map(is_on_disk, warm_up.DENSE))
    with caplog.at_level(logging.WARNING, logger="softsurv"):
        tree.fit(rng.normal(size=(80, 2)), (rng.random(80) < 0.8, rng.exponential(size=80) + 0.01))
    assert not caplog.messages


@pytest.mark.parametrize(
    ("part", "compiles"), [("leaves", warm_up.LEAVES), ("searches", warm_up.SEARCHES), ("dense", warm_up.DENSE)]
)
def test_a_part_calls_what_it_is_to_compile(part, compiles, tmp_path):
    """In a process of its own, as the second one runs it: the others compile nothing for it."""
    code = (
        "from numba.core.dispatcher import Dispatcher\n"
        "from softsurv.estimators.soft import warm_up\n"
        "called, compile_ = set(), Dispatcher.compile\n"
        "def noted(self, signature):\n"
        "    called.add(self.py_func.__name__)\n"
        "    return compile_(self, signature)\n"
        "Dispatcher.compile = noted\n"
        f"warm_up.{part}()\n"
        "print(*called)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {function.py_func.__name__ for function in compiles} <= set(done.stdout.split())


def test_every_part_is_found_by_its_place():
    for place, part in warm_up.PARTS.items():
        module, name = place.split(":")
        assert getattr(sys.modules[module], name) is part
