"""A stand-in for a CUDA graph on any device: operators are recorded with their very tensors, and replayed on these.

What Python does beside torch is done once, when the work is recorded, and never again; what an operator made lies where
it lay. So work that replays right here asks the host for nothing on the way, and changes tensors in place alone. What
asks for a value is refused, as CUDA refuses it.
"""

from __future__ import annotations

from contextlib import nullcontext
from itertools import count
from unittest.mock import patch

from oracles.live_memory import id_of, tensors_in
from torch.utils._python_dispatch import TorchDispatchMode

from softsurv.soft import optimisers

ADVANCE = optimisers._advance

ASKS = {"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "equal", "bincount"}


class Recorded(TorchDispatchMode):
    """Records work without doing it: what it changed of the tensors that were there before is put back.

    Attributes
    ----------
    calls : list of (operator, arguments, named arguments, result)
    replays : int
    """

    def __init__(self, work) -> None:
        super().__init__()
        self.calls, self.replays = [], 0
        self._made, self._before = set(), {}
        try:
            with self:
                work()
        finally:
            for tensor, value in self._before.values():
                tensor.copy_(value)

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if operator._schema.name.removeprefix("aten::") in ASKS:
            raise RuntimeError("operation not permitted when stream is capturing")
        for place, declared in enumerate(operator._schema.arguments):
            if declared.alias_info is not None and declared.alias_info.is_write:
                self._keep(args[place] if place < len(args) else kwargs[declared.name])
        result = operator(*args, **kwargs)
        known = {id_of(one) for one in tensors_in((args, kwargs))}
        self._made |= {id_of(one) for one in tensors_in(result)} - known
        self.calls.append((operator, args, kwargs, result))
        return result

    def _keep(self, tensor) -> None:
        """Remember a tensor as it is before its first change, with what lies beside it in memory."""
        if id_of(tensor) not in self._made and id_of(tensor) not in self._before:
            whole = tensor.new_empty(0).set_(tensor.untyped_storage())
            self._before[id_of(tensor)] = whole, whole.clone()

    def __call__(self) -> None:
        """Do it."""
        self.replays += 1
        for operator, args, kwargs, result in self.calls:
            there = {id_of(one) for one in tensors_in((args, kwargs))}
            for place, value in zip(tensors_in(result), tensors_in(operator(*args, **kwargs)), strict=True):
                if id_of(place) not in there:
                    place.copy_(value)


class Recorder:
    """Records whatever is given, and keeps the records."""

    def __init__(self) -> None:
        self.made = []

    def __call__(self, work) -> Recorded:
        self.made.append(Recorded(work))
        return self.made[-1]


class Again:
    """In the place of a record the work itself, whose rounds are counted: all but the first, which are compared alone.

    Attributes
    ----------
    made : int
    """

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, work):
        self.made += 1
        plays = count()

        def play():
            with nullcontext() if next(plays) else patch.object(optimisers, "_advance", ADVANCE):
                work()

        return play
