"""Where the host reads what lies on a device, which waits for it: `Looks` on any device, `Waits` on a CPU instead."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import softsurv
from softsurv.soft.watch import Watch, never_waiting

PACKAGE = Path(softsurv.__file__).parent

READS = {
    "__bool__", "__float__", "__int__", "__index__", "item", "tolist", "numpy", "nonzero", "masked_select", "unique",
    "unique_consecutive", "equal", "allclose", "bincount",
}  # fmt: skip
"""What needs values, or a size that depends on them."""


class Looks(TorchFunctionMode):
    """Counts reads of tensors that do not lie on the host, by function of ours: values, copies, places by a mask.

    Attributes
    ----------
    seen : Counter of str
        Names of functions, each as `folder/module.function`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seen = Counter()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if any(is_away(one) for one in tree_leaves((args, kwargs))):
            name = getattr(function, "__name__", "")
            copied = any(isinstance(one, torch.Tensor) and not is_away(one) for one in tree_leaves(result))
            masked = name in ("__getitem__", "__setitem__") and any(map(is_mask, tree_leaves(args[1])))
            if name in READS or copied or masked:
                self.seen[_ours()] += 1
        return result


def is_away(value: object) -> bool:
    """Whether it is a tensor of a device."""
    return isinstance(value, torch.Tensor) and value.device.type != "cpu"


def is_mask(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype == torch.bool


WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "equal", "bincount"}
"""Operators whose result or its size the host needs at once."""


class Waits(TorchDispatchMode):
    """Records (operator, function of ours) for every operator that would wait for a device."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        name = operator._schema.name.removeprefix("aten::")
        by_mask = name in ("index", "index_put_") and any(map(is_mask, args[1]))
        if name in WAITING or by_mask:
            self.seen.add((name, _ours().rpartition(".")[2]))
        return operator(*args, **(kwargs or {}))


def _ours() -> str:
    """The innermost function of the package that is running."""
    frames = [frame for frame in traceback.extract_stack() if Path(frame.filename).is_relative_to(PACKAGE)]
    where = Path(frames[-1].filename).relative_to(PACKAGE).with_suffix("")
    return f"{where.as_posix()}.{frames[-1].name}"


class Slow:
    """The event of a copy from a device that arrives when it is waited for, and not before."""

    def __init__(self) -> None:
        self.waited = False

    def query(self) -> bool:
        """Whether the copy has arrived."""
        return self.waited

    def synchronize(self) -> None:
        """Wait for it."""
        self.waited = True


@contextmanager
def slow_looks() -> Iterator[None]:
    """While open, a look arrives when it is waited for: as where a device is behind its host."""
    send = Watch.send

    def slowly(self, mask):
        send(self, mask)
        self.copies[-1] = replace(self.copies[-1], event=Slow())

    with never_waiting(), patch.object(Watch, "send", slowly):
        yield
