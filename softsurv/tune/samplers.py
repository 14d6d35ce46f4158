"""Samplers and pruners by name. A proposal depends on the seed, the trial's number and the trials before it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from softsurv.errors import InvalidParameterError


def _tpe(seed: int) -> TPESampler:
    """TPE that takes running trials for bad ones (the constant liar), so that trials of a batch keep apart.

    It is optuna's default from version 5 on, and called experimental before.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return TPESampler(seed=seed, constant_liar=True)


SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    "tpe": _tpe,
    "random": lambda seed: RandomSampler(seed=seed),
}

PRUNERS: dict[str, Callable[[int], BasePruner]] = {
    "none": lambda n_folds: NopPruner(),
    "median": lambda n_folds: MedianPruner(n_startup_trials=5, n_warmup_steps=0),
    "hyperband": lambda n_folds: HyperbandPruner(min_resource=1, max_resource=n_folds, reduction_factor=2),
}


class SeededSampler(BaseSampler):
    """A sampler that starts anew for each trial, from the study's seed and the trial's number.

    Workers that share a study then never draw the same numbers twice, and a study that is resumed goes on as if
    it had not stopped.
    """

    def __init__(self, name: str, seed: int) -> None:
        self._make, self._seed = SAMPLERS[name], seed
        self._inner = self._make(seed)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        mixed = np.random.SeedSequence([self._seed, trial.number]).generate_state(1)
        self._inner = self._make(int(mixed[0]))
        self._inner.before_trial(study, trial)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self._inner.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self._inner.sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self._inner.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        self._inner.after_trial(study, trial, state, values)


def make_sampler(sampler: str | BaseSampler, seed: int) -> BaseSampler:
    """A seeded sampler by name, or the given one as it is."""
    if isinstance(sampler, BaseSampler):
        return sampler
    if sampler not in SAMPLERS:
        raise InvalidParameterError(
            f"sampler must be one of {', '.join(SAMPLERS)} or an optuna sampler, got {sampler!r}"
        )
    return SeededSampler(sampler, seed)


def make_pruner(pruner: str | BasePruner, n_folds: int, n_measures: int) -> BasePruner:
    """A pruner by name, or the given one as it is; optuna prunes studies of one measure only."""
    if isinstance(pruner, str) and pruner not in PRUNERS:
        raise InvalidParameterError(f"pruner must be one of {', '.join(PRUNERS)} or an optuna pruner, got {pruner!r}")
    made = PRUNERS[pruner](n_folds) if isinstance(pruner, str) else pruner
    if n_measures > 1 and not isinstance(made, NopPruner):
        raise InvalidParameterError(f"a pruner needs one measure, got {n_measures}; name one, or use pruner='none'")
    return made
