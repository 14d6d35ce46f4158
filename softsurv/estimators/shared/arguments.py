"""Arguments given by the name that another estimator has for them, and arguments that nobody knows."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from softsurv.errors import SoftsurvWarning, did_you_mean, warn

Kind = TypeVar("Kind", bound=type)


def understands(**other: str) -> Callable[[Kind], Kind]:
    """Let an estimator take some arguments by another name, with a hint. An unknown argument is named in the error.

    Parameters
    ----------
    **other : str
        A name that people use, and the argument's own, such as ``max_depth="depth"``.
    """

    def understanding(cls: Any) -> Any:
        """The class, with a constructor and ``set_params`` that know the other names."""
        init, set_params = cls.__init__, cls.set_params
        known = list(signature(init).parameters)[1:]

        @wraps(init)
        def made(self: Any, *args: Any, **given: Any) -> None:
            init(self, *args, **_named(type(self).__name__, known, given, other))

        @wraps(set_params)
        def with_params(self: Any, **given: Any) -> Any:
            return set_params(self, **{_own(type(self).__name__, name, other): value for name, value in given.items()})

        cls.__init__, cls.set_params = made, with_params
        return cls

    return understanding


def refuse_unknown(fit: Callable[..., Any], given: Mapping[str, Any], elsewhere: Mapping[str, str]) -> None:
    """Raise where a method was given arguments that it does not have.

    Parameters
    ----------
    fit : function
        The method, with its name and arguments.
    given : mapping
        What its ``**`` argument took.
    elsewhere : mapping of str to str
        Who takes an argument that belongs to other estimators.

    Raises
    ------
    TypeError
        Names the first one, and who takes it or which argument is close to it.
    """
    for name in given:
        known = [one for one in signature(fit).parameters if one != "self"][:-1]
        hint = f"; {elsewhere[name]}" if name in elsewhere else did_you_mean(name, known)
        raise TypeError(f"{fit.__qualname__} has no argument {name!r}{hint}")


def _named(cls: str, known: list[str], given: dict[str, Any], other: dict[str, str]) -> dict[str, Any]:
    """Arguments by their own names.

    Raises
    ------
    TypeError
        If the class has no such argument, or gets it by both names.
    """
    named: dict[str, Any] = {}
    for name, value in given.items():
        own = _own(cls, name, other)
        if own not in known:
            near = difflib.get_close_matches(name, [*other, *known], n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}"
            raise TypeError(f"{cls} has no argument {name!r}; {hint}")
        if own in named or (own != name and own in given):
            raise TypeError(f"{cls} got {own!r} twice, once as {name!r}; drop one")
        named[own] = value
    return named


def _own(cls: str, name: str, other: dict[str, str]) -> str:
    if name not in other:
        return name
    warn(f"{cls} calls {name} {other[name]}; {name} is taken as {other[name]}", SoftsurvWarning)
    return other[name]
