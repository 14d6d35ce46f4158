"""How functions are compiled: names on disk that follow the source, and what is said and counted."""

import gc
import logging
from types import SimpleNamespace

import pytest

from softsurv.exact import jit


def test_the_digest_follows_every_file_and_not_their_order(monkeypatch, tmp_path):
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "jit.py"))
    for name in "ab":
        (tmp_path / name).write_text(name)
    before = jit.source_digest(["a", "b"])
    assert jit.source_digest(["b", "a"]) == before
    assert jit.source_digest(["a"]) != before
    (tmp_path / "b").write_text("changed")
    assert jit.source_digest(["a", "b"]) != before
    with pytest.raises(FileNotFoundError):
        jit.source_digest(["c"])


def test_an_entry_is_named_after_the_files_compiled_into_it():
    names = []
    for files in (["jit.py"], ["jit.py", "kernels/words.py"]):

        def one(x):
            return x

        names.append(jit.array_entry(*files)(one).py_func.__qualname__)
    assert names == [f"one_{jit.source_digest(files)}" for files in (["jit.py"], ["jit.py", "kernels/words.py"])]
    assert names[0] != names[1]


@jit.without_garbage_collection()
def fail():
    assert not gc.isenabled()
    raise KeyError


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collection_is_as_before_also_after_an_error(enabled):
    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(KeyError):
            fail()
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if was else gc.disable)()


def kept(folder, name):
    def function():
        pass

    function.__qualname__ = name
    return SimpleNamespace(stats=SimpleNamespace(cache_path=folder), py_func=function)


def test_only_what_is_not_on_disk_is_said(tmp_path, caplog):
    (tmp_path / "module.first_abc-12.py311.nbi").touch()
    first, second, homeless = kept(tmp_path, "first_abc"), kept(tmp_path, "second_abc"), kept(None, "first_abc")
    assert [jit.is_on_disk(one) for one in (first, second, homeless)] == [True, False, False]
    with caplog.at_level(logging.WARNING, logger="softsurv"):
        jit.say_compiling([first], "nothing")
        jit.say_compiling([first, second, homeless], "a search")
    assert [record.getMessage() for record in caplog.records] == ["compiling a search, once on this machine: 2 parts"]
