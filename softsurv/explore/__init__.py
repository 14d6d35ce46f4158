"""Look at a fitted tree: pictures, tables, words, reports and an interactive view.

Names load on first use; matplotlib is needed for pictures and reports alone (extra ``explore``).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softsurv.explore.changes import crossings as crossings
    from softsurv.explore.comparison import Comparison as Comparison
    from softsurv.explore.comparison import compare as compare
    from softsurv.explore.comparison import plot_comparison as plot_comparison
    from softsurv.explore.curves import leaf_summary as leaf_summary
    from softsurv.explore.curves import prediction_frame as prediction_frame
    from softsurv.explore.curves import survival_frame as survival_frame
    from softsurv.explore.effect_plots import plot_feature_profile as plot_feature_profile
    from softsurv.explore.effect_plots import plot_leaf_effects as plot_leaf_effects
    from softsurv.explore.effect_plots import plot_routing_effects as plot_routing_effects
    from softsurv.explore.history_plot import plot_history as plot_history
    from softsurv.explore.html import tree_html as tree_html
    from softsurv.explore.incidence_plot import plot_incidences as plot_incidences
    from softsurv.explore.interactive import explorer as explorer
    from softsurv.explore.onnx_export import export_onnx as export_onnx
    from softsurv.explore.onnx_export import onnx_inputs as onnx_inputs
    from softsurv.explore.parts_plot import plot_tree_parts as plot_tree_parts
    from softsurv.explore.path_plot import plot_path as plot_path
    from softsurv.explore.plots import plot_cumulative_hazard as plot_cumulative_hazard
    from softsurv.explore.plots import plot_hazard as plot_hazard
    from softsurv.explore.plots import plot_leaf_curves as plot_leaf_curves
    from softsurv.explore.quality import fairness_frame as fairness_frame
    from softsurv.explore.quality_plots import plot_brier as plot_brier
    from softsurv.explore.quality_plots import plot_calibration as plot_calibration
    from softsurv.explore.quality_plots import plot_d_calibration as plot_d_calibration
    from softsurv.explore.quality_plots import plot_fairness_trend as plot_fairness_trend
    from softsurv.explore.quality_plots import plot_size_quality as plot_size_quality
    from softsurv.explore.quality_plots import plot_trace as plot_trace
    from softsurv.explore.rashomon_plot import plot_importance_ranges as plot_importance_ranges
    from softsurv.explore.report import report_html as report_html
    from softsurv.explore.report import write_report as write_report
    from softsurv.explore.stability import plot_split_stability as plot_split_stability
    from softsurv.explore.stability import split_stability as split_stability
    from softsurv.explore.tree_plot import plot_tree as plot_tree
    from softsurv.explore.words import explain as explain

_HOME = {
    "Comparison": "comparison",
    "compare": "comparison",
    "plot_comparison": "comparison",
    "crossings": "changes",
    "leaf_summary": "curves",
    "survival_frame": "curves",
    "prediction_frame": "curves",
    "explain": "words",
    "export_onnx": "onnx_export",
    "onnx_inputs": "onnx_export",
    "explorer": "interactive",
    "tree_html": "html",
    "report_html": "report",
    "write_report": "report",
    "fairness_frame": "quality",
    "plot_tree": "tree_plot",
    "plot_tree_parts": "parts_plot",
    "plot_path": "path_plot",
    "plot_history": "history_plot",
    "plot_incidences": "incidence_plot",
    "plot_leaf_curves": "plots",
    "plot_hazard": "plots",
    "plot_cumulative_hazard": "plots",
    "plot_calibration": "quality_plots",
    "plot_d_calibration": "quality_plots",
    "plot_brier": "quality_plots",
    "plot_fairness_trend": "quality_plots",
    "plot_trace": "quality_plots",
    "plot_size_quality": "quality_plots",
    "split_stability": "stability",
    "plot_split_stability": "stability",
    "plot_routing_effects": "effect_plots",
    "plot_leaf_effects": "effect_plots",
    "plot_feature_profile": "effect_plots",
    "plot_importance_ranges": "rashomon_plot",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
