"""A soft tree as an ONNX graph that takes raw columns: leaf, routing probabilities and survival on a grid."""

from __future__ import annotations

from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softsurv.clamps import EXP_LIMIT
from softsurv.data.alignment import align_columns
from softsurv.data.encoding import OutputColumn, labels, numbers
from softsurv.data.frames import as_frame, has_names
from softsurv.errors import InvalidParameterError, brought_by
from softsurv.estimators.shared.checks import grid_of
from softsurv.explore.payload import fills_of, lattice_of, leaf_arithmetic
from softsurv.explore.view import TreeView, tree_view
from softsurv.files import replace_file

OPSET = 19
"""The first in which strings can be compared."""


def export_onnx(tree: Any, path: str | PathLike[str], times: ArrayLike | None = None) -> Path:
    """Write a fitted soft tree as an ONNX model.

    Parameters
    ----------
    tree : fitted SoftSurvivalTree
    path : str or path
        File to write.
    times : array_like (T,), optional
        Grid of the survival curves, >= 0; ``unique_times_`` by default.

    Returns
    -------
    Path

    Raises
    ------
    InvalidParameterError
        For a tree without soft branch nodes, one that uses no feature, and names or levels that a graph cannot hold.
    ImportError
        Without the package ``onnx``.

    Notes
    -----
    Inputs: one for each raw feature under its own name, shape (n, 1): double for numbers (NaN is missing), string
    for categories (the empty string is missing). Outputs: ``leaf`` (n,) int64, ``routing_probability`` (n, B),
    ``survival`` (n, T) and the constant ``times`` (T,), all double. A tree of depth 0 has no routing output. With
    causes there is ``cumulative_incidence`` (n, T, K) too, and ``survival`` is that of no event at all.

    Examples
    --------
    >>> export_onnx(tree, "tree.onnx", times=[365, 730])        # doctest: +SKIP
    """
    with brought_by("onnx"):
        import onnx

    view = tree_view(tree)
    if not view.soft:
        raise InvalidParameterError(
            "tree must be a soft tree for ONNX, got an optimal one; export it as Python, SQL or Graphviz"
        )
    if not view.columns:
        raise InvalidParameterError("tree must use at least one feature for ONNX, got none")
    grid = grid_of(tree.unique_times_ if times is None else times)
    _check_names(view)
    model = _Graph(view, tree, np.sort(grid)).model()
    onnx.checker.check_model(model, full_check=True)
    return replace_file(path, model.SerializeToString())


def _check_names(view: TreeView) -> None:
    """Refuse inputs whose names are those of outputs, and levels that mean missing."""
    for name in dict.fromkeys(column.source for column in view.columns):
        if name in ("", *OUTPUTS):
            raise InvalidParameterError(
                f"features of an ONNX graph must not be called as its outputs are, {', '.join(OUTPUTS)}, nor be "
                f"without a name, got {name!r}; rename the column and fit again"
            )
        if "" in view.levels(name):
            raise InvalidParameterError(
                f"levels of {name!r} must not hold the empty text, which means missing in an ONNX graph; rename the "
                "level and fit again"
            )


OUTPUTS = "routing_probability", "cumulative_incidence", "leaf", "survival", "times"

LEAST_SURVIVAL = 1e-300
"""Least survival of a cause by itself: above it the cumulative hazard of the cause is finite."""

FAR_TAIL = 4.0
"""From here on the cumulative hazard of a probit is taken from the asymptotic series of the normal tail."""


