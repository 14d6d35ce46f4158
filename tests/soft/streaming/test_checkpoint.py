"""Checkpoints: every damage is seen, and what is no checkpoint is refused in one sentence."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from softsurv.errors import InvalidParameterError, ModelFileError
from softsurv.files import replace_file, seal
from softsurv.soft.streaming.checkpoint import FORMAT, read_checkpoint, write_checkpoint

JOB = {"rows": 3, "parameters": {"depth": "1"}}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "run.ckpt"
    write_checkpoint(path, JOB, {"leaves": torch.arange(6.0).reshape(1, 2, 3)}, {"trace": [0.5], "passes": 2})
    return path


def test_every_flipped_bit_is_seen(file):
    whole = file.read_bytes()
    for place in range(len(whole)):
        data = bytearray(whole)
        data[place] ^= 1 << place % 8
        file.write_bytes(data)
        with pytest.raises(ModelFileError, match=r"no checkpoint or a damaged one .*; name another file"):
            read_checkpoint(file, JOB)
    file.write_bytes(whole)
    assert read_checkpoint(file, JOB).values == {"trace": [0.5], "passes": 2}


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(file, value):
    write_checkpoint(file, JOB, {"leaves": torch.tensor([1.0, value])}, {})
    with pytest.raises(ModelFileError, match="'leaves' is not finite"):
        read_checkpoint(file, JOB)


@pytest.mark.parametrize(
    "note",
    [
        *(None, [], {}, "text", {"format": 1, "job": {}, "values": {}}, {"format": FORMAT, "job": 3, "values": {}}),
        *({"format": FORMAT, "values": {}}, {"format": FORMAT, "job": {}, "values": [1]}),
    ],
    ids=str,
)
def test_other_notes_are_refused(file, note):
    replace_file(file, seal({}, json.dumps(note)))
    with pytest.raises(ModelFileError, match="no checkpoint or a damaged one"):
        read_checkpoint(file, {})


@pytest.mark.skipif(sys.platform == "win32", reason="kinds of files that Windows lacks")
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: Path(path).symlink_to(path), os.mkdir])
def test_what_is_no_file_is_refused(tmp_path, make):
    make(tmp_path / "odd")
    with pytest.raises(ModelFileError, match="no checkpoint or a damaged one"):
        read_checkpoint(tmp_path / "odd", JOB)


def test_only_the_setting_that_differs_is_named(file):
    with pytest.raises(InvalidParameterError, match=r"is of a job with depth '1', got '2'; choose"):
        read_checkpoint(file, {"rows": 3, "parameters": {"depth": "2"}})
    with pytest.raises(InvalidParameterError, match=r"is of a job with rows 3, got 4; choose"):
        read_checkpoint(file, JOB | {"rows": 4})
