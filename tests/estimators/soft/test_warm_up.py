"""Compilation is said, and done before the clock starts."""

from __future__ import annotations

import logging
import os
from pkgutil import resolve_name

import numpy as np
import pytest
from oracles.forked import forked

from softsurv import SoftSurvivalTree, fit_many
from softsurv.estimators.soft import warm_up
from softsurv.loops import Loop
from softsurv.sparse import cut_kernels, kernels

WORKER = """
from numba.core.dispatcher import Dispatcher
from softsurv import SoftSurvivalTree, load_dataset
from softsurv.estimators.soft import warm_up

late, said, compile_, make_ready = [], [], Dispatcher.compile, warm_up.make_ready

def compile_and_note(self, signature):
    late.extend([] if said else [self.py_func.__name__])
    return compile_(self, signature)

def make_ready_and_say(loops, what, stop=None):
    said.append(what)
    make_ready(loops, what, stop)
    said.clear()

Dispatcher.compile, warm_up.make_ready = compile_and_note, make_ready_and_say
data = load_dataset("veterans")
X, time = data.X, data.time.numpy()

def fit(job):
    eval(f"SoftSurvivalTree({job['arguments']})").fit(X, time=time, **job["outcome"])
    return late
"""

FITTED = {"rules": {}, "dense": {"max_terms": None, "l2": 0.1, "shrinkage": 1.0, "routing_l2": 0.1}}


@pytest.fixture(scope="module")
def compiled_later():
    """Names of the functions that a fit compiles within its time limit: a process imports once and forks for each."""
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    with forked(WORKER) as ask:
        yield lambda arguments, outcome=None: ask(
            {"arguments": arguments, "outcome": outcome or {"event": [True] * 137}}
        )


@pytest.mark.parametrize(
    "arguments",
    [
        "depth=1",
        "max_terms=None, depth=1",
        "max_terms=None, depth=2, solver='nodec', n_restarts=2",
        "preset='paper', depth=1, n_restarts=2",
        "preset='paper', depth=1, n_restarts=2, leaf='spline_po'",
        "preset='paper', depth=1, n_restarts=2, leaf='lognormal'",
        "depth=1, leaf='lognormal'",
        "max_terms=None, depth=1, l1=0.1",
        "max_terms=None, depth=1, dtype='float32'",
        "depth=1, dtype='float32'",
    ],
)
def test_the_fit_itself_compiles_nothing(arguments, compiled_later):
    """`Dispatcher.compile` also reads from disk: so this takes no time where compiled code was kept."""
    assert compiled_later(arguments) == []


@pytest.mark.slow
def test_the_fit_itself_compiles_nothing_for_causes(compiled_later):
    assert compiled_later("depth=1", {"cause": [1, 0, 2, 1] * 34 + [1]}) == []


def test_every_loop_that_searches_for_rules_is_compiled_before_the_clock_starts():
    """Some are called for tables of many columns alone."""
    loops = [one for module in (kernels, cut_kernels) for one in vars(module).values() if isinstance(one, Loop)]
    assert set(loops) == set(warm_up.SEARCHES)


@pytest.fixture
def asked(monkeypatch):
    """The loops that fits have asked for, and none of them compiled or kept before."""
    found = []
    monkeypatch.setattr("softsurv.exact.entries.SAY_EVERY", 0.0)
    monkeypatch.setattr(Loop, "is_ready", property(lambda loop: loop in found))
    monkeypatch.setattr(Loop, "is_on_disk", property(lambda loop: False))
    monkeypatch.setattr(Loop, "place", property(lambda loop: None))
    monkeypatch.setattr(Loop, "compile", lambda loop: found.append(loop))
    return found


@pytest.mark.parametrize(("arguments", "loops"), [("rules", warm_up.RULES), ("dense", warm_up.DENSE)])
def test_each_loop_is_said_once(arguments, loops, asked, caplog):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), (rng.random(80) < 0.8, rng.exponential(size=80) + 0.01)
    tree = SoftSurvivalTree(depth=1, leaf="weibull", **FITTED[arguments])
    with caplog.at_level(logging.WARNING, logger="softsurv"):
        for _ in range(2):
            tree.fit(X, y)
    assert asked == list(loops)
    assert caplog.messages == [
        f"compiling the training of soft trees, once on this machine: part {k} of {len(loops)}, {one.title}"
        for k, one in enumerate(loops, 1)
    ]


def test_single_precision_compiles_the_searches_alone(asked):
    """Loops over rows take double precision."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), (rng.random(80) < 0.8, rng.exponential(size=80) + 0.01)
    SoftSurvivalTree(depth=1, leaf="weibull", dtype="float32", **FITTED["dense"]).fit(X, y)
    assert not asked
    SoftSurvivalTree(depth=1, leaf="weibull", dtype="float32").fit(X, y)
    assert asked == list(warm_up.SEARCHES)


def test_settings_that_train_together_are_said_too(asked):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), (rng.random(80) < 0.8, rng.exponential(size=80) + 0.01)
    plain = {"depth": 1, "leaf": "weibull", **FITTED["dense"]}
    fit_many(X, y, settings=[plain, plain | {"solver": "nodec"}])
    assert asked == [*warm_up.DENSE, *warm_up.NODES]


def test_what_is_on_disk_is_not_said(caplog):
    for loop in warm_up.DENSE:
        loop.compile()
        assert loop.is_on_disk
    rng = np.random.default_rng(0)
    tree = SoftSurvivalTree(depth=1, leaf="weibull", **FITTED["dense"])
    with caplog.at_level(logging.WARNING, logger="softsurv"):
        tree.fit(rng.normal(size=(80, 2)), (rng.random(80) < 0.8, rng.exponential(size=80) + 0.01))
    assert not caplog.messages


@pytest.mark.parametrize("loop", [*warm_up.RULES, *warm_up.NODES, *warm_up.PAPER], ids=lambda loop: loop.place)
def test_every_loop_is_found_by_its_place(loop):
    assert resolve_name(loop.place) is loop
