"""A fitted soft tree as one value: what a fit, a streamed fit and a saved model have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from softsurv.data.preprocess import Preprocessor
from softsurv.hazards import get_family
from softsurv.results import FitReport
from softsurv.soft.recipe import Candidate
from softsurv.trees.leaf_table import LeafTable
from softsurv.trees.linear_rule import LinearRule
from softsurv.trees.soft_tree import SoftTree

OPTIONAL = ("centre", "split_sizes", "covariance")
"""Arrays that models of earlier versions and streamed fits may lack."""


@dataclass(frozen=True)
class FittedSoftTree:
    """A tree with all that is needed to predict, read and save it.

    Attributes
    ----------
    tree : SoftTree
        A stack of one.
    candidate : Candidate
        Depth, family and penalties used.
    report : FitReport
    leaf_table : LeafTable
        The training rows in each leaf.
    spread : ndarray (P,)
        Standard deviation of each encoded feature.
    time_floor : float
        What stands for time 0.
    preprocessor : Preprocessor or None
        What encodes raw features.
    tried : list of dict
        What inner validation tried, best first.
    centre : ndarray (P,), optional
        Mean of each encoded feature.
    split_sizes : ndarray (B,), optional
        How much each split changes what is predicted (see `softsurv.trees.split_effects`).
    covariance : ndarray (L, P + 1 + K, P + 1 + K), optional
        Of the parameters of each leaf that rows reach, given the rules.
    """

    tree: SoftTree
    candidate: Candidate
    report: FitReport
    leaf_table: LeafTable
    spread: NDArray[np.float64]
    time_floor: float
    preprocessor: Preprocessor | None = None
    tried: list[dict[str, Any]] = field(default_factory=list)
    centre: NDArray[np.float64] | None = None
    split_sizes: NDArray[np.float64] | None = None
    covariance: NDArray[np.float64] | None = None

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays, and plain values for JSON."""
        family = self.tree.family
        tensors = {f"tree.{k}": v.detach().cpu().numpy() for k, v in self.tree.state_dict().items()}
        leaf_arrays, leaf_meta = self.leaf_table.state()
        arrays = tensors | {f"leaves.{k}": v for k, v in leaf_arrays.items()} | {"spread": self.spread}
        arrays |= {name: value for name in OPTIONAL if (value := getattr(self, name)) is not None}
        return arrays, {
            "family": family.name,
            "family_settings": family.settings(),
            "depth": self.tree.depth,
            "candidate": vars(self.candidate),
            "preprocessor": None if self.preprocessor is None else self.preprocessor.to_dict(),
            "selection": self.tried,
            "report": self.report.to_dict(),
            "leaves": leaf_meta,
            "time_floor": self.time_floor,
            "rules": [None if rule is None else rule.state() for rule in self.tree.rules],
        }

    @classmethod
    def restored(
        cls, arrays: dict[str, NDArray[Any]], meta: dict[str, Any], device: torch.device, time_floor: float
    ) -> FittedSoftTree:
        """The value whose :meth:`state` was saved; ``time_floor`` is for models that were saved without theirs."""
        tensors = {k.removeprefix("tree."): torch.as_tensor(v) for k, v in arrays.items() if k.startswith("tree.")}
        if "clock" in tensors:  # the name in models of earlier versions
            tensors["time_scale"] = tensors.pop("clock")
        family = get_family(meta["family"], **meta["family_settings"])
        features, dtype = tensors["leaves"].shape[-1] - 1 - family.n_shape, tensors["leaves"].dtype
        tree = SoftTree(meta["depth"], features, family, 1, dtype)
        tree.load_state_dict(tensors)
        tree.rules = tuple(None if rule is None else LinearRule.restore(rule) for rule in meta.get("rules", ()))
        leaf_arrays = {k.removeprefix("leaves."): v for k, v in arrays.items() if k.startswith("leaves.")}
        encoder, table = meta["preprocessor"], LeafTable.restore(leaf_arrays, meta["leaves"])
        if len(table.n) > len(tree.used_leaves):  # earlier versions kept numbers of leaves that no row can reach
            table = table.take(tree.used_leaves)
        return cls(
            tree.to(device),
            Candidate(**meta["candidate"]),
            FitReport.from_dict(meta["report"]),
            table,
            arrays["spread"],
            meta.get("time_floor", time_floor),
            None if encoder is None else Preprocessor.from_dict(encoder),
            meta["selection"],
            *(arrays.get(name) for name in OPTIONAL),
        )
