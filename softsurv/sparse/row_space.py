"""Tables of more columns than rows: the leaves are fitted in the space that the rows span.

A ridge that is the same for all slopes keeps the slopes of a fit in the row space of the features. With orthonormal
axes V (P, R) of this space and R of at most N, the slopes V b predict what b predicts of the columns X V, and their
penalty is that of b (Hastie and Tibshirani 2004, "Efficient quadratic regularization for expression arrays"). So a fit
of 300 rows takes as long with 20,000 columns as with 300, and ends at the same model. Shrinkage of the leaves' own
slopes is a ridge of this kind too. Rules are sought in the columns themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from softsurv.data.survival_data import SurvivalData
from softsurv.numerics import Design, with_intercept
from softsurv.sparse.causes import Models, Problems
from softsurv.stopping import StopSignal

USUAL_VARIANCE = 0.5
"""Variance of all encoded features of an ordinary table, added up. What its usual ridge lets the predictor vary by
comes from this."""

FLAT = 1e-13
"""Axes along which the squares of the rows sum up to less than this share of the largest sum are left out."""

PRODUCT_SECONDS, AXIS_SECONDS = 5e-11, 2.7e-10
"""What the products of all rows take for each pair of rows and column, and the axes for each pair of rows and row, on a
core of 2 GHz: with 3,000 rows of 5,000 columns nine seconds. Nothing looks at the clock meanwhile."""

AXES_SHARE = 0.2
"""Largest share of the time left that the axes may take."""


@dataclass(frozen=True)
class RowSpace:
    """The features in which leaves are fitted, and the way back to the columns.

    Attributes
    ----------
    plain : Design (N, 1 + P)
        The columns themselves.
    design : Design (N, 1 + R)
        The rows along the axes; ``plain`` where columns are few.
    weights : Tensor (N, R), optional
        The axes as sums of rows: V = X' times these. None where columns are few.
    """

    plain: Design
    design: Design
    weights: Tensor | None = None

    def in_columns(self, problems: Problems, models: Models) -> tuple[Problems, Models]:
        """The problems with the columns themselves, and their models (M, 1 + L, P + 1 + K)."""
        if self.weights is None:
            return problems, models
        plain = [self.plain.to(p.design.device, p.design.dtype).table[None] for p in problems]
        whole = tuple(replace(p, design=table) for p, table in zip(problems, plain, strict=True))
        return whole, tuple(self._widened(model, self.weights) for model in models)

    def _widened(self, model: Tensor, weights: Tensor) -> Tensor:
        end = 1 + weights.shape[1]
        slopes = model[..., 1:end].to(weights) @ weights.mT @ self.plain.table[:, 1:].to(weights)
        return torch.cat([model[..., :1], slopes.to(model), model[..., end:]], -1)


def row_space(data: SurvivalData, budget: StopSignal | None = None) -> RowSpace:
    """The row space of the features where columns outnumber rows; else the columns themselves.

    So too where finding the axes would take a larger share of the time left than `AXES_SHARE`.
    """
    plain, (n, p) = Design(with_intercept(data.x)), data.x.shape
    seconds = n**2 * (p * PRODUCT_SECONDS + n * AXIS_SECONDS)
    if not is_wide(data) or (budget is not None and seconds > AXES_SHARE * budget.left):
        return RowSpace(plain, plain)
    table = data.x.double()
    square, direction = torch.linalg.eigh(table @ table.mT)  # ascending
    kept = square > FLAT * square[-1].clamp(min=0)
    size, direction = square[kept].sqrt(), direction[:, kept]
    return RowSpace(plain, Design(with_intercept(direction * size)), direction / size)


def is_wide(data: SurvivalData) -> bool:
    """Whether the encoded columns outnumber the rows."""
    return data.x.shape[1] > data.x.shape[0]


def ridge_scale(data: SurvivalData) -> float:
    """What the usual ridges are multiplied with where columns outnumber rows, two digits of it; 1 elsewhere.

    Under a ridge, taken as a normal prior of the slopes, the predictor of a row varies by the variance of all features
    over the ridge. With thousands of features it would vary that much more. The scale keeps it as it is with a few.
    """
    if not is_wide(data):
        return 1.0
    weight = torch.ones(data.n, dtype=torch.float64) if data.weight is None else data.weight.double().cpu()
    share, x = (weight / weight.sum())[:, None], data.x.double().cpu()
    variance = float((share * (x - (share * x).sum(0)).square()).sum())
    return max(1.0, float(f"{variance / USUAL_VARIANCE:.2g}"))
