"""Counts torch's operators that a device would run as kernels: all but those that only look at memory anew."""

from __future__ import annotations

from collections import Counter

import torch
from torch.utils._python_dispatch import TorchDispatchMode

FREE = {
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "_unsafe_view",
    "lift_fresh",
    "detach",
}
"""Operators without a kernel that are no views."""


class Operators(TorchDispatchMode):
    """While open, counts by name the operators that make or change values.

    Attributes
    ----------
    seen : Counter
    tables : int
        Values read or written that have at least ``large`` elements, in tensors of ``large`` elements.
    """

    def __init__(self, large: int | None = None) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()
        self.large, self.moved = large, 0

    @property
    def total(self) -> int:
        """Operators counted."""
        return self.seen.total()

    @property
    def tables(self) -> float:
        """Elements of large tensors read and written, in tables of ``large``."""
        assert self.large is not None
        return self.moved / self.large

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        name = operator._schema.name.removeprefix("aten::")
        view = any(r.alias_info is not None and not r.alias_info.is_write for r in operator._schema.returns)
        if not view and name not in FREE:
            self.seen[name] += 1
            if self.large is not None:
                self._measure((args, kwargs, result))
        return result

    def _measure(self, value: object) -> None:
        """Add the sizes of the large tensors in nested tuples, lists and mappings."""
        if isinstance(value, torch.Tensor):
            held = value.untyped_storage().nbytes() // value.element_size()  # an expanded table is read once
            self.moved += min(value.numel(), held) if value.numel() >= self.large else 0
        elif isinstance(value, tuple | list):
            for one in value:
                self._measure(one)
        elif isinstance(value, dict):
            self._measure(list(value.values()))