class _Graph:
    """Nodes and constants of the graph, added one by one; every value is known by its name."""

    def __init__(self, view: TreeView, tree: Any, times: np.ndarray) -> None:
        import onnx

        self.onnx = onnx
        self.view, self.tree, self.times, self.fills = view, tree, times, fills_of(view)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.counter, self.own = 0, "_"
        while any(column.source.startswith(self.own) for column in view.columns):
            self.own += "_"  # no name in the graph is that of a feature

    def constant(self, value: ArrayLike, dtype: Any = np.float64) -> str:
        self.counter += 1
        name = f"{self.own}constant_{self.counter}"
        array = np.asarray(value, dtype=dtype)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def apply(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        self.counter += 1
        name = output or f"{self.own}value_{self.counter}"
        own = f"node_{self.counter}"  # onnxruntime 1.20 joins nodes under the names of the first ones
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], own, **attributes))
        return name

    def model(self) -> Any:
        """The whole graph."""
        helper, kinds = self.onnx.helper, self.onnx.TensorProto
        x = self._encoded()
        outputs = []
        if self.tree.tree_.depth:
            outputs.append(helper.make_tensor_value_info("routing_probability", kinds.DOUBLE, ["n", None]))
        leaf = self._leaf(x)
        self.apply("Squeeze", leaf, self.constant([1], np.int64), output="leaf")
        if self.tree.cause_trees_:
            self._incidences(x)
            shape = ["n", len(self.times), len(self.tree.cause_trees_)]
            outputs.append(helper.make_tensor_value_info("cumulative_incidence", kinds.DOUBLE, shape))
        else:
            link = self.tree.tree_.family.link.name
            z = self._in_own_leaf(x, leaf_arithmetic(self.tree, self.view, self.times))
            self.apply("Identity", self._survival(z, link), output="survival")
        self.apply("Identity", self.constant(self.times), output="times")
        outputs += [
            helper.make_tensor_value_info("leaf", kinds.INT64, ["n"]),
            helper.make_tensor_value_info("survival", kinds.DOUBLE, ["n", len(self.times)]),
            helper.make_tensor_value_info("times", kinds.DOUBLE, [len(self.times)]),
        ]
        inputs = [
            helper.make_tensor_value_info(name, kinds.STRING if self.view.is_category(name) else kinds.DOUBLE, ["n", 1])
            for name in dict.fromkeys(column.source for column in self.view.columns)
        ]
        graph = helper.make_graph(self.nodes, "softsurv", inputs, outputs, self.constants)
        # a reader of an older runtime needs no newer file format than the opset asks for
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)

    def _encoded(self) -> str:
        """The encoded features (n, P) from the raw inputs.

        Numbers are one table: a runtime takes minutes to open a graph with nodes for each of thousands of columns.
        """
        columns = self.view.columns
        number = [not self.view.is_category(column.source) for column in columns]
        parts = self._numbers([column for column, own in zip(columns, number, strict=True) if own])
        parts += [self._of_category(column) for column, own in zip(columns, number, strict=True) if not own]
        # numbers come first, then whether they are missing, then categories
        places = sorted(range(len(columns)), key=lambda k: (not number[k], number[k] and columns[k].kind == "missing"))
        table = self.apply("Concat", *parts, axis=1)
        return self.apply("Gather", table, self.constant(np.argsort(places), np.int64), axis=1)

    def _numbers(self, columns: list[OutputColumn]) -> list[str]:
        """Tables of the encoded numbers, and of whether they are missing; empty ones are left out."""
        if not columns:
            return []
        sources = list(dict.fromkeys(column.source for column in columns))
        raw = self.apply("Concat", *sources, axis=1)
        gone, fills = self.apply("IsNaN", raw), [self.fills.get(source) for source in sources]
        fill = self.constant([np.nan if value is None else float(value) for value in fills])
        filled, parts, place = self.apply("Where", gone, fill, raw), [], {name: k for k, name in enumerate(sources)}
        values = [column for column in columns if column.kind != "missing"]
        if values:
            own = self.apply("Gather", filled, self.constant([place[c.source] for c in values], np.int64), axis=1)
            shifted = self.apply("Sub", own, self.constant([column.offset for column in values]))
            parts.append(self.apply("Div", shifted, self.constant([column.scale for column in values])))
        asked = [place[column.source] for column in columns if column.kind == "missing"]
        if asked:
            missing = self.apply("Gather", gone, self.constant(asked, np.int64), axis=1)
            parts.append(self.apply("Cast", missing, to=self.onnx.TensorProto.DOUBLE))
        return parts

    def _of_category(self, column: OutputColumn) -> str:
        """An encoded feature (n, 1) from its raw category."""
        fill, answer = self.fills.get(column.source), self.apply("Equal", column.source, self.constant([""], object))
        if column.kind != "missing":
            filled = column.source
            if fill is not None:
                filled = self.apply("Where", answer, self.constant([fill], object), column.source)
            answer = self.apply("Equal", filled, self.constant([str(column.level)], object))
        return self.apply("Cast", answer, to=self.onnx.TensorProto.DOUBLE)

    def _linear(self, x: str, coefficients: np.ndarray) -> str:
        """x (n, P) times rows of intercept and weights (R, P + 1): (n, R)."""
        product = self.apply("MatMul", x, self.constant(coefficients[:, 1:].T))
        return self.apply("Add", product, self.constant(coefficients[:, 0]))

    def _leaf(self, x: str) -> str:
        """Leaf (n, 1) by the signs of the splits, and the routing probabilities on the way."""
        shape = self.apply("Concat", self.apply("Shape", x, end=1), self.constant([1], np.int64), axis=0)
        zero = self.onnx.helper.make_tensor("zero", self.onnx.TensorProto.INT64, [1], [0])
        leaf = self.apply("ConstantOfShape", shape, value=zero)
        depth = self.tree.tree_.depth
        if depth == 0:
            return leaf
        routing = self.tree.tree_.routing[0].detach().double().cpu().numpy()
        split = self._linear(x, routing)
        self.apply("Sigmoid", split, output="routing_probability")
        for level in range(depth):
            node = self.apply("Add", leaf, self.constant([2**level - 1], np.int64))
            at = self.apply("GatherElements", split, node, axis=1)
            right = self.apply("Cast", self.apply("Less", at, self.constant([0.0])), to=self.onnx.TensorProto.INT64)
            leaf = self.apply("Add", self.apply("Mul", leaf, self.constant([2], np.int64)), right)
        number = np.searchsorted(self.tree.tree_.used_leaves, np.arange(2**depth))
        return self.apply("Gather", self.constant(number, np.int64), leaf, axis=0)

    def _in_own_leaf(self, x: str, leaves: list[dict[str, Any]]) -> str:
        """The predictor (n, T) of each row in its leaf."""
        weights = np.array([leaf["weights"] for leaf in leaves])
        baseline = np.array([leaf["baseline"] for leaf in leaves], dtype=float)  # None, at time 0, becomes nan
        offsets = self._linear(x, weights)
        index = self.apply("Unsqueeze", "leaf", self.constant([1], np.int64))
        own = self.apply("GatherElements", offsets, index, axis=1)
        rise = self.apply("Gather", self.constant(np.where(np.isnan(baseline), -np.inf, baseline)), "leaf", axis=0)
        return self.apply("Add", own, rise)

    def _survival(self, z: str, link: str) -> str:
        """Survival of a predictor."""
        if link == "proportional_hazards":
            return self.apply("Exp", self.apply("Neg", self.apply("Exp", z)))
        if link == "proportional_odds":
            return self.apply("Sigmoid", self.apply("Neg", z))
        if link != "probit":
            raise InvalidParameterError(f"tree must have leaves with a known link for ONNX, got {link!r}")
        return self._normal_tail(z)

    def _normal_tail(self, z: str) -> str:
        """Phi(-z); runtimes have Erf in single precision alone, so that this is good to about 1e-7."""
        kinds = self.onnx.TensorProto
        single = self.apply("Cast", self.apply("Mul", z, self.constant([-np.sqrt(0.5)])), to=kinds.FLOAT)
        erf = self.apply("Cast", self.apply("Erf", single), to=kinds.DOUBLE)
        half = self.constant([0.5])
        return self.apply("Mul", self.apply("Add", erf, self.constant([1.0])), half)

    def _hazard(self, z: str, link: str) -> str:
        """Cumulative hazard of a predictor, as its link has it: beyond what a survival can tell, too."""
        if link == "proportional_hazards":  # `softsurv.numerics.safe_exp`
            low = self.apply("Min", z, self.constant([EXP_LIMIT]))
            above = self.apply(
                "Sub", self.apply("Max", z, self.constant([EXP_LIMIT])), self.constant([EXP_LIMIT - 1.0])
            )
            return self.apply("Mul", self.apply("Exp", low), above)
        survival = self.apply("Max", self._survival(z, link), self.constant([LEAST_SURVIVAL]))
        near, far, limit = self.apply("Neg", self.apply("Log", survival)), z, EXP_LIMIT
        if link == "probit":
            limit, far = FAR_TAIL, self._log_far_tail(z)
        return self.apply("Where", self.apply("Greater", z, self.constant([limit])), far, near)

    def _log_far_tail(self, z: str) -> str:
        """-log Phi(-z) for z above :data:`FAR_TAIL`, by the asymptotic series in 1 / z^2."""
        square = self.apply("Pow", self.apply("Max", z, self.constant([FAR_TAIL])), self.constant([2.0]))
        inverse = self.apply("Reciprocal", square)
        series = self.constant([0.0])
        for coefficient in (105.0, -15.0, 3.0, -1.0):
            series = self.apply("Mul", inverse, self.apply("Add", series, self.constant([coefficient])))
        half = self.apply("Mul", self.apply("Add", square, self.apply("Log", square)), self.constant([0.5]))
        rest = self.apply("Log", self.apply("Add", series, self.constant([1.0])))
        return self.apply("Sub", self.apply("Add", half, self.constant([0.5 * np.log(2 * np.pi)])), rest)

    def _incidences(self, x: str) -> None:
        """Survival and the incidence of each cause, added up as `softsurv.trees.incidence` does."""
        lattice, place = lattice_of(self.tree, self.times)
        leaves = leaf_arithmetic(self.tree, self.view, self.times)
        hazards = []
        for k, module in enumerate(self.tree.cause_trees_):
            z = self._in_own_leaf(x, [leaf["causes"][k] for leaf in leaves])
            hazards.append(self._hazard(z, module.family.link.name))
        ends = [self.constant([v], np.int64) for v in (0, len(lattice), len(lattice) + len(self.times))]
        axis = self.constant([1], np.int64)
        on_lattice, at_times = (
            [self.apply("Slice", hazard, *between, axis) for hazard in hazards] for between in pairwise(ends)
        )
        before = [self.apply("Pad", one, self.constant([0, 1, 0, 0], np.int64)) for one in on_lattice]  # 0 at the start
        start = [self.apply("Slice", one, *ends[:2], axis) for one in before]
        rises = [self.apply("Sub", after, first) for after, first in zip(on_lattice, start, strict=True)]
        steps = self._steps(self._total(start), rises)
        places = self.constant(place, np.int64)
        risen = [
            self.apply(
                "Gather",
                self.apply("Pad", self.apply("CumSum", one, axis), self.constant([0, 1, 0, 0], np.int64)),
                places,
                axis=1,
            )
            for one in steps
        ]
        passed = [self.apply("Gather", one, places, axis=1) for one in before]
        last = [
            self.apply("Max", self.apply("Sub", at, first), self.constant([0.0]))
            for at, first in zip(at_times, passed, strict=True)
        ]
        found = [
            self.apply("Unsqueeze", self.apply("Add", *pair), self.constant([2], np.int64))
            for pair in zip(risen, self._steps(self._total(passed), last), strict=True)
        ]
        self.apply("Concat", *found, axis=2, output="cumulative_incidence")
        total = self.apply("Add", self._total(passed), self._total(last))
        self.apply("Exp", self.apply("Neg", total), output="survival")

    def _total(self, parts: list[str]) -> str:
        return self.apply("Sum", *parts)

    def _steps(self, total: str, rises: list[str]) -> list[str]:
        """What each incidence rises by over steps, given all hazards before them and the rise of each."""
        whole, zero = self._total(rises), self.constant([0.0])
        some = self.apply("Greater", whole, zero)
        safe = self.apply("Where", some, whole, self.constant([1.0]))
        gone = self.apply("Sub", self.constant([1.0]), self.apply("Exp", self.apply("Neg", whole)))
        event = self.apply("Mul", self.apply("Exp", self.apply("Neg", total)), gone)
        return [self.apply("Mul", event, self.apply("Div", rise, safe)) for rise in rises]


def onnx_inputs(tree: Any, X: Any) -> dict[str, np.ndarray]:
    """Columns of a raw table ``X`` as the graph of the exported ``tree`` takes them, each (n, 1)."""
    view, named = tree_view(tree), has_names(X)
    trained_with_names = hasattr(tree, "feature_names_in_")
    asked = list(dict.fromkeys(column.source for column in view.columns))
    every = asked if view.preprocessor is None else view.preprocessor.input_names_
    names = asked if named and trained_with_names else [str(name) for name in every]
    frame = align_columns(as_frame(X), names, named=named, trained_with_names=trained_with_names)
    found: dict[str, np.ndarray] = {}
    for name in asked:
        if view.is_category(name):
            text = ["" if v is None else v for v in labels(frame[name], name)]
            found[name] = np.array(text, dtype=object)[:, None]
        else:
            found[name] = numbers(frame[name], name)[:, None]
    return found
