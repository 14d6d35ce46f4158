"""The picture of README and of the site's first page, docs/images/tree.png: the tree that README prints.

python scripts/draw_tree.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

from softsurv import SoftSurvivalTree, load_dataset
from softsurv.explore import plot_tree


def main() -> None:
    """Fit and draw."""
    matplotlib.use("agg")
    data = load_dataset("gbsg2")
    out = Path(__file__).resolve().parents[1] / "docs" / "images" / "tree.png"
    out.parent.mkdir(exist_ok=True)
    plot_tree(SoftSurvivalTree(depth=2).fit(data), data).figure.savefig(out, dpi=110)


if __name__ == "__main__":
    main()
