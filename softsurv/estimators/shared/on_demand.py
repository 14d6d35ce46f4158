"""Fitted attributes that are worked out when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, Self, TypeVar, overload

Value = TypeVar("Value")


class OnDemand(Generic[Value]):
    """What a function will give; pickled, what it gave."""

    def __init__(self, make: Callable[[], Value]) -> None:
        self._make = make

    @cached_property
    def value(self) -> Value:
        """Worked out once; what it was worked out from is let go."""
        made = self._make()
        del self._make
        return made

    def __getstate__(self) -> dict[str, Any]:
        """The value alone."""
        return {"value": self.value}


class Later(Generic[Value]):
    """A fitted attribute that may be set to what will give it (`OnDemand`): it is worked out when it is read."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, estimator: None, kind: type) -> Self: ...
    @overload
    def __get__(self, estimator: object, kind: type) -> Value: ...
    def __get__(self, estimator: object | None, kind: type) -> Self | Value:
        if estimator is None:
            return self
        try:
            kept: Value | OnDemand[Value] = vars(estimator)[self.name]
        except KeyError:
            raise AttributeError(f"{kind.__name__!r} object has no attribute {self.name!r}") from None
        return kept.value if isinstance(kept, OnDemand) else kept

    def __set__(self, estimator: object, value: Value | OnDemand[Value]) -> None:
        vars(estimator)[self.name] = value
