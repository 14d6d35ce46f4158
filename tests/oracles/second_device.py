"""A second device on any machine, for tests of what asks nothing of a device but torch's operators.

Its tensors lie in the memory of the CPU. What makes them a device's is what they refuse: to be mixed with tensors of
the CPU, and to be read by numpy, as CUDA's do.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "privateuseone"
"""The type of device that torch leaves to others."""

COPIES = {"_to_copy", "copy_", "lift_fresh"}
"""The operators that may take a tensor of each device."""


class AwayTensor(Tensor):
    """A tensor of the second device, which holds one of the CPU."""

    here: Tensor

    @staticmethod
    def __new__(cls, here: Tensor) -> AwayTensor:
        made = Tensor._make_wrapper_subclass(
            cls, here.shape, strides=here.stride(), storage_offset=here.storage_offset(), dtype=here.dtype, device=NAME
        )
        made.here = here
        return made

    def __repr__(self) -> str:
        return f"AwayTensor({self.here!r})"

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is Tensor.tolist:  # torch refuses it to subclasses
            return args[0].here.tolist()
        return torch._C._disabled_torch_function_impl(function, types, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, operator, types, args=(), kwargs=None):
        return carried_out(operator, args, kwargs or {})


class SecondDevice(TorchDispatchMode):
    """While open, there is the second device: `device=NAME` makes tensors there."""

    def __enter__(self) -> SecondDevice:
        _register()
        torch._C._set_only_lift_cpu_tensors(True)  # `torch.tensor` makes its tensor here, then moves it
        return super().__enter__()

    def __exit__(self, *raised) -> None:
        super().__exit__(*raised)
        torch._C._set_only_lift_cpu_tensors(False)

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        return carried_out(operator, args, kwargs or {})


@cache
def _register() -> None:
    """Make the type of device known to torch, once in a process."""
    _setup_privateuseone_for_python_backend()


def carried_out(operator, args, kwargs):
    """What an operator gives, on the device of its tensors or on the one that it names."""
    asked = kwargs.get("device")
    name = operator._schema.name.removeprefix("aten::")
    places = args[1] if name == "index" and isinstance(args[0], AwayTensor) else ()  # may be of the CPU, as with CUDA
    given = [*_tensors(args), *_tensors(kwargs.values())]
    away = any(isinstance(one, AwayTensor) for one in given)
    stray = [one for one in given if not isinstance(one, AwayTensor) and one.dim() and not _among(one, places)]
    if away and stray and name not in COPIES:
        raise RuntimeError(f"{name}: expected all tensors to be on the same device, found {NAME} and cpu")
    if asked is not None:
        away = torch.device(asked).type == NAME
        kwargs = kwargs | {"device": "cpu"} if away else kwargs
    elif name == "copy_":
        away = isinstance(args[0], AwayTensor)
    named = {key: _each(AwayTensor, _here, one) for key, one in kwargs.items()}
    found = operator(*_each(AwayTensor, _here, args), **named)
    if not away:
        return found
    return return_and_correct_aliasing(operator, args, kwargs, _each(Tensor, AwayTensor, found))


def _among(value: Tensor, others) -> bool:
    return any(value is one for one in others)


def _here(value: AwayTensor) -> Tensor:
    return value.here


# torch's functions on trees do the same two for any nesting of any kind; asked of each operator, they took two thirds
# of the time
def _tensors(values):
    """The tensors among arguments of an operator, also those in lists."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _each(kind, change, value):
    """A value with each tensor of a kind in it changed."""
    if isinstance(value, kind):
        return change(value)
    return type(value)([_each(kind, change, one) for one in value]) if isinstance(value, list | tuple) else value
