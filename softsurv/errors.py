"""Every exception and warning class of softsurv."""


class SoftsurvError(Exception):
    """Base of every error that softsurv raises on purpose."""


class InvalidSurvivalDataError(SoftsurvError, ValueError):
    """The table of subjects is not usable: the message names the column, the row and the remedy."""


class InvalidTimesError(SoftsurvError, ValueError):
    """An evaluation grid or horizon is not usable."""


class InvalidParameterError(SoftsurvError, ValueError):
    """A setting has the wrong type or lies outside its range."""


class NoComparablePairsError(SoftsurvError, ValueError):
    """A ranking measure is undefined: no pair of subjects can be ordered."""


class NumericalError(SoftsurvError, RuntimeError):
    """A computation left the finite numbers; the message says where."""


class ModelFileError(SoftsurvError, ValueError):
    """A saved model is damaged, incomplete, or written by a newer version."""


class SoftsurvWarning(UserWarning):
    """Base of every warning that softsurv gives on purpose."""


class DataWarning(SoftsurvWarning):
    """Something in the data was changed or is unusual; the message says what and how often."""


class EvaluationWarning(SoftsurvWarning):
    """A measure was computed on less than was asked; the message says on what."""
