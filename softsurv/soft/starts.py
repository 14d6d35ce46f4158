"""Starts: random, k-means (paper `sst`, Appendix C.0.1), greedy log-rank tree, and given hard trees."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softsurv.arrays import BoolArray, FloatArray
from softsurv.data.blocks import over_rows
from softsurv.data.survival_data import SurvivalData
from softsurv.data.threads import MANY_CELLS
from softsurv.errors import InvalidParameterError, need_docstrings
from softsurv.nonparametric import as_exact
from softsurv.soft.parallel import unless_stopped
from softsurv.stopping import StopSignal
from softsurv.trees.topology import n_branches, n_leaves

STARTS = ("random", "kmeans", "logrank")
"""Kinds of starts by name."""

KMEANS_REPEATS = 5
"""Clusterings tried for each start; the best by the Davies-Bouldin index is taken."""

TIED = 1e-9
"""Share by which an index must be lower to count as better: clusterings that differ in names alone are equal."""

CLASS_STRENGTH = 10.0
"""C of the logistic regressions that follow from a clustering."""

LOGRANK_RATE = 5e7
"""Squared rows times columns that the log-rank tree works through in a second on one slow core."""

MOST_SECONDS = 20.0
"""Most such seconds that a log-rank tree may take: they grow with the square of the rows, to hours with 200,000. It
uses 5,000 rows of 40 columns, 10,000 of 10."""

KMEANS_RATE = 4e5
"""Cells of a table that one k-means start works through in a second on one slow core."""

LEAST_ROWS = 50
"""Least rows of a log-rank tree or a clustering: with fewer, the proposed splits are noise."""

SHARPNESS = 8.0
"""Slope of a soft split made from a hard one, per standard deviation of the feature: 98 % certain at half of one."""


def presumed_outcomes(data: SurvivalData) -> tuple[FloatArray, BoolArray]:
    """Time and event of each row (N,) for starts that know exact times only: intervals as events at their middle."""
    return as_exact(data.time, data.event, data.upper, 0.5)


def counted_events(data: SurvivalData, counts: Sequence[float] | None) -> SurvivalData:
    """The rows with the events of the causes that count, as one kind of event; unchanged where every cause counts."""
    if data.cause is None or counts is None or all(counts):
        return data
    counted = np.append(False, np.asarray(counts) > 0)[data.cause.cpu().numpy()]
    return data._derive({"event": torch.as_tensor(counted), "cause": None, "cause_names": ()})


def start_routing(
    starts: Sequence[str | FloatArray],  # kind of each start, or its weights (B, P + 1)
    data: SurvivalData,
    depth: int,
    seeds: Sequence[int],
    seconds: float | None = None,
    budget: StopSignal | None = None,
) -> Tensor:  # (S, B, P + 1)
    """Routing weights of each start, proposed by the training rows.

    ``seconds`` limits each log-rank tree, and all clusterings together. If they are few, only a random part of the rows
    proposes the splits. Once the ``budget`` is exhausted, the other starts are random.
    """
    tables = [torch.zeros(0, n_branches(depth), data.x.shape[1] + 1, dtype=torch.float64)]
    kinds = [start if isinstance(start, str) else "" for start in starts]
    each = None if seconds is None else seconds / max(kinds.count("kmeans"), 1)
    at_random = [seed for kind, seed in zip(kinds, seeds, strict=True) if kind == "random"]
    random = iter(random_routing(data.x.numpy(), depth, at_random) if at_random else ())
    for start, kind, seed in zip(starts, kinds, seeds, strict=True):
        time = each if kind == "kmeans" else seconds
        late = kind == "kmeans" and budget is not None and budget.exhausted
        one = "random" if late else start
        tables.append(next(random)[None] if kind == "random" else _one_start(one, data, depth, seed, time, budget))
    return torch.cat(tables)


def _one_start(
    start: str | FloatArray, data: SurvivalData, depth: int, seed: int, seconds: float | None, budget: StopSignal | None
) -> Tensor:  # (1, B, P + 1)
    """Routing weights of one start; a random one where a log-rank tree was stopped."""
    if not isinstance(start, str):
        return torch.as_tensor(start)[None]
    x = data.x.numpy()
    if start == "random":
        return random_routing(x, depth, [seed])
    if start == "kmeans":
        most = len(x) if seconds is None else max(int(seconds * KMEANS_RATE / max(x.shape[1], 1)), LEAST_ROWS)
        proposing = x if most >= len(x) else x[np.random.default_rng(seed).permutation(len(x))[:most]]
        return kmeans_routing(proposing, depth, [seed], budget=budget)
    if start == "logrank":
        time, event = presumed_outcomes(data)
        some = rows_in_time(len(x), x.shape[1], seconds)
        found = unless_stopped(partial(logrank_routing, x, time, event, depth, some), budget)
        return random_routing(x, depth, [seed]) if found is None else torch.as_tensor(found)[None]
    raise InvalidParameterError(f"init must be one of {', '.join(STARTS)}, got {start!r}")


@dataclass(frozen=True)
class TrainingRows:
    """Rows on which many settings are trained, with the starts that the rows have proposed so far.

    A start depends on its kind, the depth and its seed; a log-rank tree on the causes that count, not on a seed.
    Penalties and leaf family have no influence. A study asks for the same few starts again and again, and a k-means
    start costs as much as several fits.

    Attributes
    ----------
    data : SurvivalData
        With numeric, complete features.
    """

    data: SurvivalData
    _known: dict[Hashable, Tensor] = field(default_factory=dict, repr=False, compare=False)

    def start_routing(
        self, starts: Sequence[str], depth: int, seeds: Sequence[int], counts: Sequence[float] | None = None
    ) -> Tensor:  # (S, B, P + 1)
        """The same as the function of that name, each start computed once; ``counts`` are the factors of the causes."""
        proposing = counted_events(self.data, counts)
        tables = [torch.zeros(0, n_branches(depth), self.data.x.shape[1] + 1, dtype=torch.float64)]
        for start, seed in zip(starts, seeds, strict=True):
            make = partial(_one_start, start, proposing, depth, seed, None, None)
            tables.append(self.known(start_key(start, depth, seed, counts), make))
        return torch.cat(tables)

    def knows(self, key: Hashable) -> bool:
        """Whether the start of this key has been proposed."""
        return key in self._known

    def known(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """The start of this key, which ``make`` proposes where nothing has yet."""
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]


def start_key(start: str, depth: int, seed: int, counts: Sequence[float] | None) -> tuple[Hashable, ...]:
    """What a start depends on beside the rows: a log-rank tree draws nothing."""
    return start, depth, tuple(count > 0 for count in counts or ()) if start == "logrank" else seed


def rows_in_time(n: int, columns: int, seconds: float | None) -> FloatArray | None:
    """Mask (N,) of as many random rows as a log-rank tree can use in that time; None where it can use all."""
    seconds = MOST_SECONDS if seconds is None else min(seconds, MOST_SECONDS)
    most = int((seconds * LOGRANK_RATE / max(columns, 1)) ** 0.5)
    if most >= n:
        return None
    chosen = np.random.default_rng(0).permutation(n)[: max(most, LEAST_ROWS)]
    return np.bincount(chosen, minlength=n).astype(float)


def random_routing(
    x: FloatArray,  # (N, P)
    depth: int,
    seeds: Sequence[int],
    spread: float = 1.0,
) -> Tensor:  # (M, B, P + 1)
    """Random directions; each cuts midway between the mean and a random row, so that it divides the data."""
    n, p = x.shape
    scale, middle = (_of_columns(x, what) for what in (np.std, np.mean)) if p else (np.zeros(0), np.zeros(0))
    scale = np.where(scale > 0, scale, 1.0) * np.sqrt(max(p, 1))
    tables = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        weights = spread * rng.standard_normal((n_branches(depth), p)) / scale
        centre = 0.5 * (middle + x[rng.integers(0, n, n_branches(depth))]) if p else np.zeros((len(weights), 0))
        offset = -(weights * centre).sum(1, keepdims=True) if p else rng.standard_normal((len(weights), 1))
        tables.append(np.hstack([offset, weights]))
    return torch.as_tensor(np.stack(tables))


def _of_columns(x: FloatArray, what: Callable[..., FloatArray]) -> FloatArray:
    """Mean or standard deviation of each column (P,); of a large table whose columns lie apart in threads."""
    if x.size >= MANY_CELLS and x.flags.f_contiguous:
        return over_rows(lambda some: what(some, 1), x.T)
    return np.asarray(what(x, 0))


def kmeans_routing(
    x: FloatArray,  # (N, P)
    depth: int,
    seeds: Sequence[int],
    repeats: int = KMEANS_REPEATS,
    budget: StopSignal | None = None,
) -> Tensor:  # (M, B, P + 1)
    """Two-means clusterings from the root down, best of those in time by the Davies-Bouldin index of the leaves."""
    from sklearn.metrics import davies_bouldin_score

    tables = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        best, best_score = None, np.inf
        for _ in range(repeats):
            if best is not None and budget is not None and budget.exhausted:
                break
            labels = _cluster(x, depth, node_seeds(depth, rng))
            used = np.unique(labels)
            score = davies_bouldin_score(x, labels) if 1 < len(used) < len(x) else np.inf
            if best is None or score < best_score * (1 - TIED):
                best, best_score = labels, score
        assert best is not None
        tables.append(routing_from_labels(x, best, depth))
    return torch.as_tensor(np.stack(tables))


def routing_from_labels(
    x: FloatArray,  # (N, P)
    labels: NDArray[np.intp],  # (N,) leaf of each row
    depth: int,
) -> FloatArray:  # (B, P + 1)
    """Logistic regressions that route each row towards its leaf; a node without two classes keeps zero weights."""
    from sklearn.linear_model import LogisticRegression

    table = np.zeros((n_branches(depth), x.shape[1] + 1))
    for node in range(n_branches(depth)):
        level = (node + 1).bit_length() - 1
        position = node - (2**level - 1)
        here = labels >> (depth - level) == position
        left = (labels >> (depth - level - 1)) % 2 == 0
        if here.any() and len(np.unique(left[here])) == 2:
            model = LogisticRegression(C=CLASS_STRENGTH, max_iter=200).fit(x[here], left[here])
            table[node] = np.concatenate([model.intercept_, model.coef_[0]])
    return table


def logrank_routing(
    x: FloatArray,  # (N, P)
    time: FloatArray,
    event: BoolArray,
    depth: int,
    weight: FloatArray | None = None,  # (N,) rows of weight zero are left out
) -> FloatArray:  # (B, P + 1)
    """Splits of scikit-survival's log-rank tree, made soft; nodes that it does not split send all rows left."""
    need_docstrings()
    from sksurv.tree import SurvivalTree
    from sksurv.util import Surv

    rows = np.ones(len(x), dtype=bool) if weight is None else weight > 0
    table = np.zeros((n_branches(depth), x.shape[1] + 1))
    if depth == 0 or x.shape[1] == 0 or not event[rows].any():
        return table
    smallest = smallest_side(int(rows.sum()))
    greedy = SurvivalTree(max_depth=depth, min_samples_leaf=smallest, low_memory=True, random_state=0)
    greedy.fit(x[rows].astype(np.float32), Surv.from_arrays(event[rows], time[rows]))
    tree = greedy.tree_
    feature = np.full(n_branches(depth), -1)
    threshold = np.zeros(n_branches(depth))
    stack = [(0, 0)]
    while stack:
        source, node = stack.pop()
        if node >= len(feature) or tree.children_left[source] < 0:
            continue
        feature[node], threshold[node] = tree.feature[source], tree.threshold[source]
        stack += [(tree.children_left[source], 2 * node + 1), (tree.children_right[source], 2 * node + 2)]
    return soft_splits(x[rows], feature, threshold)


