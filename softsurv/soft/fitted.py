"""A fitted soft tree as one value: what a fit, a streamed fit and a saved model have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from numpy.typing import NDArray

from softsurv.arrays import FloatArray
from softsurv.data.preprocess import Preprocessor
from softsurv.hazards import get_family
from softsurv.hazards.base import LeafFamily
from softsurv.results import FitReport
from softsurv.soft.recipe import Candidate
from softsurv.trees.leaf_table import LeafTable
from softsurv.trees.linear_rule import LinearRule, Rules
from softsurv.trees.soft_tree import SoftTree

OPTIONAL = ("centre", "typical", "split_sizes", "covariance")
"""Arrays that models of earlier versions and streamed models may lack."""


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
        The time that stands for time 0.
    preprocessor : Preprocessor or None
        Encodes raw features.
    tried : list of dict
        Settings that inner validation tried, best first.
    centre : ndarray (P,), optional
        Mean of each encoded feature.
    typical : ndarray (L, P), optional
        Typical row of each leaf (see `softsurv.trees.typical_rows`).
    split_sizes : ndarray (B,), optional
        How much each split changes what is predicted (see `softsurv.trees.split_effects`).
    covariance : ndarray (L, P + 1 + K, P + 1 + K), optional
        Covariance of the parameters of each leaf that rows reach, given the rules.
    causes : tuple of (SoftTree, ndarray or None)
        Where events have causes: for each cause a tree, which differs from ``tree`` in its leaves alone, and the
        covariance of its leaves. ``tree`` and ``covariance`` are those of the first cause.
    """

    tree: SoftTree
    candidate: Candidate
    report: FitReport
    leaf_table: LeafTable
    spread: FloatArray
    time_floor: float
    preprocessor: Preprocessor | None = None
    tried: list[dict[str, Any]] = field(default_factory=list)
    centre: FloatArray | None = None
    split_sizes: FloatArray | None = None
    covariance: FloatArray | None = None
    causes: tuple[tuple[SoftTree, FloatArray | None], ...] = ()
    typical: FloatArray | None = None

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays, and plain values for JSON."""
        family = self.tree.family
        tensors = {f"tree.{k}": v.detach().cpu().numpy() for k, v in self.tree.state_dict().items()}
        leaf_arrays, leaf_meta = self.leaf_table.state()
        arrays = tensors | {f"leaves.{k}": v for k, v in leaf_arrays.items()} | {"spread": self.spread}
        arrays |= {name: value for name in OPTIONAL if (value := getattr(self, name)) is not None}
        for k, (tree, covariance) in enumerate(self.causes[1:], start=1):  # the first cause is the tree itself
            own = {"leaves": tree.leaves, "time_scale": tree.time_scale}
            arrays |= {f"cause.{k}.{name}": value.detach().cpu().numpy() for name, value in own.items()}
            arrays |= {} if covariance is None else {f"cause.{k}.covariance": covariance}
        families = [tree.family for tree, _ in self.causes]
        return arrays, {
            "cause_families": [[family.name, family.settings()] for family in families],
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
        """The value whose :meth:`state` was saved; ``time_floor`` is for models that were saved without one."""
        tensors = {k.removeprefix("tree."): torch.as_tensor(v) for k, v in arrays.items() if k.startswith("tree.")}
        if "clock" in tensors:  # the name in models of earlier versions
            tensors["time_scale"] = tensors.pop("clock")
        if not isinstance(meta["family"], str):
            raise TypeError("a family is stored by its name")
        family = get_family(meta["family"], **meta["family_settings"])
        rules = tuple(None if rule is None else LinearRule.restore(rule) for rule in meta.get("rules", ()))
        tree = _tree(family, meta["depth"], tensors, rules).to(device)
        leaf_arrays = {k.removeprefix("leaves."): v for k, v in arrays.items() if k.startswith("leaves.")}
        encoder, table = meta["preprocessor"], LeafTable.restore(leaf_arrays, meta["leaves"])
        if len(table.n) > len(tree.used_leaves):  # earlier versions kept numbers of leaves that no row can reach
            table = table.take(tree.used_leaves)
        causes = [(tree, arrays.get("covariance"))] if meta.get("cause_families") else []
        for k, (name, settings) in enumerate(meta.get("cause_families", ())[1:], start=1):
            own = {field: torch.as_tensor(arrays[f"cause.{k}.{field}"]) for field in ("leaves", "time_scale")}
            one = _tree(get_family(name, **settings), meta["depth"], tensors | own, rules)
            causes.append((one.to(device), arrays.get(f"cause.{k}.covariance")))
        optional = {name: arrays.get(name) for name in OPTIONAL}
        return cls(
            tree,
            Candidate(**meta["candidate"]),
            FitReport.from_dict(meta["report"]),
            table,
            arrays["spread"],
            meta.get("time_floor", time_floor),
            None if encoder is None else Preprocessor.from_dict(encoder),
            meta["selection"],
            causes=tuple(causes),
            **optional,
        )


def _tree(family: LeafFamily, depth: int, tensors: dict[str, torch.Tensor], rules: Rules) -> SoftTree:
    """A stack of one from its saved tensors."""
    leaves = tensors["leaves"]
    tree = SoftTree(depth, leaves.shape[-1] - 1 - family.n_shape, family, 1, leaves.dtype)
    tree.load_state_dict(tensors)
    tree.rules = rules
    return tree
