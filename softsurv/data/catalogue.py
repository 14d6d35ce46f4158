"""The catalogue of data sets: one ``load_`` function with its facts for each.

To add one, write a ``load_`` function with a ``@dataset`` line: tables and tests find it in `DATASETS`. Those of event
histories are in `softsurv.data.event_sets`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softsurv.data import sources
from softsurv.data.sources import as_data, from_csv, from_survset

if TYPE_CHECKING:
    from softsurv.data.survival_data import SurvivalData

Loader = Callable[[str | None], "SurvivalData"]


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set; the sizes are those of the default variant.

    Attributes
    ----------
    name, source, event, unit : str
        Name, origin, meaning of the event, unit of time.
    n, p, events, zero_times : int
        Rows, raw features, observed events, rows with time 0 (soft trees floor them).
    paper : (n, p, censoring in percent), or None
        As printed in paper `sst`, Table 2; None for sets that it does not have.
    dropped : str
        What is left out by default, and why.
    note : str
        Where and why the paper's printed figures differ.
    variants : tuple of str
        Beside the default.
    load : callable
        Variant name or None -> SurvivalData.
    """

    name: str
    source: str
    event: str
    unit: str
    n: int
    p: int
    events: int
    zero_times: int
    paper: tuple[int, int, float] | None
    dropped: str
    note: str
    variants: tuple[str, ...]
    load: Loader

    @property
    def censoring(self) -> float:
        """Censored rows in percent."""
        return 100 * (1 - self.events / self.n)


DATASETS: dict[str, DatasetInfo] = {}


def dataset(
    name: str,
    source: str,
    event: str,
    unit: str,
    sizes: tuple[int, int, int],
    paper: tuple[int, int, float] | None = None,
    *,
    zero_times: int = 0,
    dropped: str = "nothing",
    note: str = "",
    variants: tuple[str, ...] = (),
) -> Callable[[Loader], Loader]:
    """Enter a loader into `DATASETS`; ``sizes`` are n, p and events of the default variant."""

    def enter(load: Loader) -> Loader:
        known = variants if paper is None else ("paper", *variants)
        DATASETS[name] = DatasetInfo(name, source, event, unit, *sizes, zero_times, paper, dropped, note, known, load)
        return load

    return enter


def _from_sksurv(name: str, loader: str, drop: tuple[str, ...] = (), **options: Any) -> SurvivalData:
    """A table of scikit-survival, less some columns."""
    import sksurv.datasets

    frame, y = getattr(sksurv.datasets, loader)(**options)
    event, time = y.dtype.names
    outcome = {" event": y[event], " time": y[time]}
    return as_data(name, frame.drop(columns=list(drop)).assign(**outcome), time=" time", event=" event")


@dataset(
    "aids",
    "scikit-survival, load_aids",
    "AIDS or death",
    "days",
    (1151, 11, 96),
    (1151, 11, 91.7),
    dropped="the outcome columns of aids_death",
)
def load_aids(variant: str | None) -> SurvivalData:
    """AIDS Clinical Trials Group study 320, first endpoint (Hosmer and Lemeshow)."""
    return _from_sksurv("aids", "load_aids", endpoint="aids")


@dataset(
    "aids_death",
    "scikit-survival, load_aids",
    "death",
    "days",
    (1151, 11, 26),
    (1151, 11, 91.7),
    dropped="the outcome columns of aids",
    note="the paper prints the censoring of aids (91.7) for both endpoints",
)
def load_aids_death(variant: str | None) -> SurvivalData:
    """AIDS Clinical Trials Group study 320, second endpoint (Hosmer and Lemeshow)."""
    return _from_sksurv("aids_death", "load_aids", endpoint="death")


@dataset(
    "aids2",
    "SurvSet, Aids2 (R: MASS)",
    "death",
    "days",
    (2839, 4, 1761),
    (2839, 4, 38.0),
    zero_times=29,
    dropped="the dates of diagnosis and death (left out by SurvSet)",
)
def load_aids2(variant: str | None) -> SurvivalData:
    """Patients diagnosed with AIDS in Australia before July 1991 (Ripley and Solomon 1994)."""
    return as_data("aids2", from_survset("Aids2"), "time", "event")


@dataset(
    "churn",
    "PySurvival, churn.csv",
    "subscription cancelled",
    "months",
    (2000, 12, 932),
    (2000, 12, 53.4),
    zero_times=42,
)
def load_churn(variant: str | None) -> SurvivalData:
    """Customers of a software service (Fotso et al. 2019)."""
    return as_data("churn", from_csv(sources.CHURN), "months_active", "churned")


@dataset(
    "credit",
    "PySurvival, credit_risk.csv (UCI German credit)",
    "loan repaid in full",
    "months",
    (1000, 19, 700),
    (1000, 19, 30.0),
)
def load_credit(variant: str | None) -> SurvivalData:
    """Loans and their repayment (Fotso et al. 2019). The text "None" is a level, not a missing value."""
    frame = from_csv(sources.CREDIT, keep_default_na=False)
    return as_data("credit", frame, "duration", "full_repaid")


@dataset(
    "dialysis",
    "SurvSet, Dialysis (R: RcmdrPlugin.survival)",
    "death",
    "months",
    (6805, 4, 1603),
    (6805, 4, 76.4),
)
def load_dialysis(variant: str | None) -> SurvivalData:
    """Dialysis patients in Rio de Janeiro (Sa Carvalho et al. 2003)."""
    return as_data("dialysis", from_survset("Dialysis"), "time", "event")


