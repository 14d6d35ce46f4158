"""The synthetic data of the SurTree paper (Huisman et al. 2024, section 5 and Appendix C)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

TREE_DEPTH = 5
EXPONENTIAL = (0.3, 0.4, 0.6, 0.8, 0.9, 1.15, 1.5, 1.8)
WEIBULL = ((0.8, 0.4), (0.9, 0.5), (0.9, 0.7), (0.9, 1.1), (0.9, 1.5), (1.0, 1.1), (1.0, 1.9), (1.3, 0.5))
LOGNORMAL = ((0.1, 1.0), (0.2, 0.75), (0.3, 0.3), (0.3, 0.5), (0.3, 0.8), (0.4, 0.32), (0.5, 0.3), (0.5, 0.7))
GAMMA = ((0.2, 0.75), (0.3, 1.3), (0.3, 2.0), (0.5, 1.5), (0.8, 1.0), (0.9, 1.3), (1.3, 0.9), (1.5, 0.7))


@dataclass(frozen=True)
class Node:
    """A split of the ground-truth tree, or a leaf with its distribution."""

    column: str = ""
    value: object = None
    children: tuple[Node, Node] | None = None
    law: tuple[str, tuple[float, ...]] = ("", ())


def features(rng: np.random.Generator, n: int, copies: int = 1) -> pd.DataFrame:
    """Three continuous, one binary, two categorical features with three and five levels, all uniform."""
    columns: dict[str, np.ndarray] = {}
    for c in range(copies):
        columns |= {f"x{c}{k}": rng.random(n) for k in range(3)}
        columns[f"b{c}"] = rng.integers(0, 2, n)
        columns |= {f"c{c}{m}": rng.integers(0, m, n).astype(str) for m in (3, 5)}
    return pd.DataFrame(columns)


def ground_truth(rng: np.random.Generator, table: pd.DataFrame, depth: int = TREE_DEPTH) -> Node:
    """A random tree: random features, random thresholds and levels, a random distribution in every leaf."""
    if depth == 0:
        return Node(law=_law(rng))
    column = str(rng.choice(table.columns))
    if column.startswith("x"):
        value: object = float(rng.random())
    else:
        value = rng.choice(np.unique(table[column]))
    return Node(column, value, (ground_truth(rng, table, depth - 1), ground_truth(rng, table, depth - 1)))


def _law(rng: np.random.Generator) -> tuple[str, tuple[float, ...]]:
    kind = str(rng.choice(["exponential", "weibull", "lognormal", "gamma"]))
    choices = {"exponential": [(v,) for v in EXPONENTIAL], "weibull": WEIBULL, "lognormal": LOGNORMAL, "gamma": GAMMA}
    options = choices[kind]
    return kind, tuple(options[int(rng.integers(len(options)))])


def _draw(rng: np.random.Generator, law: tuple[str, tuple[float, ...]], n: int) -> np.ndarray:
    kind, p = law
    if kind == "exponential":
        return rng.exponential(1.0 / p[0], n)  # the paper's lambda is a rate
    if kind == "weibull":
        return p[1] * rng.weibull(p[0], n)
    if kind == "lognormal":
        return rng.lognormal(p[0], np.sqrt(p[1]), n)
    return rng.gamma(p[0], p[1], n)


def event_times(rng: np.random.Generator, node: Node, table: pd.DataFrame) -> np.ndarray:
    """Time to event of each row, from the distribution of its leaf."""
    times = np.empty(len(table))

    def descend(here: Node, rows: np.ndarray) -> None:
        if here.children is None:
            times[rows] = _draw(rng, here.law, len(rows))
            return
        values = table[here.column].to_numpy()[rows]
        left = values <= here.value if here.column.startswith("x") else values == here.value
        descend(here.children[0], rows[left])
        descend(here.children[1], rows[~left])

    descend(node, np.arange(len(table)))
    return times


def censor(times: np.ndarray, u: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray, float]:
    """(time, event, k): censored at k (1 - u^2), k the least value that censors at most this share."""
    ratio = np.sort(times / (1.0 - u**2))[::-1]  # a row is censored where k is below its ratio
    k = ratio[int(share * len(times))]
    limit = k * (1.0 - u**2)
    event = times <= limit
    return np.where(event, times, limit), event, float(k)


def synthetic(n: int, share: float, seed: int, copies: int = 1, n_test: int = 50_000) -> tuple[tuple, tuple]:
    """Training and test set (features, event, time) of one ground-truth tree; the test set shares k."""
    rng = np.random.default_rng([seed, n, round(100 * share), copies])
    table = features(rng, n, copies)
    tree = ground_truth(rng, table)
    time, event, k = censor(event_times(rng, tree, table), rng.random(n), share)
    test = features(rng, n_test, copies)
    test_time = event_times(rng, tree, test)
    limit = k * (1.0 - rng.random(n_test) ** 2)
    return (table, event, time), (test, test_time <= limit, np.minimum(test_time, limit))
