"""Measures of survival predictions: numpy arrays in, floats out, censoring curve from the training fold."""

from softsurv.metrics.auc import cumulative_dynamic_auc
from softsurv.metrics.brier import brier_score, integrated_brier_score, relative_integrated_brier_score
from softsurv.metrics.calibration import (
    CalibrationCurve,
    CalibrationErrors,
    DCalibration,
    calibration_curve,
    calibration_errors,
    d_calibration,
    smoothed_observed_survival,
)
from softsurv.metrics.competing import (
    auc_incidence,
    brier_score_incidence,
    calibration_curve_incidence,
    cause_specific_concordance,
    integrated_brier_score_incidence,
)
from softsurv.metrics.concordance import PairCounts, count_pairs, harrell_c, uno_c
from softsurv.metrics.entering import entry_distribution
from softsurv.metrics.evaluate import evaluate, evaluate_with_censoring
from softsurv.metrics.fairness import CurveGap, LeafGini, curve_gap, fairness_penalty, leaf_gini
from softsurv.metrics.predicted import log_hazard_of
from softsurv.metrics.ranges import (
    EvaluationRange,
    evaluation_range,
    support_end,
    survival_from_log_cumulative_hazard,
)
from softsurv.metrics.shared_curves import SharedCurves, SharedIncidences

__all__ = [
    "CalibrationCurve",
    "CalibrationErrors",
    "CurveGap",
    "DCalibration",
    "EvaluationRange",
    "LeafGini",
    "PairCounts",
    "SharedCurves",
    "SharedIncidences",
    "auc_incidence",
    "brier_score",
    "brier_score_incidence",
    "calibration_curve",
    "calibration_curve_incidence",
    "calibration_errors",
    "cause_specific_concordance",
    "count_pairs",
    "cumulative_dynamic_auc",
    "curve_gap",
    "d_calibration",
    "entry_distribution",
    "evaluate",
    "evaluate_with_censoring",
    "evaluation_range",
    "fairness_penalty",
    "harrell_c",
    "integrated_brier_score",
    "integrated_brier_score_incidence",
    "leaf_gini",
    "log_hazard_of",
    "relative_integrated_brier_score",
    "smoothed_observed_survival",
    "support_end",
    "survival_from_log_cumulative_hazard",
    "uno_c",
]