@dataset(
    "employee",
    "PySurvival, employee_attrition.csv",
    "employee left",
    "years",
    (11991, 8, 1991),
    (11992, 7, 77.2),
    dropped="3008 exact duplicate rows, which would be shared by training and test parts",
    note="the paper prints one row more, and 77.2 where the file has 76.2 with and 83.4 without duplicates; "
    "its 7 features are those that PySurvival's tutorial lists, without promotion_last_5years",
    variants=("raw",),
)
def load_employee(variant: str | None) -> SurvivalData:
    """Employees and their leaving (Fotso et al. 2019), duplicates removed as in PySurvival's tutorial."""
    frame = from_csv(sources.EMPLOYEE)
    if variant != "raw":
        frame = frame.drop_duplicates(ignore_index=True)
    if variant == "paper":
        frame = frame.drop(columns="promotion_last_5years")
    return as_data("employee", frame, "time_spend_company", "left")


@dataset(
    "flchain",
    "scikit-survival, load_flchain",
    "death",
    "days",
    (7874, 8, 2169),
    (7478, 9, 72.5),
    zero_times=3,
    dropped="chapter, the cause of death: missing for the living, so it gives the event away",
    note="the paper keeps chapter, and prints 7478 for the table's 7874 rows",
)
def load_flchain(variant: str | None) -> SurvivalData:
    """Serum free light chains and survival (Dispenzieri et al. 2012).

    ``chapter``, the cause of death, is excluded unless ``variant="paper"``: it is missing exactly where
    the subject is alive.
    """
    return _from_sksurv("flchain", "load_flchain", drop=() if variant == "paper" else ("chapter",))


@dataset(
    "framingham",
    "SurvSet, Framingham",
    "coronary heart disease",
    "days",
    (4699, 7, 1473),
    (4658, 7, 68.5),
    note="the paper's 4658 rows are those without a missing value; here 41 rows with one are kept",
)
def load_framingham(variant: str | None) -> SurvivalData:
    """Framingham Heart Study (Mahmood et al. 2014)."""
    frame = from_survset("Framingham")
    if variant == "paper":
        frame = frame.dropna(ignore_index=True)
    return as_data("framingham", frame, "time", "event")


@dataset(
    "gbsg2",
    "scikit-survival, load_gbsg2",
    "recurrence or death",
    "days",
    (686, 8, 299),
    (686, 8, 56.4),
)
def load_gbsg2(variant: str | None) -> SurvivalData:
    """German Breast Cancer Study Group 2 (Schumacher et al. 1994)."""
    return _from_sksurv("gbsg2", "load_gbsg2")


@dataset(
    "maintenance",
    "PySurvival, maintenance.csv",
    "machine broken",
    "weeks",
    (1000, 5, 397),
    (1000, 5, 60.3),
)
def load_maintenance(variant: str | None) -> SurvivalData:
    """Machines and their failure (Fotso et al. 2019)."""
    return as_data("maintenance", from_csv(sources.MAINTENANCE, sep=";"), "lifetime", "broken")


@dataset(
    "uissurv",
    "SurvSet, uis (Hosmer and Lemeshow)",
    "return to drug use",
    "days",
    (628, 8, 508),
    (628, 12, 19.1),
    dropped="los, days in treatment, known only afterwards (left out by SurvSet)",
    note="the paper's 12 counts all columns of the file: 8 features, los, id, time and event; "
    "without los its harrell_c of 0.74 is out of reach (Cox 0.60), and SurvSet has none to offer",
)
def load_uissurv(variant: str | None) -> SurvivalData:
    """UMASS AIDS Research Unit IMPACT study (Hosmer and Lemeshow)."""
    return as_data("uissurv", from_survset("uis"), "time", "event")


@dataset(
    "unempdur",
    "SurvSet, UnempDur (R: Ecdat)",
    "re-employed in a full-time job",
    "two weeks",
    (3241, 6, 1986),
    (3241, 6, 38.7),
    dropped="indicators of other ways out of unemployment (left out by SurvSet)",
)
def load_unempdur(variant: str | None) -> SurvivalData:
    """Unemployment duration and insurance (McCall 1996)."""
    return as_data("unempdur", from_survset("UnempDur"), "time", "event")


@dataset(
    "unemployment",
    "SurvSet, Unemployment (R: Ecdat)",
    "spell of unemployment ended",
    "weeks",
    (452, 4, 256),
    (452, 7, 56.6),
    zero_times=2,
    dropped="sex from the features: it is the sensitive group",
    note="the paper's 7 counts 5 features with time and event, and its 56.6 is the share of events; "
    "81 rows repeat another one and are kept, since few features take few values",
)
def load_unemployment(variant: str | None) -> SurvivalData:
    """Job search in the Current Population Survey, late 1993 (Romeo 1999), with ``group`` = sex."""
    return as_data("unemployment", from_survset("Unemployment"), "time", "event", group="sex")


@dataset(
    "veterans",
    "scikit-survival, load_veterans_lung_cancer",
    "death",
    "days",
    (137, 6, 128),
    (137, 6, 6.6),
)
def load_veterans(variant: str | None) -> SurvivalData:
    """Veterans' Administration lung cancer trial (Kalbfleisch and Prentice 2002)."""
    return _from_sksurv("veterans", "load_veterans_lung_cancer")


@dataset(
    "whas500",
    "scikit-survival, load_whas500",
    "death",
    "days",
    (500, 13, 215),
    (500, 14, 57.0),
    dropped="los, the length of the hospital stay: equal to the time of the 40 who died in hospital",
    note="the paper keeps los",
)
def load_whas500(variant: str | None) -> SurvivalData:
    """Worcester Heart Attack Study (Hosmer and Lemeshow).

    ``los``, days from admission to discharge or death, is not known at time zero and is excluded unless
    ``variant="paper"``.
    """
    return _from_sksurv("whas500", "load_whas500", drop=() if variant == "paper" else ("los",))
