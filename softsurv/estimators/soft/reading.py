"""What a fitted soft tree says of itself: text, importances and a summary; a mixin of the fitted estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from softsurv.arrays import FloatArray
from softsurv.data.encoding import OutputColumn, Source
from softsurv.data.preprocess import Preprocessor
from softsurv.errors import InvalidParameterError
from softsurv.estimators.shared.checks import one_of
from softsurv.estimators.shared.exports import Exports
from softsurv.estimators.soft.features import encoded_names, importances, reading_notes
from softsurv.results import FitReport
from softsurv.trees.leaf_table import LeafTable
from softsurv.trees.soft_text import encoded_columns, leaf_line, soft_tree_dot, soft_tree_text

if TYPE_CHECKING:
    import torch

    from softsurv.estimators.soft.summary import TreeSummary
    from softsurv.trees.soft_tree import SoftTree
else:
    from softsurv.estimators.soft import torch_later as torch


class SoftReading(Exports):
    """Mixin of the soft trees: text, Graphviz, SQL, Python, importances and summary."""

    tree_: SoftTree
    cause_trees_: tuple[SoftTree, ...]
    cause_names_: tuple[str, ...]
    covariance_: FloatArray | None
    cause_covariances_: tuple[FloatArray | None, ...]
    report_: FitReport
    leaf_table_: LeafTable
    depth_: int
    spread_: FloatArray
    centre_: FloatArray | None
    typical_rows_: FloatArray | None
    split_sizes_: FloatArray | None
    preprocessor_: Preprocessor | None
    n_features_in_: int
    horizon_: float

    @property
    def _trees(self) -> tuple[SoftTree, ...]:
        """The tree of each cause; the tree itself where there is one kind of event."""
        return self.cause_trees_ or (self.tree_,)

    @property
    def encoded_names_(self) -> list[str]:
        """Names of the encoded features, as the rules show them."""
        return encoded_names(self.preprocessor_, self.n_features_in_, getattr(self, "feature_names_in_", None))

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each raw feature in the tree, (n_features_in_,), summing to one; zero for an unused feature.

        Notes
        -----
        A split has the importance of the share of the training rows that it divides, times how far the predictions of
        its two sides differ (see `softsurv.trees.split_effects`). Its features share this in proportion to
        |coefficient| times standard deviation. The sharpness of the routing has no influence. A slope of a leaf has the
        importance |coefficient| times standard deviation, weighted by the leaf's share of the rows. One-hot columns are
        added up for their source, and so are causes.
        """
        return importances(self._trees, self.leaf_table_, self.spread_, self.split_sizes_, self.preprocessor_)

    def summary(self, per: str = "step", measure: str = "own") -> TreeSummary:
        """Numbers, typical curve and effects of each leaf, with standard errors and 95 % intervals.

        Parameters
        ----------
        per : {"step", "unit", "sd"}
            Difference in a number for which an effect is reported: the power of ten next below its standard deviation,
            of whole numbers 1 at least; one unit of the data; or a standard deviation. Levels of a category are
            compared with its first one.
        measure : {"own", "time"}
            "own": hazard ratio, odds ratio of the event, or shift, by the family. "time": time ratio, for families
            whose log time is linear in the features (exponential, Weibull, log-logistic, log-normal).

        Returns
        -------
        TreeSummary
            ``str()`` of it is text; its ``leaves``, ``effects`` and ``typical`` are frames. The index of ``effects``
            starts with the cause where there are causes.

        Raises
        ------
        InvalidParameterError
            If an argument is not one of those values, or the family of a leaf has no time ratio.

        Notes
        -----
        The median of a leaf is that of its typical row: the medians of the numbers of its training rows, rounded to a
        thousandth of their range or less, and their most frequent levels, missing values filled as in training, and
        rows weighed; of a streamed model, of the rows of its sample. A leaf that the sample does not reach, and models
        saved by earlier versions, take means and most frequent levels of all training rows.

        Standard errors are those of the inverse Hessian of the penalised likelihood, given the leaf of each row. A row
        of weight w counts as w rows. Where subjects have several rows, or events recur, standard errors are robust: the
        sandwich by subject. There are none for streamed fits, for fits with ``fairness`` or ``l1``, for more than 1,000
        parameters, and in models saved by earlier versions.
        """
        from softsurv.estimators.soft.summary import (
            TreeSummary,
            joined,
            late_words,
            notes_of,
            summary_of,
            typical_words,
        )
        from softsurv.trees.leaf_effects import LOG_LINEAR, UNITS, contrasts, shares_slopes
        from softsurv.trees.typical_rows import in_units

        check_is_fitted(self, "tree_")
        one_of("per", per, UNITS)
        one_of("measure", measure, ("own", "time"))
        for tree in self._trees:
            if measure == "time" and tree.family.name not in LOG_LINEAR:
                raise InvalidParameterError(
                    f'measure "time" is there for {", ".join(LOG_LINEAR)} leaves, got {tree.family.name}; pass "own"'
                )
        columns, sources = self._columns_and_sources()
        asked = contrasts(columns, sources, self.spread_, per, self.report_.details.get("whole", ()))
        typical, used, table = self._typical(), self.tree_.used_leaves, self.leaf_table_
        numbers = pd.DataFrame({"n": table.n, "events": table.events, "observed_median": table.median})
        known = self.cause_covariances_ or (self.covariance_,)
        told = [
            summary_of(tree, used, covariance, typical, asked, measure)
            for tree, covariance in zip(self._trees, known, strict=True)
        ]
        notes = notes_of(
            [one.measure for one in told],
            shared=all(shares_slopes(tree.leaves[0, torch.as_tensor(used)], tree.n_features) for tree in self._trees),
            known=all(covariance is not None for covariance in known),
            dense=bool(self.depth_ and not self.tree_.rules),
            causes=self.cause_names_,
            lost=self.report_.details.get("lost_likelihood", {}).get("share"),
            by_subject=self.leaf_table_.subjects is not None,
            typical=typical_words(self.tree_, typical) + late_words(told[0].leaves, self.horizon_),
        )
        rows = in_units(typical, columns, sources)
        if self.preprocessor_ is not None:
            rows = rows.reindex(columns=[str(name) for name in self.preprocessor_.input_names_])
        rows.index = pd.Index(["all"] if self.typical_rows_ is None else rows.index, name="leaf")
        return TreeSummary(self.export_text(), *joined(numbers, told, self.cause_names_), rows, notes)

    def _typical(self) -> FloatArray:
        """The typical row of each leaf (L, P), encoded; (1, P), that of all training rows, where training kept none."""
        if self.typical_rows_ is not None:
            return self.typical_rows_
        from softsurv.trees.typical_rows import typical_row

        return typical_row(*self._columns_and_sources(), self.centre_)[None]

    def _columns_and_sources(self) -> tuple[tuple[OutputColumn, ...], tuple[Source, ...]]:
        """Where each encoded feature comes from, and what training knows of the raw ones."""
        sources = () if self.preprocessor_ is None else tuple(self.preprocessor_.sources_)
        return encoded_columns(self.preprocessor_, self.encoded_names_), sources

    def export_text(self) -> str:
        """The tree as text: the rules in the data's own units, and each leaf's numbers.

        Notes
        -----
        The printed rules are the model: following them by hand leads to the leaf of ``apply``. A dense split is printed
        as a threshold on its points, with the table of all points below the tree.
        """
        check_is_fitted(self, "tree_")
        notes = reading_notes(self._trees, self.preprocessor_, self.report_, self.encoded_names_, self.cause_names_)
        return soft_tree_text(self.tree_, self.preprocessor_, self.encoded_names_, self.leaf_table_, notes)

    def export_dot(self) -> str:
        """The tree in Graphviz's language."""
        check_is_fitted(self, "tree_")
        return soft_tree_dot(self.tree_, self.preprocessor_, self.encoded_names_, self.leaf_table_)

    def _leaf_in_python(self, name: str) -> str:
        from softsurv.trees.soft_python import soft_tree_python

        lines = [leaf_line(self.leaf_table_, leaf) for leaf in range(len(self.leaf_table_.n))]
        return soft_tree_python(self.tree_, *self._columns_and_sources(), name, lines)

    def _leaf_in_sql(self, quote: str) -> str:
        from softsurv.trees.soft_sql import soft_tree_sql

        return soft_tree_sql(self.tree_, *self._columns_and_sources(), quote)
