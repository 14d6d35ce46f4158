"""Data sets of event histories: competing causes, covariates that change, events that recur.

They are tables of R's package survival, written out as csv files into the folder ``event-history`` of the folder that
``SOFTSURV_DATA`` names. To add one, see `softsurv.data.catalogue`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from softsurv.data.catalogue import dataset
from softsurv.data.sources import as_history, from_csv, of_folder

if TYPE_CHECKING:
    from softsurv.data.survival_data import SurvivalData

_FOLDER = "event-history"
MGUS2 = of_folder(_FOLDER, "mgus2.csv", "e60243755d8a020194918d9b3dab30509a64494d93b0a4d8da2768d36be466f1")
PBC = of_folder(_FOLDER, "pbc_transplant.csv", "6930f53aeb7eee4ef549d8e614442c80c83c90472ad538170ddb12af55326f0b")
PBCSEQ = of_folder(_FOLDER, "pbcseq.csv", "b5dea1f38869335574d6c24913e9f1fb71c21f01bdb3096e503da8f0e364987c")
HEART = of_folder(_FOLDER, "heart_transplant.csv", "1d64bd4aa26343a8039afc7128224b47570e209f172aec1336ee1b5bcb4a5953")
CGD = of_folder(_FOLDER, "cgd_recurrent.csv", "d891002184f4610d4d9731951152db9efaa72a08fffa68bf47881bb0f0a6d8e8")


@dataset(
    "mgus2",
    "R: survival, mgus2",
    "malignancy; death without it",
    "months",
    (1384, 5, 975),
)
def load_mgus2(variant: str | None) -> SurvivalData:
    """Monoclonal gammopathy of undetermined significance (Kyle et al. 2002), with two competing causes."""
    return as_history("mgus2", from_csv(MGUS2), time="etime", cause="cause", cause_names=("malignancy", "death"))


@dataset(
    "pbc_transplant",
    "R: survival, pbc",
    "liver transplant; death without it",
    "days",
    (418, 17, 186),
)
def load_pbc_transplant(variant: str | None) -> SurvivalData:
    """Primary biliary cholangitis (Fleming and Harrington 1991), with transplant and death as competing causes."""
    return as_history("pbc_transplant", from_csv(PBC), time="time", cause="status", cause_names=("transplant", "death"))


@dataset(
    "pbcseq",
    "R: survival, pbcseq",
    "liver transplant; death without it",
    "days",
    (1945, 15, 169),
    dropped="which values are missing at a later visit: most are so at the last visits before death alone",
    note="a value that is missing at a visit is that of the visit before",
    variants=("raw",),
)
def load_pbcseq(variant: str | None) -> SurvivalData:
    """The 312 patients of the trial of `load_pbc_transplant` with the laboratory values of every visit as rows."""
    frame = from_csv(PBCSEQ)
    if variant != "raw":
        frame = frame.assign(**frame.groupby("id").ffill())
    outcome = {"start": "start", "stop": "stop", "cause": "cause", "id": "id"}
    return as_history("pbcseq", frame, **outcome, cause_names=("transplant", "death"))


@dataset(
    "heart_transplant",
    "R: survival, heart",
    "death",
    "days",
    (172, 4, 75),
    note="age is years above 48, year is years since November 1967",
)
def load_heart_transplant(variant: str | None) -> SurvivalData:
    """Stanford heart transplants (Crowley and Hu 1977): ``transplant`` turns from 0 to 1 within 69 of 103 patients."""
    return as_history("heart_transplant", from_csv(HEART), start="start", stop="stop", event="event", id="id")


@dataset(
    "cgd",
    "R: survival, cgd",
    "serious infection, which may recur",
    "days",
    (203, 8, 76),
    dropped="enum, the number of the infection: it tells how many came before",
    variants=("raw",),
)
def load_cgd(variant: str | None) -> SurvivalData:
    """Chronic granulomatous disease and gamma interferon (Fleming and Harrington 1991), events that recur."""
    frame = from_csv(CGD)
    frame = frame if variant == "raw" else frame.drop(columns="enum")
    return as_history("cgd", frame, start="tstart", stop="tstop", event="status", id="id", recurrent=True)
