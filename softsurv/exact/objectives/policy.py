"""Scores of treatments from observed outcomes: what each treatment would have been worth to each row (paper `streed`).

A policy tree maximises the mean score of the treatments that its leaves choose. With scores as rewards it is the task
`label_costs`: a treatment costs what it loses against the row's best one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray
from softsurv.errors import InvalidParameterError

METHODS = ("direct", "ips", "doubly_robust")

INSTEAD = {
    "predicted": "pass the outcome of every treatment as a model of your own predicts it, or take method='ips'",
    "propensity": "pass the probability with which each row's treatment was given, or take method='direct'",
}
"""What to do where an argument is missing."""


def treatment_scores(
    method: str,
    outcome: FloatArray,
    treatment: NDArray[np.integer],
    n_treatments: int,
    propensity: FloatArray | None,
    predicted: FloatArray | None,
) -> FloatArray:
    """Score of every treatment for every row, (N, K); higher is better.

    Parameters
    ----------
    method : {"direct", "ips", "doubly_robust"}
        The predicted outcome; the observed one over the propensity of the treatment given, 0 for the others; or the
        predicted one corrected by the observed residual over the propensity (Dudik et al. 2011).
    outcome : (N,)
        Observed outcome of the treatment given, higher is better.
    treatment : (N,) int
        The treatment given, 0 .. K-1.
    n_treatments : int
        K.
    propensity : (N,) or None
        Probability with which the treatment given was given; not needed for "direct".
    predicted : (N, K) or None
        Outcome of every treatment as a model predicts it; not needed for "ips".

    Raises
    ------
    InvalidParameterError
        What the method needs is not given.
    """
    given = np.arange(n_treatments) == treatment[:, None]
    needs = {"direct": ("predicted",), "ips": ("propensity",), "doubly_robust": ("predicted", "propensity")}[method]
    for name, value in (("predicted", predicted), ("propensity", propensity)):
        if name in needs and value is None:
            raise InvalidParameterError(f"{name} must be given for method={method!r}, got None; {INSTEAD[name]}")
    scores = np.zeros(given.shape) if method == "ips" else np.array(predicted, dtype=float)
    if method != "direct":
        assert propensity is not None
        scores += np.where(given, (outcome[:, None] - scores) / propensity[:, None], 0.0)
    return scores


def lost_rewards(scores: FloatArray, weight: FloatArray) -> FloatArray:
    """Statistics (N, K) of the task `label_costs`: what each treatment loses against the row's best, times weight."""
    return np.asarray(weight[:, None] * (scores.max(axis=1, keepdims=True) - scores))
