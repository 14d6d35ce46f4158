"""Operators that wait for a CUDA device raise."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def refuse_waits(refused: bool) -> None:
    """From here on an operator that waits raises, or no longer; torch warns that it does not know all of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        torch.cuda.set_sync_debug_mode("error" if refused else "default")


@contextmanager
def no_waits() -> Iterator[None]:
    """While open, an operator that waits raises."""
    try:
        refuse_waits(True)
        yield
    finally:
        refuse_waits(False)
