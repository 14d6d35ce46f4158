"""Branch nodes with classes to part by logistic regression."""

import numpy as np
import torch


def nodes(seed, m=2, s=2, n=120, q=4):
    rng = np.random.default_rng(seed)
    design = torch.as_tensor(np.concatenate([np.ones((1, n, 1)), rng.random((1, n, q - 1))], -1))
    mass = torch.as_tensor(np.where(rng.random((m, s, n)) < 0.8, rng.random((m, s, n)), 0.0))
    labels = torch.as_tensor((rng.random((m, s, n)) < 0.3).astype(float))
    return design, mass, labels
