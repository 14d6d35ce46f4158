"""Soft trees of one rule, for tests of how rules are written."""

import numpy as np
import torch
from oracles.encoded import COLUMNS

from softsurv.data.encoding import OutputColumn
from softsurv.hazards import get_family
from softsurv.trees.soft_tree import SoftTree


def stump(rule, columns=COLUMNS):
    """A tree of one rule."""
    tree = SoftTree(1, len(columns), get_family("exponential"))
    tree.rules = (rule,)
    with torch.no_grad():
        tree.routing[0, 0] = torch.as_tensor(rule.routing(columns, 1.0))
    return tree


def dense_stump(n_features):
    """A tree of one dense split, its columns, and 20 rows (20, n_features)."""
    rng = np.random.default_rng(0)
    columns = [OutputColumn(f"x{k}", f"x{k}", "number") for k in range(n_features)]
    tree, x = SoftTree(1, len(columns), get_family("exponential")), rng.normal(size=(20, len(columns)))
    with torch.no_grad():
        tree.routing[0, 0] = torch.from_numpy(rng.normal(size=len(columns) + 1))
    return tree, columns, x
