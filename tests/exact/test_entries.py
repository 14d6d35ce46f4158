"""Compiled entries: what is compiled is said and counted, and kept on disk; no clock counts it."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np
import pytest

from softsurv.exact.compile import price_of
from softsurv.exact.entries import FOLDER, engine_files, make_ready
from softsurv.exact.task import Task
from softsurv.stopping import StopSignal, heard_at_once

ROUNDING = 1e-6
"""Seconds by which differences of readings of one clock may differ."""

FIRST_FIT = """
    import logging, sys
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stdout)
    from softsurv.exact import entries
    from softsurv.exact.compile import ready
    from softsurv.exact.objectives import label_costs, relative_risk
    entries.SAY_EVERY = 0.0
    ready(relative_risk.TASK, deep=False)
    print("--")
    ready(label_costs.TASK, deep=False)
"""


def said_in_a_process(folder):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FIRST_FIT)], capture_output=True, text=True, check=True, timeout=600,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
    )  # fmt: skip
    return [part.strip().split("\n") for part in done.stdout.split("--")]


@pytest.mark.slow
def test_what_is_compiled_is_said_once_on_a_machine(tmp_path):
    first, second = said_in_a_process(tmp_path)
    assert first == [
        f"compiling the exact search for 'relative_risk', once on this machine: part {k} of 3, {title}"
        for k, title in enumerate(
            ("The cost of leaves", "Trees of depth two", "Yes/no columns that belong together"), 1
        )
    ]
    # another task shares all but its leaf cost
    assert second == [
        "compiling the exact search for 'label_costs', once on this machine: part 1 of 1, The cost of leaves"
    ]
    assert said_in_a_process(tmp_path) == [[""], [""]]


def test_parts_that_take_no_second_are_not_said(caplog):
    class Quick:
        title, is_ready, is_on_disk, place = "A part", False, False, None

        def compile(self):
            pass

    with caplog.at_level("WARNING", logger="softsurv"):
        make_ready([Quick() for _ in range(5)], "a test")
    assert caplog.messages == ["compiling a test, once on this machine: part 1 of 5, A part"]


def test_compilation_takes_nothing_from_the_clock():
    def cost(sums, n, out):
        for i in range(n):
            out[i] = 3.25 * sums[0, i]

    from numba import njit

    stop, one, compiling = StopSignal(500.0), price_of(Task("clock", 1, njit(cost))), []

    class Timed:
        title, is_ready, is_on_disk, place = one.title, False, False, None

        def compile(self):
            begin = time.monotonic()
            one.compile()
            compiling.append(time.monotonic() - begin)

    begin, left = time.monotonic(), stop.left
    make_ready([Timed()], "a test", stop)
    counted, passed = left - stop.left, time.monotonic() - begin
    assert counted <= passed - compiling[0] + ROUNDING
    assert np.isinf(StopSignal().left)


def test_tasks_have_files_of_their_own(tmp_path, monkeypatch):
    """Tasks of one name that differ in a number too, and a task that is the same finds its own again."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))

    def scaled(factor):
        from numba import njit

        def cost(sums, n, out):
            for i in range(n):
                out[i] = factor * sums[0, i]

        return Task("scaled", 1, njit(cost))

    def files():
        return {file.name for file in tmp_path.rglob("*.nbi")}

    tasks = scaled(2.0), scaled(3.0), scaled(2.0)
    make_ready([price_of(tasks[0])], "a test")
    first = files()
    make_ready([price_of(tasks[1])], "a test")
    both = files()
    assert len(first) == 1
    assert len(both - first) == 1
    assert price_of(tasks[2]).is_on_disk
    make_ready([price_of(tasks[2])], "a test")
    assert files() == both


def test_the_digest_has_every_file_with_machine_code_of_an_entry():
    """A change of a file with intrinsics or compiled functions compiles what imports it again."""
    known = {(FOLDER / name).resolve() for name in engine_files()}
    package = FOLDER.parent
    imported = {
        name for file in known for name in re.findall(r"^from softsurv\.([\w.]+) import", file.read_text(), re.M)
    }
    files = {Path(package, *name.split(".")).with_suffix(".py").resolve() for name in imported}
    compiled = {file for file in files if re.search(r"^@(intrinsic|shared_kernel|njit)", file.read_text(), re.M)}
    assert (package / "float_bits.py").resolve() in compiled
    assert compiled <= known


@pytest.mark.parametrize("around", [nullcontext, heard_at_once, StopSignal])
def test_a_ctrl_c_that_a_compilation_drops_ends_it(around, usual_ctrl_c):
    """The next part is not compiled."""

    class Part:
        title, place, is_ready, is_on_disk = "a part", None, False, False

        def compile(self):
            compiled.append(self)
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)

    compiled = []
    with pytest.raises(KeyboardInterrupt), around():
        make_ready([Part(), Part()], "a test")
    assert len(compiled) == 1
