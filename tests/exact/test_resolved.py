"""Numba's type inference with a memory: the same answers, each worked out once."""

from __future__ import annotations

from numba.core.types.functions import BaseFunction

from softsurv.exact.resolved import resolved_once


def test_calls_are_resolved_once_and_as_before():
    resolve, asked = BaseFunction.get_call_type, []

    def counted(self, context, args, kws):
        asked.append(args)
        return resolve(self, context, args, kws)

    from numba import njit
    from numba.core import types

    def plain(x, y):
        return x + y * x + y * x

    BaseFunction.get_call_type = counted
    try:
        for options in ({}, {"fastmath": True}):
            with resolved_once():
                one = njit(**options)(plain)
                one.compile((types.float64, types.float64))
                before = len(asked)
                njit(**options)(plain).compile((types.float64, types.float64))
                assert len(asked) == before
            assert one(2.0, 3.0) == 14.0
        assert BaseFunction.get_call_type is counted
    finally:
        BaseFunction.get_call_type = resolve
