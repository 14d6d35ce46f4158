"""Gram matrices under many weights, and the inverse of the plain one."""

import numpy as np
import pytest
import torch
from oracles.logistic_nodes import nodes

from softsurv.numerics import with_intercept
from softsurv.soft import gram
from softsurv.soft.gram import RIDGE, WeightedGram, inverse_gram


def test_weighted_gram_is_the_sum_over_rows_in_any_chunks(monkeypatch):
    design, mass, _ = nodes(2)
    whole = WeightedGram(design)(mass)
    torch.testing.assert_close(whole, torch.einsum("msn,nq,nr->msqr", mass, design[0], design[0]))
    monkeypatch.setattr("softsurv.soft.gram.CHUNK_ELEMENTS", 16 * 7)
    torch.testing.assert_close(WeightedGram(design)(mass), whole)


def design(n=40, p=3, seed=0, scale=1.0):
    x = torch.tensor(np.random.default_rng(seed).standard_normal((1, n, p)))
    return with_intercept(scale * x + 1)


def test_is_the_inverse_of_the_gram_matrix_with_its_ridge():
    x = design()[0]
    gram = x.T @ x / len(x)
    expected = torch.linalg.inv(gram + RIDGE * torch.diag(torch.diagonal(gram)))
    torch.testing.assert_close(inverse_gram(x[None])[0], expected)


@pytest.mark.parametrize("columns", [3, 60])
def test_columns_of_zeros_collinear_columns_and_more_columns_than_rows_have_one(columns):
    x = design(50, columns)
    x = torch.cat([x, x[..., 1:2], torch.zeros_like(x[..., :1])], -1)
    inverse = inverse_gram(x)[0]
    assert torch.isfinite(inverse).all()
    values = torch.linalg.eigvalsh(inverse) if inverse.dim() == 2 else inverse
    assert (values > 0).all()
    assert inverse[(-1,) * inverse.dim()] == 1


def test_many_columns_get_the_diagonal(monkeypatch):
    monkeypatch.setattr(gram, "MAX_COLUMNS", 3)
    x = design()
    torch.testing.assert_close(inverse_gram(x)[0], 1 / x[0].square().mean(0))


def test_rows_of_zeros_change_nothing():
    x = design()
    padded = torch.nn.functional.pad(x, (0, 0, 0, 17))
    torch.testing.assert_close(inverse_gram(padded), inverse_gram(x))


def test_single_precision():
    x = design().float()
    inverse = inverse_gram(x)
    assert inverse.dtype == torch.float32
    torch.testing.assert_close(inverse.double(), inverse_gram(x.double()), rtol=1e-4, atol=1e-4)
