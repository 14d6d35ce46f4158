"""torch, loaded when one of its names is first used: to name an estimator, read a table or show help needs none of it.

Stands for ``torch`` in the modules that a class is defined in. Its second is spent at the start of a fit, or when a
model is loaded.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    import torch

    return getattr(torch, name)
