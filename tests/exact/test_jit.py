"""How functions are compiled: names on disk that follow the source, and what is said and counted."""

import gc

import pytest

from softsurv.exact import jit
from softsurv.loops import FLOAT


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

        made = jit.array_entry(*files)(FLOAT)(one)
        assert made(2.0) == 2.0
        names.append(made.py_func.__qualname__)
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


@pytest.mark.usefixtures("nothing_frozen")
def test_after_a_compilation_all_objects_count_as_old():
    """Else the next collection of young objects searches the millions that a compilation makes."""
    gc.enable()
    made = [[] for _ in range(10)]
    with jit.without_garbage_collection():
        made += [[] for _ in range(10_000)]
        assert gc.get_count()[0] > 10_000
    assert gc.get_count()[0] < 1_000
    assert gc.get_freeze_count() == 0
    old = {id(one) for one in gc.get_objects(generation=2)}
    assert all(id(one) in old for one in made)


@pytest.mark.usefixtures("nothing_frozen")
def test_objects_that_a_program_has_frozen_stay_so():
    mine = [[]]

    def is_listed():
        """Whether the collector looks at the object; their number says less, as other threads may free some."""
        return any(one is mine for one in gc.get_objects())

    assert is_listed()
    gc.freeze()
    try:
        with jit.without_garbage_collection():
            pass
        assert not is_listed()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
    assert is_listed()
