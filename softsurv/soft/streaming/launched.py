"""The environment variables that torchrun sets for each process, read without torch."""

from __future__ import annotations

import os


def is_launched() -> bool:
    """Whether torchrun started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def is_first() -> bool:
    """Whether this is the process that writes files and messages."""
    return int(os.environ.get("RANK", "0")) == 0
