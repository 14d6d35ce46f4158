"""``softsurv demo``: the main job on real data, from a table to a saved and evaluated model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softsurv.commands._output import data_line, echo, measure_note, measure_table, output_folder
from softsurv.files import replacing

if TYPE_CHECKING:
    from softsurv.data.survival_data import SurvivalData

READABLE_DEPTH = 2
"""Four leaves at most: a tree that fits on a screen."""

BESIDE = {"Cox": "cox", "Kaplan-Meier": "kaplan_meier"}
"""What stands beside the tree, and the names of the models in `softsurv.explore.rivals`."""

_EPILOG = """\
gbsg2: 686 women after surgery for breast cancer; time in days until the cancer came back or death.
The same by hand: softsurv datasets gbsg2 --out gbsg2.csv
                  softsurv fit gbsg2.csv --time time --event event --test-size 0.2
"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Arguments of the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "demo",
        help="train, test and draw a soft tree on real data",
        description="Train a soft survival tree on real data, compare it with Kaplan-Meier and Cox, draw and save it.",
        epilog=_EPILOG,
    )
    parser.add_argument("--data", default="gbsg2", help="a name that `softsurv datasets` lists (default: gbsg2)")
    parser.add_argument("--seed", type=int, default=0, help="of the held-out rows and the starts (default: 0)")
    parser.add_argument(
        "--out", type=Path, default=Path("softsurv-demo"), help="output folder (default: softsurv-demo)"
    )
    return parser


def run(args: argparse.Namespace) -> int:
    """Load, split, train, evaluate, print, draw, save."""
    from softsurv import load_dataset
    from softsurv.explore.rivals import made, measured

    out = output_folder(args.out)
    data = load_dataset(args.data)
    train, test = data.split(test_size=0.2, seed=args.seed)
    echo(data_line(data), f"train on {train.n} rows, hold out {test.n}", "")
    trees = _train(train, args.seed)
    tree = trees["soft tree"]
    echo("", tree.export_text(), "", "Held-out quality")
    rows = {name: model.evaluate(test) for name, model in trees.items()}
    rows |= {name: measured(made(model, train), train, test) for name, model in BESIDE.items()}
    echo(*measure_table(rows), measure_note(rows["soft tree"]), "")
    tree.save(out / "model")
    _draw(tree, train, out / "leaves.png")
    echo(f"model:   {out / 'model'}", f"picture: {out / 'leaves.png'}")
    return 0


def _train(train: SurvivalData, seed: int) -> dict[str, Any]:
    """The tree with defaults; where it is a single leaf, also one with splits, so that there is a tree to read."""
    from softsurv import SoftSurvivalTree

    chosen = SoftSurvivalTree(random_state=seed).fit(train)
    echo(f"Soft survival tree, {_story(chosen)}")
    if chosen.depth_ > 0:
        return {"soft tree": chosen}
    tree = SoftSurvivalTree(depth=READABLE_DEPTH, random_state=seed).fit(train)
    echo(
        "A single leaf was chosen, whose curves still vary with the features.",
        f"So that there is a tree to read, one more: {_story(tree)}",
    )
    return {"soft tree": tree, "single leaf": chosen}


def _story(model: Any) -> str:
    """How a tree came about."""
    report = model.report_
    settings = f"from {len(model.selection_)} settings by cross-validation"
    return f"depth {model.depth_}, chosen {settings} ({report.status}, {report.seconds:.1f} s)"


def _draw(model: Any, train: SurvivalData, path: Path) -> None:
    """The leaves' curves as a picture."""
    from softsurv.explore.plots import plot_leaf_curves

    path.parent.mkdir(parents=True, exist_ok=True)
    figure: Any = plot_leaf_curves(model, train).figure
    with replacing(path) as part:
        figure.savefig(part, dpi=160, format="png")
