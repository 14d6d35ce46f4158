"""`OptimalSurvivalTree`: ``tree.py`` is the estimator, the other modules are what it is made of."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softsurv.estimators.optimal.tree import OptimalSurvivalTree as OptimalSurvivalTree


def __getattr__(name: str) -> Any:
    """The estimator, loaded when it is asked for: users import it from here."""
    if name == "OptimalSurvivalTree":
        from softsurv.estimators.optimal.tree import OptimalSurvivalTree

        return OptimalSurvivalTree
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
