"""The stop signal of one fit under its earlier name."""

from softsurv.stopping import StopSignal as Budget

__all__ = ["Budget"]
