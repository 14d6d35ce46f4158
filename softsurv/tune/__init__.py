"""Hyper-parameter studies with optuna: shared by many workers, resumable, one measure or several."""

from softsurv.estimators.many import soft_setting
from softsurv.tune.measures import DIRECTIONS
from softsurv.tune.objective import StudyObjective
from softsurv.tune.results import StudyResult, best_trial, trial_table
from softsurv.tune.spaces import Choice, Range, default_space, parse_space
from softsurv.tune.study import study

__all__ = [
    "DIRECTIONS",
    "Choice",
    "Range",
    "StudyObjective",
    "StudyResult",
    "best_trial",
    "default_space",
    "parse_space",
    "soft_setting",
    "study",
    "trial_table",
]
