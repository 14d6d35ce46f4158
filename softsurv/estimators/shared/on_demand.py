"""A fitted attribute that is worked out when somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, TypeVar

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
