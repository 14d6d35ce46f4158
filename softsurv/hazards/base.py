"""The contract of a leaf family: one link, one baseline; everything else is derived here.

In a leaf, with standardised log time y = (log t - m) / s,

    z = a0 + a.x + baseline(y; shape),    log H = link(z),    log h = log H'(z) + log dz/dy - log s - log t.

A new family is one class with ``name``, ``link``, ``n_shape``, ``time_features`` and ``baseline``. Its gradients come
from autograd unless it has a ``baseline_pullback``. Register the class with :func:`softsurv.hazards.register_family`.

Sizes: ``...`` any leading axes (stack M), L leaves, N samples, Q = P + 1 features with intercept, K shape
parameters, F time features. Samples are the last axis, so that each leaf's row is contiguous.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from softsurv.clamps import LOG_SHAPE_LIMIT
from softsurv.hazards.links import Link


class LeafFamily(ABC):
    """Survival model of a leaf: a link and a baseline in log time with K shape parameters."""

    name: str
    link: Link
    n_shape: int
    """K, the number of shape (ancillary) parameters of a leaf."""
    n_time_scale: int = 2
    """Length of the time scale: mean and scale of log time, then what the family adds (knots)."""

    def fit_time_scale(
        self,
        log_time: Tensor,  # (N,)
        event: Tensor,  # (N,) bool
    ) -> Tensor:  # (n_time_scale,)
        """Constants of the time axis, from the uncensored log times (all of them if none is uncensored)."""
        reference = log_time[event] if bool(event.any()) else log_time
        scale = reference.std(correction=0)
        # a single distinct time has no spread, so any unit will do
        scale = torch.where(scale > 1e-8, scale, torch.ones_like(scale))
        return torch.cat([torch.stack([reference.mean(), scale]), self._extra_time_scale(reference)])

    def _extra_time_scale(self, reference: Tensor) -> Tensor:
        return reference.new_empty(0)

    @abstractmethod
    def time_features(
        self,
        log_time: Tensor,  # (..., N)
        time_scale: Tensor,  # (..., n_time_scale)
    ) -> Tensor:  # (..., F, N)
        """Functions of the times from which the baseline is computed, once for a data set."""

    @abstractmethod
    def baseline(
        self,
        shape: Tensor,  # (..., L, K)
        features: Tensor,  # (..., F, N)
    ) -> tuple[Tensor, Tensor]:
        """Baseline and the logarithm of its slope in standardised log time, both (..., L, N)."""

    def predictor(
        self,
        offset: Tensor,  # (..., L, N)
        shape: Tensor,  # (..., L, K)
        features: Tensor,  # (..., F, N)
    ) -> tuple[Tensor, Tensor]:
        """``offset + baseline``, and the logarithm of the baseline's slope, both (..., L, N)."""
        value, log_slope = self.baseline(shape, features)
        return offset + value, log_slope

    def shape_gradient(
        self,
        shape: Tensor,  # (..., L, K)
        features: Tensor,  # (..., F, N)
        by_value: Tensor,  # (..., L, N)
        weight: Tensor,  # (..., L, N)
        log_slope: Tensor,  # (..., 1, N): weight times this is the loss's derivative by log slope
    ) -> Tensor:  # (..., L, K)
        """Gradient of a weighted loss with respect to ``shape``."""
        return self.baseline_pullback(shape, features, by_value, weight * log_slope)

    def baseline_pullback(
        self,
        shape: Tensor,  # (..., L, K)
        features: Tensor,  # (..., F, N)
        grad_value: Tensor,  # (..., L, N)
        grad_log_slope: Tensor,  # (..., L, N)
    ) -> Tensor:  # (..., L, K)
        """Gradient of a scalar with respect to ``shape``; by autograd unless a family has a closed form."""
        if self.n_shape == 0:
            return torch.zeros_like(shape)
        with torch.enable_grad():
            leaf = shape.detach().requires_grad_(True)
            pairs = zip(self.baseline(leaf, features), (grad_value, grad_log_slope), strict=True)
            moved = [(at, slope) for at, slope in pairs if at.requires_grad]  # not every slope depends on the shape
            if not moved:
                return torch.zeros_like(shape)
            outputs, slopes = zip(*moved, strict=True)
            (grad,) = torch.autograd.grad(outputs, leaf, slopes, allow_unused=True)
        return torch.zeros_like(shape) if grad is None else grad

    def initial_shape(self, time_scale: Tensor) -> Tensor:  # (K,)
        """Shape parameters to start from: zeros, which is a slope of about one in standardised log time."""
        return time_scale.new_zeros(self.n_shape)

    def settings(self) -> dict[str, int]:
        """Constructor arguments that rebuild the family, for saved models."""
        return {}


