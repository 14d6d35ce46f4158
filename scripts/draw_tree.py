"""The pictures of README and of the pages, in docs/images.

python scripts/draw_tree.py

tree.png is the tree that README prints, importance_ranges.png what columns are worth over near-optimal trees.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

from softsurv import OptimalSurvivalTree, SoftSurvivalTree, load_dataset
from softsurv.explore import plot_importance_ranges, plot_tree


def main() -> None:
    """Fit and draw."""
    matplotlib.use("agg")
    data = load_dataset("gbsg2")
    out = Path(__file__).resolve().parents[1] / "docs" / "images"
    out.mkdir(exist_ok=True)
    plot_tree(SoftSurvivalTree(depth=2, max_terms=1).fit(data), data).figure.savefig(out / "tree.png", dpi=110)
    near = OptimalSurvivalTree(max_depth=3).fit(data).rashomon_set(0.015)
    plot_importance_ranges(near).figure.savefig(out / "importance_ranges.png", dpi=110)


if __name__ == "__main__":
    main()
