"""Gram matrices of designs: under many weights at once, and the inverse of the plain one."""

from __future__ import annotations

from functools import cached_property, reduce

import torch
from torch import Tensor

from softsurv.soft.groups import Groups

CHUNK_ELEMENTS = 2**21
"""Products of columns held at once: 16 MiB."""

RIDGE = 1e-3
"""Share of its diagonal added to the Gram matrix: one-hot codes of one column and the intercept are collinear."""

MAX_COLUMNS = 512
"""With more columns than this, or than rows, only the diagonal is used: a product with the whole matrix would cost as
much as the objective."""


class WeightedGram:
    """sum_i weight_i x_i x_i' of each node. Products of columns are kept for further calls where they fit one chunk.

    Parameters
    ----------
    design : Tensor (G, N, Q)
    """

    def __init__(self, design: Tensor) -> None:
        q = design.shape[-1]
        first, second = torch.triu_indices(q, q)  # (T,) each unordered pair of columns once
        place = torch.zeros(q, q, dtype=torch.int64)
        place[first, second] = torch.arange(len(first))
        place = place.triu() + place.triu(1).mT
        self.first, self.second = first.to(design.device), second.to(design.device)
        self.place = place.flatten().to(design.device)  # (Q Q,) of an entry among the products
        width = max(1, CHUNK_ELEMENTS // (len(design) * len(first)))
        self.rows = [slice(begin, begin + width) for begin in range(0, design.shape[1], width)]
        self.chunks = [design[:, rows] for rows in self.rows]

    def __call__(self, weight: Tensor, groups: Groups | None = None) -> Tensor:
        """Matrices (M, S, Q, Q) from weights (M, S, N) of trees in groups, equally many in each by default."""
        groups = Groups.equal(len(weight), len(self.chunks[0])) if groups is None else groups
        pairs = self._pairs if len(self.chunks) == 1 else map(self._products, self.chunks)
        parts = (groups.product(weight[..., rows], pair) for rows, pair in zip(self.rows, pairs, strict=True))
        packed = reduce(torch.add, parts)
        return packed.index_select(-1, self.place).unflatten(-1, (self.chunks[0].shape[-1], -1))

    @cached_property
    def _pairs(self) -> tuple[Tensor]:
        return (self._products(self.chunks[0]),)

    def _products(self, x: Tensor) -> Tensor:
        """Products (G, n, T) of the columns of some rows."""
        return x.index_select(-1, self.first) * x.index_select(-1, self.second)


def inverse_gram(design: Tensor) -> Tensor:
    """Inverse of each group's Gram matrix divided by its rows, a little regularised: (G, N, Q) -> (G, Q, Q).

    With many columns (`MAX_COLUMNS`) it is the inverse of the diagonal alone, (G, Q).
    """
    rows, columns = design.shape[1:]
    gram = None if columns > min(rows, MAX_COLUMNS) else (design.mT @ design).double()
    if gram is None or design.dtype != torch.float64:  # single precision adds squares up too coarsely
        squares = design.double().square().sum(1)
    else:
        squares = gram.diagonal(dim1=1, dim2=2)
    count = squares[..., :1]  # (G, 1) rows: padding has 0 in the column of ones
    diagonal = squares / count
    empty = diagonal <= 0  # a column of zeros has no scale of its own
    if gram is None:
        return (1 / torch.where(empty, 1.0, diagonal)).to(design)
    gram = gram / count[..., None] + torch.diag_embed(torch.where(empty, 1.0, RIDGE * diagonal))
    return torch.cholesky_inverse(torch.linalg.cholesky_ex(gram)[0]).to(design)  # _ex: no wait for a device