class LinearBaseline(LeafFamily):
    """Baseline ``sum_k exp(shape_k) I_k(y)`` of increasing functions I_k: the slope is positive by construction.

    ``time_features`` are the K rows I_k(y) followed by the K rows of their slopes.
    """

    def baseline(self, shape: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        weight = self.shape_weight(shape)
        value = weight @ features[..., : self.n_shape, :]
        slope = weight @ features[..., self.n_shape :, :]
        return value, slope.log()

    def baseline_pullback(self, shape: Tensor, features: Tensor, grad_value: Tensor, grad_log_slope: Tensor) -> Tensor:
        """In closed form: the baseline is linear in the exponentials of the shape."""
        if self.n_shape == 1:  # log slope = shape + log I': no division needed
            return self._pulled(shape, features, grad_value, grad_log_slope.sum(-1, keepdim=True))
        weight = self.shape_weight(shape)
        rise, slopes = features[..., : self.n_shape, :], features[..., self.n_shape :, :]
        pulled = (grad_value @ rise.mT + (grad_log_slope / (weight @ slopes)) @ slopes.mT) * weight
        return _within_limits(pulled, shape)

    def shape_gradient(
        self, shape: Tensor, features: Tensor, by_value: Tensor, weight: Tensor, log_slope: Tensor
    ) -> Tensor:
        """As in the parent. With one shape only the sum of the derivatives by the log slope is needed."""
        if self.n_shape > 1:
            return super().shape_gradient(shape, features, by_value, weight, log_slope)
        return self._pulled(shape, features, by_value, weight @ log_slope.mT)

    def shape_weight(self, shape: Tensor) -> Tensor:
        """The exponentials u of the shapes (..., L, K), which multiply the functions I_k."""
        return shape.clamp(-LOG_SHAPE_LIMIT, LOG_SHAPE_LIMIT).exp()

    def log_slope_curvature(
        self,
        u: Tensor,  # (M, L, K)
        features: Tensor,  # (G, F, N)
        weight: Tensor,  # (M, L, N)
    ) -> Tensor:  # (M, L, K, K)
        """diag(u) H diag(u), where H is the Hessian by u of ``-sum(weight * log slope)``, which is convex in u."""
        if self.n_shape == 1:
            return weight.sum(-1)[..., None, None]
        slopes = features[:, self.n_shape :].repeat_interleave(len(u) // len(features), 0)  # (M, K, N)
        share = u[..., None] * slopes[:, None]  # (M, L, K, N), divided by their sum below
        share = share / share.sum(2, keepdim=True)
        return (weight[:, :, None] * share) @ share.mT

    def _pulled(self, shape: Tensor, features: Tensor, by_value: Tensor, by_log_slope: Tensor) -> Tensor:
        """Gradient by the one shape, from derivatives by baseline (..., L, N) and by log slope (..., L, 1)."""
        pulled = by_value @ features[..., :1, :].mT
        return _within_limits(torch.addcmul(by_log_slope, pulled, self.shape_weight(shape)), shape)


def _within_limits(gradient: Tensor, shape: Tensor) -> Tensor:
    """The gradient where the shape is within its limits, else 0."""
    return torch.ops.aten.hardtanh_backward(gradient, shape, -LOG_SHAPE_LIMIT, LOG_SHAPE_LIMIT)


def standardise(
    log_time: Tensor,  # (..., N)
    time_scale: Tensor,  # (..., n_time_scale)
) -> Tensor:  # (..., N)
    """Log time in units of the time scale: (log t - m) / s."""
    return (log_time - time_scale[..., 0:1]) / time_scale[..., 1:2]
