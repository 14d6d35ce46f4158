"""The real data of bench_survset.py."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from _sst_printed import SETS as PAPER_SETS

from softsurv import SurvivalData, load_dataset
from softsurv.data.readers import survival_data

# fmt: off
NEW_SETS = [
    "actg", "rdata", "LeukSurv", "grace", "follic", "ova", "retinopathy", "Pbc3", "cancer", "mgus", "dataDIVAT1",
    "dataDIVAT3", "burn", "nki70", "support2",
]
DEVELOPMENT_SETS = [
    "e1684", "prostate", "Melanoma", "d.oropha.rec", "zinc", "stagec", "pharmacoSmoking", "hepatoCellular", "wpbc",
    "vlbw", "colon", "cost",
]
GENE_SETS = ["AML_Bull", "DLBCL", "MCLcleaned", "gse1992", "gse4335"]
GENE_DEVELOPMENT_SETS = ["DBCD", "NSBCD", "chop", "gse3143", "vdv"]
LARGE_SETS = ["nwtco", "TRACE", "smarto", "hdfail", "acath", "prostateSurvival", "divorce", "oldmort", "rhc"]
# fmt: on
RARE_SETS = [f"{name}_{draw}" for name in LARGE_SETS for draw in range(3)]
COLLECTIONS = {
    "new": NEW_SETS,
    "paper": PAPER_SETS,
    "development": DEVELOPMENT_SETS,
    "genes": GENE_SETS,
    "genes_development": GENE_DEVELOPMENT_SETS,
    "large": LARGE_SETS,
    "rare": RARE_SETS,
}
RARE_ROWS, RARE_EVENTS = 1000, 30
"""Rows and events of a draw from a large set."""


@lru_cache(maxsize=2)
def load(collection: str, name: str) -> SurvivalData:
    """A set of a collection."""
    if collection == "paper":
        return load_dataset(name)
    if collection == "rare":
        return load_rare(*name.split("_"))
    return load_follic() if name == "follic" else load_dataset(f"survset:{name}")


def load_follic() -> SurvivalData:
    """Follicular lymphoma, time to relapse or no response; death without it, coded 2, counts as censored."""
    from SurvSet.data import SurvLoader

    frame = SurvLoader().load_dataset("follic")["df"].drop(columns="pid").reset_index(drop=True)
    return survival_data(frame.assign(event=frame["event"] == 1), time="time", event="event", name="survset:follic")


def load_rare(name: str, draw: str) -> SurvivalData:
    """Rows of a large set, drawn so that few of them have the event."""
    data, rng = load("large", name), np.random.default_rng(int(draw))
    event = data.event.numpy()
    counts = {True: RARE_EVENTS, False: RARE_ROWS - RARE_EVENTS}
    kept = [rng.choice(np.flatnonzero(event == one), count, replace=False) for one, count in counts.items()]
    return data.take(np.sort(np.concatenate(kept)))
