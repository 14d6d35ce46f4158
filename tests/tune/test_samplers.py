"""Samplers and pruners by name: a proposal depends on the seed and the number of the trial alone."""

from __future__ import annotations

import optuna
import pytest
from optuna.pruners import HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import RandomSampler

from softsurv.errors import InvalidParameterError
from softsurv.tune.samplers import make_pruner, make_sampler


def study(sampler):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(sampler=sampler)


def propose(study, trials, jump=0):
    """Values that a study proposes; after ``jump`` numbers that somebody else took."""
    found = []
    for _ in range(jump):
        study.ask()
    for _ in range(trials):
        trial = study.ask()
        found.append((trial.number, trial.suggest_float("x", 0, 1), trial.suggest_categorical("c", list("abc"))))
        study.tell(trial, found[-1][1])
    return found


@pytest.mark.parametrize("name", ["tpe", "random"])
def test_a_study_that_begins_anew_goes_on_as_if_it_had_not_stopped(name):
    whole = propose(study(make_sampler(name, 3)), 6)
    stopped = study(make_sampler(name, 3))
    first = propose(stopped, 3)
    stopped.sampler = make_sampler(name, 3)  # as in another process
    assert first + propose(stopped, 3) == whole
    assert propose(study(make_sampler(name, 4)), 6) != whole


def test_workers_that_share_a_study_draw_no_number_twice():
    whole = propose(study(make_sampler("random", 3)), 4)
    assert propose(study(make_sampler("random", 3)), 2, jump=2) == whole[2:]
    assert len({x for _, x, _ in whole}) == 4


def test_a_sampler_or_pruner_of_ones_own_stays_as_it_is():
    sampler, pruner = RandomSampler(0), MedianPruner()
    assert make_sampler(sampler, 9) is sampler
    assert make_pruner(pruner, 5, 1) is pruner


def test_pruners_know_the_number_of_folds():
    assert isinstance(make_pruner("none", 5, 2), NopPruner)
    assert isinstance(make_pruner("median", 5, 1), MedianPruner)
    assert isinstance(make_pruner("hyperband", 5, 1), HyperbandPruner)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: make_sampler("tpee", 0), "sampler must be one of tpe, random or an optuna sampler, got 'tpee'"),
        (lambda: make_pruner("best", 5, 1), "pruner must be one of none, median, hyperband or an optuna pruner"),
        (lambda: make_pruner("median", 5, 2), "a pruner needs one measure, got 2; name one, or use pruner='none'"),
        (lambda: make_pruner(MedianPruner(), 5, 2), "a pruner needs one measure, got 2"),
    ],
)
def test_what_does_not_exist_or_fit_is_told(make, sentence):
    with pytest.raises(InvalidParameterError, match=sentence):
        make()


def test_tpe_keeps_away_from_trials_of_its_batch():
    """A running trial counts as a bad one; one that failed does not count."""

    def proposal_beside(state):
        study = optuna.create_study(sampler=make_sampler("tpe", 0))
        for _ in range(15):
            trial = study.ask()
            study.tell(trial, trial.suggest_float("x", 0, 1) ** 2)
        other = study.ask()
        other.suggest_float("x", 0, 1)
        if state is not None:
            study.tell(other, state=state)
        return study.ask().suggest_float("x", 0, 1)

    assert proposal_beside(None) != proposal_beside(optuna.trial.TrialState.FAIL)
