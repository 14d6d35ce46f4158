"""What scikit-learn's tools ask an estimator about its tables."""

from __future__ import annotations

from typing import Any


class TakesAnyTable:
    """Mixin of estimators whose tables may hold missing values, text and categories."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags
