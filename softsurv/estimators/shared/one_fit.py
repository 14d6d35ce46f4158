"""One fit of an estimator at a time, whole or not at all: what two fits leave in one object must not be mixed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from softsurv.errors import ConcurrentFitError

Fit = TypeVar("Fit", bound=Callable[..., Any])

_lock = threading.Lock()
_thread_of: dict[int, int] = {}
"""The thread that fits an object now, by the object's id."""


def one_fit_at_a_time(fit: Fit) -> Fit:
    """Refuse ``fit`` while another thread is inside the ``fit`` of the same object.

    A fit that ends in an error leaves the object as it was, with the tree of an earlier fit.
    """

    @wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Fit, if no other thread fits this object. A fit may call itself in its own thread."""
        key, here = id(self), threading.get_ident()
        with _lock:
            outermost = key not in _thread_of
            if _thread_of.setdefault(key, here) != here:
                raise ConcurrentFitError(
                    f"this {type(self).__name__} is being fitted in another thread; fit sklearn.base.clone(...) of it"
                )
        before = vars(self).copy()
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            if outermost:
                vars(self).clear()
                vars(self).update(before)
            raise
        finally:
            if outermost:
                with _lock:
                    del _thread_of[key]

    return guarded  # type: ignore[return-value]
