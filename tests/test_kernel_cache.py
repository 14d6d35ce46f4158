"""Compiled functions are right whatever becomes of their cache."""

from __future__ import annotations

import errno
import importlib.util
import logging
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from numba import types
from numba.core.caching import CompileResultCacheImpl, IndexDataCacheFile

from softsurv import kernel_cache
from softsurv.errors import NoCompilerError
from softsurv.exact import entries
from softsurv.exact.entries import entry, make_ready
from softsurv.loops import FLOAT, Loop

SOURCE = """
from softsurv.kernel_cache import njit

@njit(cache=True)
def double(x):
    return 2 * x
"""


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A file with a compiled function, which is kept beside it, and nothing said yet."""
    monkeypatch.setattr(kernel_cache, "_said", set())
    for setting in ("CACHE_DIR", "CACHE_LOCATOR_CLASSES"):  # the user's environment may name another folder
        monkeypatch.setattr(f"numba.core.config.{setting}", "", raising=False)
    path = tmp_path / "functions.py"
    path.write_text(SOURCE)
    return path


def load(path):
    """The function as a new process would import it."""
    spec = importlib.util.spec_from_file_location("functions", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.double


def cached(path):
    return sorted((path.parent / "__pycache__").glob("functions.double-*.nb?"))


def test_a_function_is_kept_on_disk(source):
    first = load(source)
    assert first(3) == 6
    assert len(cached(source)) == 2
    second = load(source)
    assert second(3) == 6
    assert sum(second.stats.cache_hits.values()) == 1


def test_without_a_folder_it_is_kept_in_memory(source, monkeypatch, caplog):
    monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", [])
    with caplog.at_level(logging.WARNING, logger="softsurv"):
        for _ in range(2):
            assert load(source)(3) == 6
    (said,) = caplog.messages
    assert said.endswith("name one in the environment variable NUMBA_CACHE_DIR")


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:20], lambda data: b"\xff" * len(data)])
@pytest.mark.parametrize("which", [0, 1], ids=["data", "index"])
def test_damage_is_compiled_over(source, caplog, which, damage):
    assert load(source)(3) == 6
    file = cached(source)[which]
    file.write_bytes(damage(file.read_bytes()))
    with caplog.at_level(logging.WARNING, logger="softsurv"):
        assert load(source)(3) == 6
    (said,) = caplog.messages
    assert "is damaged" in said
    assert said.endswith("compiling anew")
    again = load(source)
    assert again(3) == 6
    assert sum(again.stats.cache_hits.values()) == 1


def test_an_index_damaged_before_it_is_written_is_no_error(source, monkeypatch, caplog):
    """Another process may damage it between the two readings of one compilation."""
    load_index = IndexDataCacheFile._load_index
    answers = [load_index, lambda self: pickle.loads(b"\xff"), load_index, load_index]
    monkeypatch.setattr(IndexDataCacheFile, "_load_index", lambda self: answers.pop(0)(self))
    with caplog.at_level(logging.WARNING, logger="softsurv"):
        assert load(source)(3) == 6
    assert ["is damaged" in said for said in caplog.messages] == [True]
    assert load(source)(3) == 6


def test_a_full_disk_is_no_error(source, monkeypatch, caplog):
    def full(self, overloads):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(IndexDataCacheFile, "_save_index", full)
    with caplog.at_level(logging.WARNING, logger="softsurv"):
        assert load(source)(3) == 6
    (said,) = caplog.messages
    assert "cannot be written (No space left on device); kept in memory alone" in said


def test_what_it_holds_is_for_these_types_this_numba_and_complete(source, monkeypatch):
    function, whole = load(source), (types.int64,)
    assert not kernel_cache.holds(None, whole)
    assert not kernel_cache.holds(function._cache, whole)
    assert function(3) == 6
    assert kernel_cache.holds(function._cache, whole)
    assert not kernel_cache.holds(function._cache, (types.float64,))
    monkeypatch.setattr("numba.__version__", "0.0")
    assert not kernel_cache.holds(load(source)._cache, whole)
    monkeypatch.undo()
    data, index = cached(source)
    data.unlink()  # as on a disk that was full
    assert not kernel_cache.holds(function._cache, whole)
    index.write_bytes(b"")
    assert not kernel_cache.holds(function._cache, whole)


def test_without_machine_code_nothing_is_kept_and_the_cache_is_not_damaged(source, monkeypatch, caplog):
    """A Ctrl-C may be dropped where LLVM hands over its code."""

    def none(self, data):
        raise RuntimeError("no compiled object yet")

    monkeypatch.setattr(CompileResultCacheImpl, "reduce", none)
    with caplog.at_level(logging.WARNING, logger="softsurv"):
        assert load(source)(3) == 6
    assert not caplog.messages
    assert not cached(source)


SWITCHED_OFF = """
import numpy as np, pandas as pd
from softsurv import OptimalSurvivalTree, SoftSurvivalTree
from softsurv.errors import NoCompilerError
rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 2)), pd.DataFrame({"event": rng.random(60) < 0.7, "time": rng.exponential(size=60)})
for tree in (OptimalSurvivalTree(max_depth=2), SoftSurvivalTree(depth=1)):
    try:
        tree.fit(X, y)
    except NoCompilerError as error:
        print(error)
"""


def test_without_numbas_compiler_a_fit_says_in_one_sentence_how_to_switch_it_on():
    done = subprocess.run(
        [sys.executable, "-c", SWITCHED_OFF], capture_output=True, text=True, check=True,
        cwd=Path(__file__).parents[1], env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    said = done.stdout.splitlines()
    assert len(said) == 2
    assert set(said) == {
        "NUMBA_DISABLE_JIT switches numba's compiler off, and no tree is fitted without it; "
        "unset this environment variable, or set it to 0, and start Python again"
    }
    assert not done.stderr


def test_without_numbas_compiler_no_second_process_starts_and_nothing_is_said(monkeypatch, caplog):
    monkeypatch.setattr("numba.core.config.DISABLE_JIT", 1)
    monkeypatch.setattr(entries, "Helper", None)
    for one in (entry(float, returns=float)(abs), Loop(len, (FLOAT,), str)):
        with pytest.raises(NoCompilerError, match="unset this environment variable"):
            make_ready([one, one], "a test")
    assert not caplog.messages
