"""Our trees beside other models, on the same folds, by the same measures, and on data whose leaves are known.

    SOFTSURV_DATA=folder python scripts/bench_survset.py                              # all real sets, an hour or two
    python scripts/bench_survset.py --collection new --models soft optimal ctree --sets cancer burn
    python scripts/bench_survset.py --collection simulated --models soft:depth=1,l2=30 --repeats 3
    python scripts/bench_survset.py --models soft --tag before --out results/before.jsonl
    python scripts/bench_survset.py --report --beside results/peers.jsonl --table scripts/tables/survset.md

Models: ``soft`` and ``optimal`` with any arguments (``soft:depth=0``, see _survset_models.py), and the peers of
_survset_peers.py: ``km cox coxnet rpart rpart_min ctree sktree forest boost``. A peer that is not installed is left
out with a sentence.
Collections: ``new``, 15 sets of SurvSet; ``paper``, the 15 sets of paper `sst`; ``development``, 12 other sets of
SurvSet, and ``large``, nine others of 1,800 rows and more: on their held-out folds defaults are decided, and no figure
is claimed; ``genes`` and, for decisions, ``genes_development``, five sets each of 500 to 15,000 measured genes;
``rare``, three draws of each of these nine with 30 events among 1,000 rows, for the same purpose;
``simulated``, the truths of _survset_simulated.py, scored by the adjusted Rand index between the leaves of 2,000 new
rows and their true leaves.

Folds are event-stratified; censoring is estimated on the training fold. Every fit is a line of the result file; the
same command goes on where it stopped. ``--tag`` is put behind the models' names, so that two versions of one model can
stand side by side. Tables show what the file and those of ``--beside`` hold. Seconds are those of the fit; with other
work on the machine read ``cpu_seconds``.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))  # the code beside this script, whatever is installed

import joblib
import pandas as pd
from _results import Results
from _survset_data import COLLECTIONS, load
from _survset_models import CLASSES, Fitted, fit_ours
from _survset_peers import PEERS, fit_peer, missing
from _survset_simulated import N_REPEATS, SIZES, TRUTHS, simulate
from _survset_summary import MEASURES, N_FOLDS, summary
from sklearn.metrics import adjusted_rand_score
from tqdm import tqdm

from softsurv import SurvivalData
from softsurv.data.partition import stratified_folds
from softsurv.metrics.evaluate import evaluate

OURS = ("soft", "soft:depth=0", "optimal")
FACTS = ("n_leaves", "depth", "terms", "difference", "printed_rule", "printed_agreement", "status")


class Case(NamedTuple):
    """One fit: a fold of a set, or a repeat of a simulated truth."""

    collection: str
    set: str  # or the truth
    n: int | None  # training rows of a truth
    seed: int  # of the folds, or the number of the repeat
    fold: int
    model: str

    def name(self, tag: str) -> str:
        """Key in the result file."""
        place = f"{self.set} n {self.n} repeat" if self.collection == "simulated" else f"{self.set} seed"
        return f"{self.collection} {place} {self.seed} fold {self.fold} {self.model}{tag}"


def run(case: Case, tag: str) -> dict[str, Any]:
    """Fit and measure; one line of the result file, or the error in the place of the measures."""
    warnings.simplefilter("ignore")
    line = {"case": case.name(tag), **case._asdict(), "model": case.model + tag}
    try:
        if case.collection == "simulated":
            train, test = simulate(case.set, case.n or 0, case.seed)
            fitted = fit(case.model, train.data, test.data, case.seed)
            ari = None if fitted.leaf is None else float(adjusted_rand_score(test.leaf, fitted.leaf))
            line |= measured(fitted, train.data, test.data) | {"truth": case.set, "ari": ari}
        else:
            data = load(case.collection, case.set)
            rows, held = stratified_folds(data.event.numpy(), N_FOLDS, case.seed)[case.fold]
            part, rest = data.take(rows), data.take(held)
            line |= measured(fit(case.model, part, rest, case.seed), part, rest)
    except Exception as error:  # one fold that fails does not end a run of hours
        line["error"] = f"{type(error).__name__}: {error}"
    return line


def fit(model: str, train: SurvivalData, test: SurvivalData, seed: int) -> Fitted:
    """One of our trees, or a peer."""
    return fit_peer(model, train, test, seed) if model in PEERS else fit_ours(model, train, test, seed)


def measured(fitted: Fitted, train: SurvivalData, test: SurvivalData) -> dict[str, Any]:
    """Measures on the test rows, what the model is, and what it took."""
    result = evaluate(train.time, train.event, test.time, test.event, fitted.curves)
    line: dict[str, Any] = {measure: float(result[measure]) for measure in MEASURES}
    line |= dict.fromkeys(FACTS) | fitted.facts
    return line | {"seconds": round(fitted.seconds, 3), "cpu_seconds": round(fitted.cpu_seconds, 3)}


def cases(args: argparse.Namespace, models: list[str]) -> Iterator[Case]:
    """What the arguments ask for, cheap repetitions of a set next to each other."""
    for collection in args.collection:
        for model in models:
            if collection == "simulated":
                yield from simulated_cases(args, model)
                continue
            known = COLLECTIONS[collection]
            for seed in args.seeds:
                for name in (name for name in known if args.sets is None or name in args.sets):
                    yield from (Case(collection, name, None, seed, fold, model) for fold in args.folds)


def simulated_cases(args: argparse.Namespace, model: str) -> Iterator[Case]:
    """Repeats of every truth, in both sizes."""
    for n in args.sizes:
        for truth in (truth for truth in TRUTHS if args.sets is None or truth in args.sets):
            yield from (Case("simulated", truth, n, repeat, 0, model) for repeat in range(args.repeats))


def available(models: list[str]) -> list[str]:
    """The models that can be had here; says which cannot."""
    for model in models:
        if model not in PEERS and model.partition(":")[0] not in CLASSES:
            raise SystemExit(f"--models must be of {', '.join([*CLASSES, *PEERS])}, got {model!r}; see --help")
    reasons = {model: missing(model) for model in models}
    for sentence in dict.fromkeys(filter(None, reasons.values())):
        print(sentence, file=sys.stderr)
    return [model for model in models if reasons[model] is None]


def compute(todo: list[Case], results: Results, jobs: int, tag: str) -> None:
    """Run what is missing; every line is written as its fit ends."""
    if jobs == 1:
        lines: Iterator[dict[str, Any]] = (run(case, tag) for case in todo)
    else:
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        lines = parallel(joblib.delayed(run)(case, tag) for case in todo)
    failed = 0
    for line in tqdm(lines, total=len(todo), unit="fit", mininterval=10):
        if "error" in line:
            failed += 1
            print(f"{line['case']}: {line['error']}", file=sys.stderr, flush=True)
        else:
            results.get(line["case"], lambda line=line: line)
    if failed:
        print(f"{failed} of {len(todo)} fits failed; the same command tries them again", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=[*OURS, *PEERS])
    parser.add_argument("--collection", nargs="+", choices=(*COLLECTIONS, "simulated"), default=["new", "paper"])
    parser.add_argument("--sets", nargs="+", help="of the collections; all by default")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], help="of the folds")
    parser.add_argument("--folds", nargs="+", type=int, default=list(range(N_FOLDS)))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="rows of a simulated truth")
    parser.add_argument("--repeats", type=int, default=N_REPEATS, help="of a simulated truth")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time")
    parser.add_argument("--tag", default="", help="put behind the models' names")
    parser.add_argument("--out", type=Path, default=Path("results/survset.jsonl"))
    parser.add_argument("--report", action="store_true", help="tables alone, no fits")
    parser.add_argument("--beside", nargs="+", type=Path, default=[], help="result files to show as well")
    parser.add_argument("--table", type=Path, help="where to write the tables; beside the result file by default")
    args = parser.parse_args()
    results, tag = Results(args.out), f" {args.tag}" if args.tag else ""
    if not args.report:
        todo = [case for case in cases(args, available(args.models)) if case.name(tag) not in results.done]
        compute(todo, results, args.jobs, tag)
    lines = [line for path in args.beside for line in Results(path).done.values()] + list(results.done.values())
    if not lines:
        raise SystemExit(f"there are no results in {args.out}; leave --report out")
    text = summary(pd.DataFrame([json.loads(json.dumps(line)) for line in lines]))
    (args.table or args.out.with_suffix(".md")).write_text(text)
    print(text)


if __name__ == "__main__":
    main()
