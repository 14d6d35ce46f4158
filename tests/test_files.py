"""Files are replaced whole or not at all, and a sealed file shows every change."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from softsurv.files import PART, STALE_SECONDS, read_file, replace_file, replacing, seal, unseal


def test_a_file_is_replaced(tmp_path):
    file = replace_file(tmp_path / "a.txt", "é")
    assert replace_file(file, b"new").read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_an_error_leaves_the_old_file(tmp_path):
    file = replace_file(tmp_path / "a.txt", "old")

    def fail():
        with replacing(file) as part:
            part.write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert file.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_errors_name_the_file_not_its_part(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        replace_file(tmp_path / "none" / "a.txt", "")
    assert caught.value.filename == str(tmp_path / "none" / "a.txt")


def test_a_link_keeps_its_target(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    replace_file(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.mark.skipif(sys.platform == "win32", reason="no such permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_keeps_its_permissions_and_is_hidden_while_it_is_written(tmp_path, mode):
    file = replace_file(tmp_path / "a.txt", "old")
    file.chmod(mode)
    with replacing(file) as part:
        part.write_text("new")
        meanwhile = part.stat().st_mode & 0o777
    assert (meanwhile, file.stat().st_mode & 0o777) == (0o600, mode)
    assert file.read_text() == "new"


@pytest.mark.skipif(sys.platform == "win32", reason="no such devices")
def test_a_device_is_written_to():
    replace_file("/dev/null", "gone")
    assert not os.path.isfile("/dev/null")


@pytest.mark.skipif(sys.platform == "win32", reason="no such pipes")
def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=replace_file, args=(pipe, "through"))
    writer.start()
    assert pipe.read_text() == "through"
    writer.join()


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="no such device")
def test_standard_output_may_be_a_pipe():
    words = "from softsurv.files import replace_file; replace_file('/dev/stdout', 'through')"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("through", "")


def test_what_killed_writers_left_is_removed_in_time(tmp_path):
    fresh, stale = tmp_path / PART.format("fresh"), tmp_path / PART.format("stale")
    for part in (fresh, stale):
        part.write_text("half")
    past = time.time() - STALE_SECONDS - 60
    os.utime(stale, (past, past))
    replace_file(tmp_path / "a", "whole")
    assert fresh.exists()
    assert not stale.exists()


def test_two_writers_at_once_each_write_a_whole_file(tmp_path):
    contents = [str(k) * 100_000 for k in range(4)]
    code = (
        "import sys; from softsurv.files import replace_file\n"
        "for _ in range(30): replace_file(sys.argv[1], sys.argv[2] * 100_000)"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, tmp_path / "a", str(k)]) for k in range(2)]
    threads = [threading.Thread(target=replace_file, args=(tmp_path / "a", text)) for text in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [writer.wait() for writer in writers] == [0, 0]
    assert (tmp_path / "a").read_text() in contents


def test_a_file_is_read_up_to_a_limit(tmp_path):
    file = replace_file(tmp_path / "a", b"12345")
    assert read_file(file, 5) == b"12345"
    with pytest.raises(ValueError, match="it has 5 bytes, more than 4"):
        read_file(file, 4)
    with pytest.raises((ValueError, OSError)):
        read_file(tmp_path, 5)


def test_a_sealed_file_comes_back(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3).T, "b": np.array([], dtype=np.int32)}
    file = replace_file(tmp_path / "a", seal(arrays, 'note "sha256":"x"'))
    again, note = unseal(file, 10_000)
    assert note == 'note "sha256":"x"'
    assert again.keys() == arrays.keys()
    assert all(np.array_equal(again[name], arrays[name]) and again[name].dtype == arrays[name].dtype for name in arrays)


def test_every_flipped_bit_is_seen(tmp_path):
    whole = seal({"a": np.arange(3.0)}, '{"text": 1}')
    for place in range(len(whole)):
        data = bytearray(whole)
        data[place] ^= 1 << place % 8
        (tmp_path / "a").write_bytes(data)
        with pytest.raises(ValueError, match=r"^it has|^its "):
            unseal(tmp_path / "a", 10_000)


@pytest.mark.parametrize("limit", [0, 100])
def test_a_sealed_file_has_a_limit(tmp_path, limit):
    file = replace_file(tmp_path / "a", seal({"a": np.zeros(100)}, ""))
    with pytest.raises(ValueError, match="its length is wrong"):
        unseal(file, limit)
