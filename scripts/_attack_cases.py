"""What the attack tries on files, tables and names, and how a case is judged."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import string
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from softsurv import SoftSurvivalTree, load_model
from softsurv.cli import main as command_line
from softsurv.data.encoding import Source
from softsurv.data.preprocess import Preprocessor
from softsurv.data.readers import survival_data
from softsurv.data.rules import Rule
from softsurv.errors import SoftsurvError
from softsurv.explore.interactive import explorer_page
from softsurv.files import replace_file, seal, unseal
from softsurv.persistence import MODEL
from softsurv.run_record import read_run, write_run
from softsurv.soft.streaming.checkpoint import read_checkpoint, write_checkpoint
from softsurv.trees.hard_tree import Branch, HardTree

ODD = (None, True, -1, 0, 10**30, 1e308, -0.5, "", "x", "os.system", [], [None], {}, {"float": "nan"}, {"pairs": [[1]]})
WEAPONS = (
    "\n__import__('os').abort()",
    "\r",
    "'''",
    '"',
    "\\",
    "$%$",
    "</script>",
    "<!--<script>",
    "=1+1",
    "\x00",
    "é\u202e",
)


class CaseError(Exception):
    """What a case did instead of a right result or one sentence."""


class World:
    """What the cases work on: a small model, its rows and predictions, and a folder."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(0)
        self.rows = pd.DataFrame({"age": rng.normal(60, 9, 80), "arm": rng.choice(["a", "b", "c"], 80)})
        outcome = (rng.random(80) < 0.7, rng.exponential(size=80) + 0.1)
        options = {"l2": 1.0, "shrinkage": 1.0, "routing_l2": 0.1, "n_restarts": 1, "device": "cpu"}
        self.models = [SoftSurvivalTree(depth=depth, **options).fit(self.rows, outcome) for depth in (0, 1)]
        self.risks = [model.predict(self.rows) for model in self.models]
        self.folder = folder
        self.models[1].save(folder / "good")
        self.whole = (folder / "good" / MODEL).read_bytes()


# -- files ----------------------------------------------------------------------------------------------------------
def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with a few of them flipped, cut, doubled, zeroed or replaced."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        place, length = int(rng.integers(len(out) or 1)), int(rng.integers(1, 200))
        kind = int(rng.integers(6))
        if kind == 0 and out:
            out[place] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del out[place:]
        elif kind == 2:
            del out[place : place + length]
        elif kind == 3:
            out[place:place] = out[place : place + length]
        elif kind == 4:
            out[place : place + length] = bytes(len(out[place : place + length]))
        else:
            out[place:place] = rng.bytes(length)
    return bytes(out)


