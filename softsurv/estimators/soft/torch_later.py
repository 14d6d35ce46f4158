"""torch, loaded when one of its names is first used.

Modules that define an estimator's class import this in the place of ``torch``, which takes a second to load. So naming
an estimator, reading a table and showing help do not wait for it; the start of a fit and loading a model do.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    import torch

    return getattr(torch, name)
