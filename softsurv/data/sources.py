"""Where raw tables come from: data files on disk or on the net, scikit-survival, SurvSet."""

from __future__ import annotations

import difflib
import hashlib
import http.client
import logging
import os
import urllib.request
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softsurv.errors import DataWarning, InvalidParameterError, SoftsurvError
from softsurv.files import replace_file

if TYPE_CHECKING:
    import pandas as pd

    from softsurv.data.survival_data import SurvivalData

logger = logging.getLogger(__name__)

FOLDER_VARIABLE = "SOFTSURV_DATA"
_PYSURVIVAL_URL = "https://raw.githubusercontent.com/square/pysurvival/master/pysurvival/datasets/"
_TIMEOUT = 30.0  # seconds without an answer before a download is given up

# Columns of SurvSet tables that are known only after time zero or follow from the outcome.
SURVSET_LEAKS: dict[str, dict[str, str]] = {
    "flchain": {"chapter": "cause of death, missing for the living"},
    "grace": {"los": "length of the hospital stay, equal to the time of those who die in hospital"},
    "mgus": {"pctime": "time of a later diagnosis", "pcdx": "a later diagnosis"},
    "support2": {"sfdm2": "function after two months, has a level for those who died before"},
    "whas500": {"los": "length of the hospital stay, equal to the time of those who die in hospital"},
}


@dataclass(frozen=True)
class DataFile:
    """A csv file with its checksum, in a folder, in the cache or on the net; without ``url`` in a folder alone."""

    name: str
    sha256: str
    url: str
    folder: str = "pysurvival"


def _pysurvival(name: str, sha256: str) -> DataFile:
    return DataFile(name, sha256, _PYSURVIVAL_URL + name)


def of_folder(folder: str, name: str, sha256: str) -> DataFile:
    """A file that is looked for in one folder only, below that named by ``SOFTSURV_DATA``."""
    return DataFile(name, sha256, "", folder)


CHURN = _pysurvival("churn.csv", "e24e4fbd37ab8e7505f346ee8a7dd696da425f697666c42d3fb56edd65c1e50e")
CREDIT = _pysurvival("credit_risk.csv", "cffb351096de15138867f8ccb7f11a5177966277a05d4ee998e61f90d7baf717")
EMPLOYEE = _pysurvival("employee_attrition.csv", "664af9fafc88277d149ef2135564b575bea28a3dc95c8999d4f6e17dd455db1b")
MAINTENANCE = _pysurvival("maintenance.csv", "6d996031986e9c148937afc9e8f7a2c0002590525b5de2acc00ca43b91380cf9")


def find_file(file: DataFile) -> Path:
    """Path of a data file whose content has the recorded checksum.

    Searched in the folder named by the environment variable ``SOFTSURV_DATA`` and the file's own folder
    below it, then in the user's cache; downloaded into the cache otherwise.

    Raises
    ------
    SoftsurvError
        A file in the folder differs from the recorded one, or there is none and no network.
    """
    if folder := os.environ.get(FOLDER_VARIABLE):
        if not Path(folder).is_dir():
            raise SoftsurvError(f"{FOLDER_VARIABLE} must name an existing folder, got {folder!r}")
        for path in (Path(folder) / file.name, Path(folder) / file.folder / file.name):
            if path.is_file():
                if _digest(path.read_bytes()) != file.sha256:
                    raise SoftsurvError(
                        f"{path} must have the sha256 {file.sha256[:12]}..., got another content; "
                        f"{f'replace it by {file.url} or ' if file.url else ''}remove it"
                    )
                return path
    if not file.url:
        raise SoftsurvError(
            f"{file.name} could not be found: write it from R's package survival into the folder {file.folder!r} of a "
            f"folder named by {FOLDER_VARIABLE}"
        )
    return _cached(file)


def _cached(file: DataFile) -> Path:
    """The file in the user's cache, downloaded where it is absent or was cut off."""
    import platformdirs

    path = platformdirs.user_cache_path("softsurv") / file.name
    if not path.is_file() or _digest(path.read_bytes()) != file.sha256:
        logger.info("downloading %s to %s", file.url, path)
        content = _download(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
    return path


def _download(file: DataFile) -> bytes:
    by_hand = f"fetch {file.url} by hand and put it into a folder named by {FOLDER_VARIABLE}"
    try:
        with urllib.request.urlopen(file.url, timeout=_TIMEOUT) as answer:
            content: bytes = answer.read()
    except (OSError, http.client.HTTPException) as error:  # no network, timeouts, refused or cut connections
        raise SoftsurvError(f"{file.name} could not be downloaded ({error}); {by_hand}") from error
    if _digest(content) != file.sha256:
        raise SoftsurvError(f"{file.name} as downloaded differs from the recorded checksum; {by_hand}")
    return content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def from_csv(file: DataFile, **options: Any) -> pd.DataFrame:
    """A data file as a frame, text stripped of blanks and made categorical."""
    import pandas as pd

    frame = pd.read_csv(find_file(file), **options)
    text = frame.select_dtypes(exclude="number").columns
    return frame.assign(**{name: frame[name].str.strip().astype("category") for name in text})


def from_survset(name: str) -> pd.DataFrame:
    """A SurvSet table: columns event, time and features without the prefixes fac_ and num_.

    A table with several rows for a subject has the columns ``pid``, ``time`` and ``time2`` of its rows (time, time2];
    otherwise the row number ``pid`` is dropped. ``event`` counts 0, 1, 2, ... where events compete. A feature that
    SurvSet holds both as a number and as a factor keeps its prefixes. An empty level is a missing value, as it would be
    in a csv file.

    Raises
    ------
    ImportError
        SurvSet is not installed.
    InvalidParameterError
        SurvSet has no such table.
    """
    try:
        from SurvSet.data import SurvLoader
    except ImportError as error:  # 100 MB of tables, which not everyone wants
        words = "this table comes with the package SurvSet: pip install 'softsurv[data]'"
        raise ImportError(words, name=error.name) from None

    loader = SurvLoader()
    tables = loader.df_ds.set_index("ds")
    if name not in tables.index:
        by_lower = {table.lower(): table for table in tables.index}
        near = [by_lower[match] for match in difflib.get_close_matches(name.lower(), by_lower)]
        raise InvalidParameterError(
            f"name must be one of the {len(tables)} SurvSet tables, got {name!r}; "
            f"close ones: {', '.join(near) or 'none'} (names are case-sensitive)"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # SurvSet's files name old numpy modules
        frame = loader.load_dataset(name)["df"].reset_index(drop=True)
    if not tables.loc[name, "is_td"]:
        frame = frame.drop(columns="pid")
    for column in frame.select_dtypes("category"):
        if "" in frame[column].cat.categories:
            frame[column] = frame[column].cat.remove_categories("")
    bare = [column.removeprefix("fac_").removeprefix("num_") for column in frame.columns]
    return frame.set_axis([b if bare.count(b) == 1 else c for b, c in zip(bare, frame, strict=True)], axis=1)


def as_data(name: str, frame: pd.DataFrame, time: str, event: str, group: str | None = None) -> SurvivalData:
    """`SurvivalData` from a frame with named outcome columns, all other columns being features.

    Zero times are stated in the table of data sets, so there is no warning here.
    """
    return as_history(name, frame, time=time, event=event, group=group)


def as_history(name: str, frame: pd.DataFrame, **outcome: Any) -> SurvivalData:
    """`SurvivalData` from a frame, with the outcome columns of `survival_data`; all others are features."""
    from softsurv.data.readers import survival_data

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return survival_data(frame, **outcome, name=name)
