"""The objective of a study: cross-validated measures of an estimator with a trial's parameters."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import optuna
from optuna.pruners import NopPruner

from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, NumericalError
from softsurv.estimators.many import StackedRows, can_share, fit_stacked, soft_setting
from softsurv.estimators.shared.checks import whole
from softsurv.estimators.soft.devices import machine_of
from softsurv.estimators.soft.tree import SoftSurvivalTree
from softsurv.soft.cross_validation import (
    Fold,
    Measured,
    cross_validate_many,
    cross_validate_on_device,
    folds_of_content,
    make_folds,
)
from softsurv.soft.held_out import HeldOut
from softsurv.soft.one_pass import by_operators
from softsurv.soft.parallel import Machine
from softsurv.soft.recipe import Recipe
from softsurv.tune.measures import DIRECTIONS, check_measures, counted, fit_and_measure, mean_over_folds, measured
from softsurv.tune.spaces import Space, default_space, suggest

ESTIMATORS = ("soft", "optimal")

Outcome = tuple[float, ...] | Exception
"""Means of a trial's measures, or the exception that ended it."""

MeasuredTrial = Measured | NumericalError
"""Measures in every fold, or the error of the fit."""


@dataclass
class _Running:
    """A trial while it is measured."""

    trial: optuna.Trial
    model: Any
    done: list[dict[str, Any]] = field(default_factory=list)
    together: int = 1
    seconds: float = 0.0
    ended: Exception | None = None

    def take(self, found: MeasuredTrial) -> None:
        """Add the measures of further folds."""
        if isinstance(found, NumericalError):
            self.ended = found
            return
        self.done += found.folds
        self.together, self.seconds = max(self.together, found.together), self.seconds + found.seconds


