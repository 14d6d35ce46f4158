"""Soft trees of one rule, for tests of how rules are written."""

import torch
from oracles.encoded import COLUMNS

from softsurv.hazards import get_family
from softsurv.trees.soft_tree import SoftTree


def stump(rule, columns=COLUMNS):
    """A tree of one rule."""
    tree = SoftTree(1, len(columns), get_family("exponential"))
    tree.rules = (rule,)
    with torch.no_grad():
        tree.routing[0, 0] = torch.as_tensor(rule.routing(columns, 1.0))
    return tree