def forged(value: Any, rng: np.random.Generator) -> Any:
    """The JSON value with one part replaced by something odd, at a random depth."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = keys[int(rng.integers(len(keys)))]
        changed = value.copy()
        if rng.random() < 0.1:
            del changed[key]
        else:
            changed[key] = forged(value[key], rng)
        return changed
    return ODD[int(rng.integers(len(ODD)))]


def models(world: World, rng: np.random.Generator) -> None:
    """A mutated or forged model: refused, or as good as the true one."""
    folder = world.folder / "model"
    folder.mkdir(exist_ok=True)
    if rng.random() < 0.5:
        data = mutated(world.whole, rng)
        (folder / MODEL).write_bytes(data)
        with one_sentence():
            model = load_model(folder)
            if not np.array_equal(model.predict(world.rows), world.risks[1]):
                raise CaseError("a changed file gave other predictions in silence")
        return
    arrays, note = unseal(world.folder / "good" / MODEL, 1 << 30)
    replace_file(folder / MODEL, seal(arrays, json.dumps(forged(json.loads(note), rng))))
    with one_sentence():
        load_model(folder)


def records(world: World, rng: np.random.Generator) -> None:
    """A mutated checkpoint or run record."""
    file = world.folder / "run.json"
    if rng.random() < 0.5:
        tensors = {"leaves": torch.arange(12.0), "routing": torch.ones(3)}
        write_checkpoint(file, {"rows": 3}, tensors, {"trace": [0.5], "passes": 2})
        whole = file.read_bytes()
        file.write_bytes(mutated(whole, rng))
        with one_sentence():
            state = read_checkpoint(file, {"rows": 3})
            if state is not None and not all(torch.equal(state.tensors[name], tensors[name]) for name in tensors):
                raise CaseError("a changed checkpoint was read in silence")
        return
    write_run(file, "fit", {"data": "rows.csv", "time": "t", "event": "e", "drop": ["x"], "depth": 1}, seed=0)
    content = json.dumps(forged(json.loads(file.read_text()), rng)).encode()
    file.write_bytes(content if rng.random() < 0.7 else mutated(content, rng))
    with one_sentence():
        read_run(file, "fit")
    run_command(["fit", "--config", str(file)])


# -- tables ---------------------------------------------------------------------------------------------------------
def odd_column(rng: np.random.Generator, n: int) -> Any:
    """A column as no one should keep it."""
    kinds: list[Callable[[], Any]] = [
        lambda: rng.normal(size=n),
        lambda: rng.choice(["a", "b", None], n),
        lambda: [f"{x:.1f}" for x in rng.normal(50, 9, n)],
        lambda: [*(f"{x:.1f}" for x in rng.normal(50, 9, n - 1)), "unknown"],
        lambda: [f"{x:.1f}".replace(".", ",") for x in rng.normal(50, 9, n)],
        lambda: [f"2020-01-{k % 28 + 1:02d}" for k in range(n)],
        lambda: [f"{k}%" for k in range(n)],
        lambda: [f"id{k}" for k in range(n)],
        lambda: rng.choice([np.nan, np.inf, -np.inf, 1e308, 0.0], n),
        lambda: np.ma.masked_array(rng.normal(size=n), mask=rng.random(n) < 0.3),
        lambda: rng.normal(size=n).astype(">f8"),
        lambda: [None] * n,
        lambda: rng.integers(0, 2, n).astype(bool),
        lambda: rng.choice(np.array(ODD[:9], dtype=object), n),
        lambda: [WEAPONS[k % len(WEAPONS)] for k in range(n)],
    ]
    return kinds[int(rng.integers(len(kinds)))]()


def tables(world: World, rng: np.random.Generator) -> None:
    """An odd table through Python, and now and then as bytes through a command."""
    n = int(rng.integers(1, 60))
    names = [*rng.choice([*WEAPONS, "x", "y", "z", "x"], int(rng.integers(1, 5)), replace=False)]
    table = {str(name): odd_column(rng, n) for name in names}
    time_, event = rng.exponential(size=n) + 0.1, rng.random(n) < 0.7
    if rng.random() < 0.3:
        time_ = odd_column(rng, n)
    with one_sentence():
        data = survival_data(table, time=time_, event=event)
        encoded = Preprocessor().fit(data.X).transform(data.X)
        if not np.isfinite(encoded.to_numpy()).all():
            raise CaseError("an encoded value is not finite")
    if rng.random() < 0.2:
        file = world.folder / "rows.csv"
        with contextlib.suppress(Exception):
            frame = pd.DataFrame({str(k): np.asarray(v, dtype=object) for k, v in table.items()})
            frame.assign(t=np.asarray(time_, dtype=object), e=event.astype(int)).to_csv(file, index=rng.random() < 0.2)
            content = file.read_bytes()
            file.write_bytes(mutated(content, rng) if rng.random() < 0.5 else content)
        quick = ["--depth", "1", "--l2", "1", "--shrinkage", "1", "--routing-l2", "1", "--restarts", "1"]
        streamed = ["--memory", "10MB"] if rng.random() < 0.4 else []
        out = ["--out", str(world.folder / "fitted")]
        run_command(["fit", str(file), "--time", "t", "--event", "e", "--max-iter", "20", *quick, *streamed, *out])


def names(world: World, rng: np.random.Generator) -> None:
    """Names of columns, levels and values in generated source and pages."""
    words = [str(rng.choice(WEAPONS)) + "".join(rng.choice(list(string.printable), 3)) for _ in range(5)]
    sources = [Source(words[0], None, 0.0), Source(words[1] + "!", (words[2], words[3] + "!"), words[2])]
    root = Branch(Rule(0, threshold=0.5), None, Branch(Rule(1, levels=(words[2],)), None, None))
    tree = HardTree.grow(sources, root, [[1.0], [2.0], [3.0]], [words[4]])
    scope: dict[str, Any] = {}
    exec(tree.to_python("leaf_of"), scope)
    row = {words[0]: 1.0, words[1] + "!": words[3] + "!"}
    if scope["leaf_of"](row) != tree.apply(pd.DataFrame([row]))[0]:
        raise CaseError(f"the source of {words} answers otherwise than the tree")
    page = explorer_page({"names": words})
    if page.count("</script>") != explorer_page({"names": []}).count("</script>") or "<!--" in page:
        raise CaseError(f"the page of {words} is broken")


# -- writers and readers --------------------------------------------------------------------------------------------
def kills(world: World, rng: np.random.Generator) -> None:
    """A process is killed while it saves over a model; a whole model stays."""
    folder = world.folder / "killed"
    world.models[0].save(folder)
    with writer(world, folder, 1):
        time.sleep(float(rng.uniform(0.0, 0.03)))
    check_whole(world, folder)


def readers(world: World, rng: np.random.Generator) -> None:
    """Twenty loads beside two processes that save."""
    folder = world.folder / "shared"
    world.models[0].save(folder)
    with writer(world, folder, 0), writer(world, folder, 1):
        for _ in range(20):
            check_whole(world, folder)


@contextlib.contextmanager
def writer(world: World, folder: Path, which: int) -> Iterator[None]:
    """A process that saves one of the models again and again, killed at the end."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            while True:
                world.models[which].save(folder)
        os._exit(1)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def check_whole(world: World, folder: Path) -> None:
    try:
        risk = load_model(folder).predict(world.rows)
    except Exception as error:
        raise CaseError(f"a model was lost: {type(error).__name__}: {error}") from error
    if not any(np.array_equal(risk, known) for known in world.risks):
        raise CaseError("a model came back changed")


# -- judging --------------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def one_sentence() -> Iterator[None]:
    """Errors of the package pass, in one line; any other is a failure."""
    try:
        yield
    except SoftsurvError as error:
        if not str(error):
            raise CaseError("an error says nothing") from error
    except CaseError:
        raise
    except Exception as error:
        raise CaseError(f"raw {type(error).__name__}: {error}") from error


def run_command(arguments: list[str]) -> None:
    """A command ends with a code of its own and without a traceback."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = command_line(arguments)
        except SystemExit as stop:
            code = int(stop.code or 0)
    text = err.getvalue()
    if code not in (0, 1, 2) or "Traceback" in text or "unexpected" in text:
        raise CaseError(f"{arguments} ended with {code}: {text.strip()[-300:]}")