class StudyObjective:
    """Mean held-out measures of an estimator, for `optuna.Study.optimize`.

    Soft trees train all folds of a trial as one stack. Where the study has a pruner (and one measure), the mean
    over the folds so far is reported after 1, 2, 4, ... folds.

    Parameters
    ----------
    data : SurvivalData
        Raw rows. Models and preprocessing are fitted on training folds only.
    estimator : {"soft", "optimal"}
    measures : sequence of str
        Keys of :data:`DIRECTIONS`; several make the study multi-objective.
    space : mapping, optional
        Parameters of the estimator: a `Choice`, a `Range`, a list of values, or one fixed value. They replace
        those of :func:`softsurv.tune.default_space` by name. Soft trees are trees of rules unless this names an
        argument that only dense trees have or ``max_terms=None``, or fairness is measured; a number for
        ``max_terms`` asks for rules.
    n_folds : int
    seed : int
        Seed of the folds and of the estimator.
    device : str
        Where soft trees train.
    interest : int or str, optional
        Code or name of the cause whose measures count, where events have causes: its concordance is "harrell_c", its
        AUC "cd_auc", its integrated Brier score "ibs". Without it they are means over the causes. With it, trees are
        tried for all causes and for this one alone (``cause_weights``).

    Raises
    ------
    InvalidParameterError
        If an argument is not what it must be, ``space`` names no argument of the estimator, or the rows do not have a
        measure.
    InvalidSurvivalDataError
        If fairness is to be measured without two groups.

    Examples
    --------
    >>> import optuna
    >>> from softsurv import load_dataset
    >>> from softsurv.tune import StudyObjective
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> goal = StudyObjective(load_dataset("veterans"), space={"depth": [0, 1], "leaf": "weibull", "solver": "lbfgs"})
    >>> study = optuna.create_study(directions=goal.directions)
    >>> study.optimize(goal, n_trials=2)
    >>> 0.5 < study.best_value < 1
    True
    """

    def __init__(
        self,
        data: SurvivalData,
        estimator: str = "soft",
        *,
        measures: Sequence[str] = ("harrell_c",),
        space: Space | None = None,
        n_folds: int = 5,
        seed: int = 0,
        device: str = "auto",
        interest: int | str | None = None,
    ) -> None:
        if estimator not in ESTIMATORS:
            raise InvalidParameterError(f"estimator must be one of {', '.join(ESTIMATORS)}, got {estimator!r}")
        whole("seed", seed, 0)
        whole("n_folds", n_folds, 2)
        self.measures = (measures,) if isinstance(measures, str) else tuple(measures)
        data = data.joined().that_count()
        check_measures(self.measures, data, interest)
        self.interest = None if interest is None else data.cause_names[data.cause_code(interest) - 1]
        self.data, self.estimator, self.n_folds, self.seed, self.device = data, estimator, n_folds, seed, device
        self.space = default_space(estimator, self.measures, space, data) | dict(space or {})
        late = data.entry is not None and bool((data.entry > 0).any())
        histories = late or data.cause is not None or data.subject is not None
        if estimator == "optimal" and histories and "objective" not in (space or {}):
            self.space["objective"] = "relative_risk"  # the only one for late entry, causes and several rows
        if self.interest is not None and self.space.get("max_terms", 1) is not None:
            self.space.setdefault("cause_weights", [None, self.interest])
        self._check_space()
        self._rows = folds_of_content(data, n_folds, seed)
        self._folds: dict[bool, list[Fold]] = {}
        self._stacked_rows: dict[bool, StackedRows] = {}
        self._held_out: dict[Any, HeldOut] = {}
        self._can_share = can_share([data.take(train) for train, _ in self._rows])

    @property
    def directions(self) -> list[Literal["maximize", "minimize"]]:
        """Whether to maximise or minimise each measure, for `optuna.create_study`."""
        return [DIRECTIONS[name] for name in self.measures]

    def __call__(self, trial: optuna.Trial) -> float | tuple[float, ...]:
        """Means over the folds; the measures of each fold go to the trial's user attribute "folds"."""
        self.propose(trial)
        (outcome,) = self.measure([trial])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome if len(outcome) > 1 else outcome[0]

    def propose(self, trial: optuna.Trial) -> None:
        """Let optuna suggest a trial's parameters: for a batch, one trial after the other."""
        suggest(trial, self.space)

    def measure(self, trials: Sequence[optuna.Trial]) -> list[Outcome]:
        """Measure some trials, whose dense trees train as one stack where they can.

        Returns
        -------
        list of (tuple of float or Exception)
            For each trial the means of its measures over the folds, `optuna.TrialPruned`, or the `NumericalError` of
            its fit.
        """
        running = [_Running(trial, self.model(suggest(trial, self.space))) for trial in trials]
        prunes = len(self.measures) == 1 and not isinstance(trials[0].study.pruner, NopPruner)
        for part in rungs(self.n_folds) if prunes else [slice(0, self.n_folds)]:
            alive = [one for one in running if one.ended is None]
            for one, found in zip(alive, self.cross_validate_many([r.model for r in alive], part), strict=True):
                one.take(found)
            for one in alive:
                if prunes and one.ended is None:
                    self._prune(one)
        for one in running:
            if one.done:
                self._note(one)
        return [one.ended if one.ended is not None else self._means(one.done) for one in running]

    def _prune(self, one: _Running) -> None:
        """Report the mean over the folds so far, and end the trial if the pruner says so."""
        if all(fold.get(self.measures[0]) is None for fold in one.done):
            return  # no event of the cause of interest, or one group alone, so far
        one.trial.report(self._means(one.done)[0], len(one.done))
        if len(one.done) < self.n_folds and one.trial.should_prune():
            one.ended = optuna.TrialPruned(f"after {len(one.done)} of {self.n_folds} folds")

    def model(self, parameters: dict[str, Any]) -> Any:
        """The unfitted estimator with these arguments."""
        if self.estimator == "soft":
            given: dict[str, Any] = {"random_state": self.seed, "device": self.device} | parameters
            return SoftSurvivalTree(**given)
        from softsurv.estimators.optimal.tree import OptimalSurvivalTree

        return OptimalSurvivalTree(**({"random_state": self.seed} | parameters))

    def cross_validate(self, model: Any, part: slice = slice(None)) -> list[dict[str, Any]]:
        """Measures of an estimator in some folds, by number.

        An estimator that cannot train in a stack is fitted fold by fold by `joblib.Parallel`, as
        `joblib.parallel_config` says.

        Raises
        ------
        NumericalError
            If a fit leaves the finite numbers.
        """
        (found,) = self.cross_validate_many([model], part)
        if isinstance(found, NumericalError):
            raise found
        return found.folds

    def cross_validate_many(self, models: Sequence[Any], part: slice = slice(None)) -> list[MeasuredTrial]:
        """Measures of some estimators in some folds; plain dense trees that are alike train as one stack."""
        found: dict[int, MeasuredTrial] = {}
        for members in self._stacks(models):
            found |= self._measured_together(models, members, part)
        return [found[k] for k in range(len(models))]

    def _stacks(self, models: Sequence[Any]) -> list[list[int]]:
        """Numbers of the models that are trained together, in the order of the first of each group."""
        groups: dict[Any, list[int]] = {}
        for number, model in enumerate(models):
            plain = self._recipe(model) is not None
            key = (model.device, model.dtype, model.preprocess) if plain else number
            groups.setdefault(key, []).append(number)
        return list(groups.values())

    def _recipe(self, model: Any) -> Recipe | None:
        """The recipe of the model's trees in a stack; None where they cannot train in one."""
        if self.estimator != "soft" or not self._can_share:
            return None
        return soft_setting(model, self.data.cause_names)

    def _measured_together(
        self, models: Sequence[Any], members: Sequence[int], part: slice
    ) -> dict[int, MeasuredTrial]:
        """Measures of the members. If a fit fails, each member runs alone, which shows whose fit it was."""
        try:
            recipes = [recipe for k in members if (recipe := self._recipe(models[k])) is not None]
            if not recipes:
                return {k: self._fold_by_fold(models[k], part) for k in members}
            model = models[members[0]]
            machine = machine_of(model, recipes, len(self._rows[part]) * self.data.n)
            if self.data.cause is None and self.data.subject is None:
                together = cross_validate_many(self._prepared(model.preprocess)[part], recipes, machine)
            elif by_operators(machine.device):
                together = self._histories_on_device(model, recipes, part, machine)
            else:
                together = self._measured_histories([models[k] for k in members], recipes, part)
            return dict(zip(members, together, strict=True))
        except NumericalError as error:
            if len(members) == 1:
                return {members[0]: error}
        return {k: one for member in members for k, one in self._measured_together(models, [member], part).items()}

    def _measured_histories(self, models: Sequence[Any], recipes: Sequence[Recipe], part: slice) -> list[Measured]:
        """Measures of trees of causes, or of subjects with several rows, that train as one stack."""
        tests = [self.data.take(test) for _, test in self._rows[part]]
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a part of the rows only
            sets = self._encoded(models[0]).some(part)
            for trees, together in fit_stacked(models, recipes, sets):
                began = time.perf_counter()
                folds = [measured(tree, test, self.interest) for tree, test in zip(trees, tests, strict=True)]
                seconds = time.perf_counter() - began + sum(tree.report_.seconds for tree in trees)
                found.append(Measured(folds, together, seconds))
        return found

    def _histories_on_device(
        self, model: Any, recipes: Sequence[Recipe], part: slice, machine: Machine
    ) -> list[Measured]:
        """The same on a device, on which the measures are computed too; ``model`` is one of those to be measured."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sets = self._encoded(model)
            held_out = [self._test_rows(sets, k, model, machine) for k in range(self.n_folds)[part]]
            found = cross_validate_on_device(sets.some(part).training, held_out, recipes, machine)
        return [replace(one, folds=[counted(fold, self.interest) for fold in one.folds]) for one in found]

    def _test_rows(self, sets: StackedRows, fold: int, model: Any, machine: Machine) -> HeldOut:
        """Test rows of a fold on a device, read and encoded once for all trials."""
        key = fold, model.preprocess, machine.device, machine.dtype
        if key not in self._held_out:
            self._held_out[key] = sets.held_out(fold, self.data.take(self._rows[fold][1]), machine.like)
        return self._held_out[key]

    def _encoded(self, model: Any) -> StackedRows:
        """Training rows of all folds, read and encoded once for all trials."""
        if model.preprocess not in self._stacked_rows:
            parts = [self.data.take(train) for train, _ in self._rows]
            self._stacked_rows[model.preprocess] = StackedRows.of(model, parts)
        return self._stacked_rows[model.preprocess]

    def _fold_by_fold(self, model: Any, part: slice) -> Measured:
        """Measures of an estimator that is fitted on each fold by itself."""
        from joblib import Parallel, delayed

        began = time.perf_counter()
        rows = ((self.data.take(train), self.data.take(test)) for train, test in self._rows[part])
        jobs = (delayed(fit_and_measure)(model, train, test, self.interest) for train, test in rows)
        return Measured(list(Parallel()(jobs)), 1, time.perf_counter() - began)

    def _prepared(self, preprocess: bool) -> list[Fold]:
        """Encoded folds, made once for all trials."""
        if preprocess not in self._folds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of levels that a part of the rows does not have
                self._folds[preprocess] = make_folds(self.data, self.n_folds, self.seed, preprocess)
        return self._folds[preprocess]

    def _means(self, folds: list[dict[str, Any]]) -> tuple[float, ...]:
        return tuple(mean_over_folds(folds, name) for name in self.measures)

    def _note(self, one: _Running) -> None:
        names = [name for name in DIRECTIONS if any(fold.get(name) is not None for fold in one.done)]
        values: dict[str, Any] = {name: [fold.get(name) for fold in one.done] for name in names}
        one.trial.set_user_attr("folds", values | {"seconds": one.seconds, "together": one.together})

    def _check_space(self) -> None:
        """Refuse names that are no argument of the estimator, before the first trial."""
        known = self.model({}).get_params()
        for name, spec in self.space.items():
            if name not in known:
                raise InvalidParameterError(
                    f"space must name arguments of the {self.estimator} estimator, got {name!r}; "
                    f"it has {', '.join(sorted(known))}"
                )
            if isinstance(spec, tuple) and len(spec) == 2 and all(isinstance(end, int | float) for end in spec):
                raise InvalidParameterError(
                    f"{name} in space must be one value, a list of values or a Range, got {spec!r}; "
                    f"write Range({spec[0]}, {spec[1]}) for all between, [{spec[0]}, {spec[1]}] for these two"
                )


def rungs(n_folds: int) -> Iterator[slice]:
    """Folds 1, 2, 3-4, 5-8, ...: the number of folds doubles from one question to the pruner to the next."""
    first, last = 0, 1
    while first < n_folds:
        yield slice(first, min(last, n_folds))
        first, last = last, 2 * last
