"""`SoftSurvivalTree`: ``tree.py`` is the estimator, the other modules are its parts."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softsurv.estimators.soft.tree import SoftSurvivalTree as SoftSurvivalTree


def __getattr__(name: str) -> Any:
    """The estimator, loaded on first use: users and earlier pickles of soft trees import it from here."""
    if name == "SoftSurvivalTree":
        from softsurv.estimators.soft.tree import SoftSurvivalTree

        return SoftSurvivalTree
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
