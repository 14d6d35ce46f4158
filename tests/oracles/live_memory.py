"""Counts the memory of tensors that are alive at once."""

from __future__ import annotations

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class LiveMemory(TorchDispatchMode):
    """While open, follows the storages that operators make, from their first tensor to their last.

    Attributes
    ----------
    now, peak : int
        Bytes alive, of storages made since this was opened.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now, self.peak = 0, 0
        self._users: dict[int, int] = {}

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        before = {id_of(one) for one in tensors_in((args, kwargs))}
        result = operator(*args, **(kwargs or {}))
        for one in tensors_in(result):
            place = id_of(one)
            if place in self._users:
                self._users[place] += 1
            elif place not in before:
                self._users[place], size = 1, one.untyped_storage().nbytes()
                self.now += size
                self.peak = max(self.peak, self.now)
            else:
                continue  # a view of what was there before
            weakref.finalize(one, self._forget, place, one.untyped_storage().nbytes())
        return result

    def _forget(self, place: int, size: int) -> None:
        self._users[place] -= 1
        if not self._users[place]:
            del self._users[place]
            self.now -= size


def id_of(tensor: torch.Tensor) -> int:
    """Where a tensor's storage lies."""
    return tensor.untyped_storage().data_ptr()


def tensors_in(value: object) -> list[torch.Tensor]:
    """The tensors of nested tuples, lists and mappings."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [one for part in value for one in tensors_in(part)] if isinstance(value, tuple | list) else []
