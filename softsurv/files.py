"""Files on disk: replaced in one step, read in one piece, sealed with a checksum."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

PART = ".softsurv-{}.part"
"""Name of a file that is still being written."""

STALE_SECONDS = 3600.0
"""A part this old was left by a process that was killed; the next writer removes it."""

_BLANK = "0" * 64
"""Stands for the checksum while the checksum is computed."""

_HEAD = 8
"""Bytes of a safetensors file that hold the length of its header."""

_MAX_HEADER = 100_000_000
"""Longest header, the limit of the safetensors format."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new file beside ``path``, which takes the place of ``path`` when the block ends without an error.

    Readers see the old file or the new one, never a half. The old file stays after an error, a kill or a full disk.
    A device or a pipe cannot be replaced and is written to directly. A link keeps pointing to its target, and a file
    its permissions: what its owner hid stays hidden, also while it is written.

    Parameters
    ----------
    path : path-like
        In an existing folder.

    Raises
    ------
    OSError
        With the name of the file.
    """
    if os.path.exists(path) and not os.path.isfile(path):  # asked of the link: that of /dev/stdout names no path
        yield Path(path)
        return
    target = Path(os.path.realpath(path))
    part = target.with_name(PART.format(secrets.token_hex(8)))
    try:
        _remove_stale(target.parent)
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        if mode is not None:
            os.close(os.open(part, os.O_CREAT | os.O_EXCL, 0o600))
        yield part
        _flush(part)
        if mode not in (None, stat.S_IMODE(part.stat().st_mode)):
            part.chmod(mode)
        part.replace(target)
        _flush(target.parent)
    except OSError as error:
        if error.filename in (None, str(part)):
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        part.unlink(missing_ok=True)


def replace_file(path: str | os.PathLike[str], content: bytes | str) -> Path:
    """Write a whole file in one step; text as UTF-8. Returns the path."""
    with replacing(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
    return Path(path)


def read_file(path: str | os.PathLike[str], limit: int) -> bytes:
    """The content of a regular file of at most ``limit`` bytes.

    Raises
    ------
    OSError
    ValueError
        If the file is a pipe, a device or a folder, or longer than the limit.
    """
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise ValueError(f"it has {size} bytes, more than {limit}")
        content: bytes = file.read(size)
    return content


def seal(arrays: Mapping[str, np.ndarray], note: str) -> bytes:
    """A safetensors file of arrays and a text, with the checksum of all its bytes."""
    import numpy as np
    from safetensors.numpy import save

    whole = {name: np.ascontiguousarray(value) for name, value in arrays.items()}
    data = save(whole, {"softsurv": note, "sha256": _BLANK})
    return data.replace(_mark(_BLANK), _mark(hashlib.sha256(data).hexdigest()), 1)


def unseal(path: str | os.PathLike[str], limit: int) -> tuple[dict[str, np.ndarray], str]:
    """The arrays and the text of a file that :func:`seal` made.

    Raises
    ------
    OSError
    ValueError
        With what is wrong: no such file, cut short, too long, or changed.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(_HEAD)
        length = int.from_bytes(head, "little")
        if len(head) < _HEAD or not 2 <= length <= min(size - _HEAD, _MAX_HEADER) or size > limit:
            raise ValueError("its length is wrong")
        header = file.read(length)
        note, known = _noted(header)
        data = head + header + file.read(size - _HEAD - length)
    blank = data.replace(_mark(known), _mark(_BLANK), 1)
    if hashlib.sha256(blank).hexdigest() != known:
        raise ValueError("its checksum is wrong")
    try:
        return load(data), note
    except (SafetensorError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"its arrays cannot be read: {error}") from None


def _noted(header: bytes) -> tuple[str, str]:
    """The text and the checksum in the header of a safetensors file."""
    try:
        kept = json.loads(header)["__metadata__"]
        note, known = kept["softsurv"], kept["sha256"]
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        raise ValueError(f"its header cannot be read: {error}") from None
    if not isinstance(note, str) or not isinstance(known, str) or len(known) != len(_BLANK) or not known.isalnum():
        raise ValueError("its header has no checksum")
    return note, known


def _mark(checksum: str) -> bytes:
    return f'"sha256":"{checksum}"'.encode()


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[Any]:
    """A regular file, open for reading; opening a pipe does not wait for its writer."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ValueError("it is no regular file")
        yield opened


def _flush(path: Path) -> None:
    """Bring a file or the entries of a folder to the disk; some systems cannot do so for folders."""
    folder = path.is_dir()
    try:
        file = os.open(path, os.O_RDONLY if folder else os.O_RDWR | getattr(os, "O_BINARY", 0))
    except OSError:
        if folder:
            return
        raise
    try:
        os.fsync(file)
    except OSError:
        if not folder:
            raise
    finally:
        os.close(file)


def _remove_stale(folder: Path) -> None:
    """Remove what killed writers left in a folder."""
    before = time.time() - STALE_SECONDS
    for part in folder.glob(PART.format("*")):
        with suppress(OSError):
            if part.stat().st_mtime < before:
                part.unlink()
