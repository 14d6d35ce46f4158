"""Increasing natural cubic splines: integrated quadratic B-splines with merged end functions.

The natural cubic splines on m internal knots (Royston & Parmar 2002) have a slope that is a quadratic spline,
flat beyond the boundary knots. Quadratic B-splines whose two end functions at each side are merged span
exactly these slopes. Combinations with positive weights have a positive slope, so its logarithm always exists.
"""

from __future__ import annotations

import torch
from torch import Tensor


def monotone_spline_basis(
    y: Tensor,  # (..., N)
    knots: Tensor,  # (..., m + 2) increasing, boundary knots at both ends
) -> tuple[Tensor, Tensor]:  # both (..., m + 1, N)
    """Increasing functions I_k and their slopes; the slopes are non-negative and sum to one.

    ``I_k`` is zero at the first boundary knot and linear beyond the boundary knots.
    """
    first, last = knots[..., :1], knots[..., -1:]
    inside = torch.minimum(torch.maximum(y, first), last)
    full = _repeat_ends(knots, 3)
    quadratic, cubic = _b_splines(inside, full)
    slopes = _merge_ends(quadratic)
    n_quadratic = knots.shape[-1] + 1
    # the integral of B_k of degree 2 is (its support / 3) times the sum of the cubic B-splines from k + 1 on (de Boor)
    support = (full[..., 4 : 4 + n_quadratic] - full[..., 1 : 1 + n_quadratic]) / 3
    later = cubic.flip(-2).cumsum(-2).flip(-2)[..., 1:, :]
    values = _merge_ends(later * support[..., None])
    return values + slopes * (y - inside)[..., None, :], slopes


def _repeat_ends(knots: Tensor, times: int) -> Tensor:
    ends = [*knots.shape[:-1], times]
    return torch.cat([knots[..., :1].expand(ends), knots, knots[..., -1:].expand(ends)], -1)


def _b_splines(y: Tensor, full: Tensor) -> tuple[Tensor, Tensor]:  # (..., len(full) - 5, N), (..., len(full) - 4, N)
    """Quadratic and cubic B-splines on a knot vector with each end four times; the last interval is closed above.

    By the recursion of Cox and de Boor. The first and the last quadratic one have no support and are left out.
    """
    lower, upper = full[..., :-1, None], full[..., 1:, None]
    at = y[..., None, :]
    last = full[..., -1:, None]
    inside = (at >= lower) & ((at < upper) | ((at == last) & (upper == last) & (lower < upper)))
    basis, lower_degree = inside.to(y.dtype), inside
    for k in range(1, 4):
        rise = _ratio(at - full[..., : -k - 1, None], full[..., k:-1, None] - full[..., : -k - 1, None])
        fall = _ratio(full[..., k + 1 :, None] - at, full[..., k + 1 :, None] - full[..., 1:-k, None])
        basis, lower_degree = rise * basis[..., :-1, :] + fall * basis[..., 1:, :], basis
    return lower_degree[..., 1:-1, :], basis


def _ratio(numerator: Tensor, width: Tensor) -> Tensor:
    """Zero where a knot interval is empty, as the recursion defines it."""
    empty = width <= 0
    return torch.where(empty, torch.zeros_like(numerator), numerator / torch.where(empty, 1.0, width))


def _merge_ends(rows: Tensor) -> Tensor:  # (..., J, N) -> (..., J - 2, N)
    """Add the second row to the first and the last but one to the last, so that the slope is flat at the ends."""
    if rows.shape[-2] == 3:  # no internal knot: one straight line
        return rows.sum(-2, keepdim=True)
    head = rows[..., :2, :].sum(-2, keepdim=True)
    tail = rows[..., -2:, :].sum(-2, keepdim=True)
    return torch.cat([head, rows[..., 2:-2, :], tail], -2)
