"""Leaf families by name."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature

from softsurv.errors import InvalidParameterError, did_you_mean
from softsurv.hazards.base import LeafFamily
from softsurv.hazards.parametric import Exponential, Gompertz, LogLogistic, LogNormal, Weibull
from softsurv.hazards.royston_parmar import SplineHazards, SplineOdds

_REGISTRY: dict[str, Callable[..., LeafFamily]] = {
    family.name: family
    for family in (Exponential, Weibull, LogLogistic, LogNormal, Gompertz, SplineHazards, SplineOdds)
}

__all__ = ["LeafFamily", "family_names", "get_family", "register_family", "takes"]


def family_names() -> list[str]:
    """Names that ``leaf=`` accepts.

    Features multiply the hazard in "exponential", "weibull", "gompertz" and "spline_ph", the odds of the event in
    "loglogistic" and "spline_po", and the time in "lognormal". The splines are those of Royston and Parmar (2002).
    """
    return list(_REGISTRY)


def get_family(name: str | LeafFamily, **settings: int) -> LeafFamily:
    """Leaf family by name, or the given instance itself.

    Parameters
    ----------
    name : str or LeafFamily
    **settings
        Constructor arguments, such as ``n_knots`` of the spline families.

    Raises
    ------
    InvalidParameterError
        If no family has this name, or the family takes no such argument.
    """
    if isinstance(name, LeafFamily):
        return name
    if not isinstance(name, str) or name not in _REGISTRY:
        raise InvalidParameterError(
            f"leaf must be one of {', '.join(_REGISTRY)}, got {name!r}{did_you_mean(str(name), _REGISTRY)}"
        )
    unknown = settings.keys() - signature(_REGISTRY[name]).parameters.keys()
    if unknown:
        raise InvalidParameterError(f"{name} takes no setting {', '.join(sorted(unknown))}; leave it out")
    return _REGISTRY[name](**settings)


def takes(name: str | LeafFamily, setting: str) -> bool:
    """Whether the leaf family of this name has a constructor argument ``setting``, such as ``n_knots``."""
    return isinstance(name, str) and name in _REGISTRY and setting in signature(_REGISTRY[name]).parameters


def register_family(factory: Callable[..., LeafFamily]) -> Callable[..., LeafFamily]:
    """Make ``factory``, a :class:`LeafFamily` class, selectable by its ``name``; usable as a decorator.

    A saved model holds only the name of its family, so register the family before ``load_model`` too.

    Raises
    ------
    InvalidParameterError
        If the class has no attribute ``name``.
    """
    name = getattr(factory, "name", None)
    if not isinstance(name, str) or not name:
        raise InvalidParameterError("a leaf family needs a class attribute name, such as name = 'my_family'")
    _REGISTRY[name] = factory
    return factory