def smallest_side(n: int) -> int:
    """Least rows on either side of a split of a log-rank tree of n rows."""
    return max(5, int(0.05 * n))


def soft_splits(
    x: FloatArray,  # (N, P)
    feature: NDArray[np.intp],  # (B,) -1 where the node does not split
    threshold: FloatArray,  # (B,) x <= threshold goes left
    sharpness: float = SHARPNESS,
) -> FloatArray:  # (B, P + 1)
    """Routing weights that reproduce hard splits, midway between the two neighbouring values."""
    table = np.zeros((len(feature), x.shape[1] + 1))
    for node, (column, cut) in enumerate(zip(feature, threshold, strict=True)):
        if column < 0:
            table[node, 0] = sharpness  # everything goes left
            continue
        values = x[:, column]
        below, above = values[values <= cut], values[values > cut]
        if not len(below) or not len(above):  # all rows on one side: rounding would decide at the cut
            table[node, 0] = sharpness if len(below) else -sharpness
            continue
        middle = 0.5 * (below.max() + above.min())
        slope = sharpness / max(values.std(), 1e-12)
        table[node, column + 1], table[node, 0] = -slope, slope * middle
    return table


def initial_leaves(
    single: Tensor,  # (M, 1, Q + K) single-leaf fit
    depth: int,
    seeds: Sequence[int],
    spread: float = 0.1,
    columns: Sequence[int] | None = None,  # of each tree; the rest of the Q columns is padding
    n_causes: int = 1,
) -> Tensor:  # (M, L, Q + K), with causes (M, L, C (Q + K))
    """Leaves at the single-leaf fit plus noise.

    The noise of a tree is drawn as if the padding were not there.
    """
    leaves = single.expand(-1, n_leaves(depth), -1).clone()
    noise = np.zeros((*leaves.shape[:2], n_causes, leaves.shape[-1] // n_causes))
    size = noise.shape[-1]
    for tree, seed in enumerate(seeds):
        padding = 0 if columns is None else max(columns) - columns[tree]
        drawn = np.random.default_rng([seed, 1]).standard_normal((leaves.shape[1], n_causes, size - padding))
        own = size if columns is None else columns[tree]
        noise[tree, ..., :own] = drawn[..., :own]
        noise[tree, ..., own + padding :] = drawn[..., own:]
    return leaves + spread * torch.as_tensor(noise).flatten(2).to(leaves)


def node_seeds(depth: int, rng: np.random.Generator) -> list[int]:
    """A seed for each node of a clustering, in heap order."""
    return [int(rng.integers(2**31 - 1)) for _ in range(n_branches(depth))]


def _cluster(x: FloatArray, depth: int, seeds: Sequence[int]) -> NDArray[np.intp]:
    """Leaf labels by recursive two-means clustering, with a seed for each node."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    labels = np.zeros(len(x), dtype=np.intp)
    for level in range(depth):
        for position in range(2**level):
            rows = np.flatnonzero(labels == position)
            side = np.zeros(len(rows), dtype=np.intp)
            if len(rows) >= 2 and x.shape[1]:
                with warnings.catch_warnings():
                    # fewer distinct rows than clusters: one child stays empty, as it must
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    seed = seeds[2**level - 1 + position]
                    side = KMeans(2, n_init=1, random_state=seed).fit_predict(x[rows]).astype(np.intp)
            labels[rows] = 2 * position + side
            labels[rows] += 2**depth  # parked above this level's positions until the level is done
        labels -= 2**depth
    return labels
