"""Ready data sets: the 15 of the soft-survival-tree paper, its fairness set, event histories, and any SurvSet table.

They are entered in `softsurv.data.catalogue` and `softsurv.data.event_sets`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from softsurv.data import event_sets as event_sets  # enters its sets
from softsurv.data.catalogue import DATASETS as DATASETS
from softsurv.data.sources import SURVSET_LEAKS, as_data, as_history, from_survset
from softsurv.errors import InvalidParameterError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from softsurv.data.survival_data import SurvivalData

SURVSET_PREFIX = "survset:"


def load_dataset(name: str, variant: str | None = None) -> SurvivalData:
    """Load a data set by name.

    Parameters
    ----------
    name : str
        One of `list_datasets`, or ``survset:<name>`` for any table of the SurvSet package (extra ``data``), those with
        competing events and with several rows for a subject too.
    variant : str, optional
        By default no feature that is known only after time zero or follows from the outcome is kept:
        flchain leaves out ``chapter``, the cause of death, and whas500 leaves out ``los``. "paper" gives
        the rows and columns of paper `sst` as far as they can be had, those included. "raw" (employee)
        keeps duplicate rows.

    Returns
    -------
    SurvivalData
        Raw features: categories and missing values are left to `Preprocessor`.

    Raises
    ------
    InvalidParameterError
        Unknown name or variant.
    SoftsurvError
        A file is in none of the folders and cannot be downloaded.

    Examples
    --------
    >>> load_dataset("gbsg2")
    SurvivalData('gbsg2', n=686, p=8, events=299)
    """
    if isinstance(name, str) and name.startswith(SURVSET_PREFIX):
        return _load_survset(name.removeprefix(SURVSET_PREFIX), variant)
    if not isinstance(name, str) or name not in DATASETS:
        raise InvalidParameterError(
            f"name must be one of {', '.join(sorted(DATASETS))} or survset:<name>, got {name!r}"
            f"{did_you_mean(name, DATASETS)}"
        )
    info = DATASETS[name]
    _check_variant(variant, info.variants, name)
    return info.load(variant)


def list_datasets() -> pd.DataFrame:
    """The data sets by name, one row each, with what every loader states of itself; loads nothing."""
    import pandas as pd

    rows = [
        {
            "name": info.name,
            "source": info.source,
            "event": info.event,
            "time_unit": info.unit,
            "n": info.n,
            "p": info.p,
            "events": info.events,
            "censoring_percent": round(info.censoring, 1),
            "zero_times": info.zero_times,
            "dropped": info.dropped,
            "variants": ", ".join(info.variants),
            **dict(zip(("paper_n", "paper_p", "paper_censoring_percent"), info.paper or (None,) * 3, strict=True)),
            "note": info.note,
        }
        for info in sorted(DATASETS.values(), key=lambda info: info.name)
    ]
    return pd.DataFrame(rows, dtype=object).infer_objects().set_index("name")


def _check_variant(variant: str | None, known: tuple[str, ...], name: str) -> None:
    if variant is not None and variant not in known:
        choice = f"None or one of {', '.join(known)}" if known else "None, as there is no other"
        raise InvalidParameterError(f"variant of {name!r} must be {choice}, got {variant!r}")


def _load_survset(name: str, variant: str | None) -> SurvivalData:
    """Any SurvSet table, without known leaks unless ``variant="raw"``."""
    _check_variant(variant, ("raw",), SURVSET_PREFIX + name)
    frame = from_survset(name)
    if variant is None:
        frame = frame.drop(columns=list(SURVSET_LEAKS.get(name, {})))
    if "time2" in frame:
        return as_history(SURVSET_PREFIX + name, frame, start="time", stop="time2", event="event", id="pid")
    if frame["event"].max() > 1:
        return as_history(SURVSET_PREFIX + name, frame, time="time", cause="event")
    return as_data(SURVSET_PREFIX + name, frame, time="time", event="event")
