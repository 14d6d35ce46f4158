"""Attack softsurv as a careless or hostile world would: every case ends in a right result or in one sentence.

    .venv/bin/python scripts/attack.py --seed 0 --seconds 600 --state /tmp/attack.json --table scripts/tables/attack.md

Groups: mutated model files, checkpoints and run records; odd tables through Python and through the commands; names as
weapons; processes killed while they save; readers beside writers; Ctrl-C at any moment of a fit, a full disk, and a
table that changes while it is read; wrong optima, an hour of random problems; limits of every estimator. A case is
known by its seed, group and number. The script stops when the time is up and goes on from the state file. Each failure
is printed with the number that repeats it (`--only GROUP NUMBER`); the exit status is the number of failures. `--again`
first repeats those of the state file: what no longer fails counts as mended.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _attack_cases import CaseError, World, kills, models, names, readers, records, tables
from _attack_faults import (
    changing_table,
    full_disk,
    hostile_page,
    interrupted,
    no_rights,
    restarted_server,
    shared_cache,
)
from _attack_forks import interrupted_phase
from _attack_fuzz import KINDS, SECONDS, wrong_optimum
from _attack_limits import late

from softsurv.files import replace_file

CASE_SECONDS = 300.0
"""A case that takes longer hangs, also on a busy machine; most take milliseconds."""

Case = Callable[[World, np.random.Generator], None]


def fault(happens: Callable[[World, np.random.Generator], str | None]) -> Case:
    """A case out of what says what went wrong, or None."""

    def case(world: World, rng: np.random.Generator) -> None:
        failure = happens(world, rng)
        if failure is not None:
            raise CaseError(failure)

    return case


def a_full_disk(world: World, _: np.random.Generator) -> str | None:
    """A model is saved over another where there is no room."""
    folder = world.folder / "full"
    world.models[0].save(folder)
    return full_disk(world.models[1], folder, world.risks[0], world.rows)


class Group(NamedTuple):
    """Cases of one kind: how many, what they are, and how long they may take together."""

    case: Case
    count: float
    words: str
    seconds: float = math.inf


GROUPS: dict[str, Group] = (
    {
        "models": Group(models, 2000, "mutated and forged model files"),
        "records": Group(records, 1000, "mutated checkpoints and run records"),
        "tables": Group(tables, 2000, "odd tables, a fifth of them also through a command"),
        "names": Group(names, 1000, "names as weapons in source and pages"),
        "kills": Group(kills, 1000, "kills while saving"),
        "readers": Group(readers, 500, "times twenty loads beside two writers"),
        "disks": Group(fault(a_full_disk), 500, "saves without room on the disk"),
        "changes": Group(
            fault(lambda world, rng: changing_table(world.folder, rng)),
            500,
            "tables changed between two readings, size and time kept",
        ),
        "interrupts": Group(
            fault(lambda world, rng: interrupted(world.folder, rng)),
            20,
            "Ctrl-C from the first import on to the end of a fit",
        ),
        "pages": Group(
            fault(lambda _, rng: hostile_page(rng)), 50, "explorer and report with hostile names in a browser"
        ),
        "rights": Group(
            fault(lambda world, rng: no_rights(world, rng)),
            50,
            "saves and compilations by a process that may write nowhere",
        ),
        "caches": Group(
            fault(lambda _, rng: shared_cache(rng)), 50, "times three processes that share a damaged kernel cache"
        ),
        "servers": Group(
            fault(lambda _, rng: restarted_server()), 10, "studies of two workers whose PostgreSQL restarts twice"
        ),
        "phases": Group(
            fault(lambda world, rng: interrupted_phase(world.folder, rng)),
            200,
            "Ctrl-C in any phase of soft trees, rules, optimal trees, streams and studies",
        ),
    }
    | {
        f"optima-{kind}": Group(
            fault(lambda _, rng, kind=kind: wrong_optimum(kind, rng)),
            math.inf,
            f"optima, `{kind}` of `{script}`",
            SECONDS,
        )
        for kind, (script, _) in KINDS.items()
    }
    | {
        "limits": Group(fault(lambda _, rng: late(rng)), 100, "limits of every estimator on tables of many shapes"),
    }
)
"""Each group of cases; new ones come last, for a case is drawn from the place of its group."""


def attempt(world: World, group: str, seed: int, number: int) -> str | None:
    """Run a case; what went wrong, or None."""

    def hang(*_: Any) -> None:
        raise CaseError(f"no end within {CASE_SECONDS:g} s")

    rng = np.random.default_rng([seed, list(GROUPS).index(group), number])
    signal.signal(signal.SIGALRM, hang)
    signal.setitimer(signal.ITIMER_REAL, CASE_SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            GROUPS[group].case(world, rng)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return None


def repeat_failures(world: World, state: dict[str, Any]) -> None:
    """Try again what failed; what no longer does is counted apart."""
    for group, done in state["groups"].items():
        tried = [[number, attempt(world, group, state["seed"], number)] for number, _ in done["failures"]]
        left = [[number, failure] for number, failure in tried if failure is not None]
        done["mended"], done["failures"] = done.get("mended", 0) + len(tried) - len(left), left


def table(state: dict[str, Any]) -> str:
    """The state as a table in Markdown."""
    lines = ["| group | cases | failures | failed before | seconds |", "| --- | ---: | ---: | ---: | ---: |"]
    for group, (_, _, words, _) in GROUPS.items():
        done = {"done": 0, "failures": [], "seconds": 0.0, "mended": 0} | state["groups"].get(group, {})
        counts = f"{done['done']} | {len(done['failures'])} | {done['mended']}"
        lines.append(f"| {words} | {counts} | {done['seconds']:.0f} |")
    head = f"Made by `scripts/attack.py --seed {state['seed']}`. A failure is a raw error, a wrong result, or no end.\n"
    head += "Failed before: a failure when the case was first tried, and none when it was repeated (`--again`).\n"
    return "\n".join(["# Attack", "", head, *lines, ""])


def main() -> int:
    """Run the groups in turn until all cases are done or the time is up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--groups", nargs="+", choices=list(GROUPS), default=list(GROUPS))
    parser.add_argument("--share", type=float, default=1.0, help="of the cases of each group")
    parser.add_argument("--least", type=int, default=0, help="cases of a fuzzer, however long they take")
    parser.add_argument("--state", type=Path, help="file to go on from")
    parser.add_argument("--table", type=Path, help="file for the table")
    parser.add_argument("--again", action="store_true", help="repeat the failures of the state file first")
    parser.add_argument("--only", nargs=2, metavar=("GROUP", "NUMBER"), help="repeat one case")
    args = parser.parse_args()
    state: dict[str, Any] = {"seed": args.seed, "groups": {}}
    if args.state is not None and args.state.exists():
        known = json.loads(args.state.read_text())
        state = known if known["seed"] == args.seed else state
    end = time.monotonic() + args.seconds
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        if args.only:
            failure = attempt(world, args.only[0], args.seed, int(args.only[1]))
            print(failure or "no failure")
            return failure is not None
        if args.again:
            repeat_failures(world, state)
        for group in args.groups:
            done = state["groups"].setdefault(group, {"done": 0, "failures": [], "seconds": 0.0})
            wanted = GROUPS[group]
            while done["done"] < args.share * wanted.count and time.monotonic() < end:
                if done["seconds"] >= args.share * wanted.seconds and done["done"] >= args.least:
                    break
                began = time.monotonic()
                failure = attempt(world, group, args.seed, done["done"])
                done["seconds"] += time.monotonic() - began
                if failure is not None:
                    done["failures"].append([done["done"], failure])
                    print(f"--only {group} {done['done']}: {failure}", flush=True)
                done["done"] += 1
                if args.state is not None and done["done"] % 50 == 0:
                    replace_file(args.state, json.dumps(state))
    if args.state is not None:
        replace_file(args.state, json.dumps(state))
    if args.table is not None:
        replace_file(args.table, table(state))
    print(table(state))
    return min(sum(len(done["failures"]) for done in state["groups"].values()), 255)


if __name__ == "__main__":
    sys.exit(main())
