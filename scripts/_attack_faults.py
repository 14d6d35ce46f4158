"""Faults of the machine while softsurv works: Ctrl-C, a disk that takes no more, a table that changes as it is read."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from softsurv import SoftSurvivalTree, load_model
from softsurv.data.chunks import Table
from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators import stream
from softsurv.estimators.stream import fit_stream

STREAMED = {"depth": 1, "l2": 1.0, "shrinkage": 1.0, "routing_l2": 0.1, "n_restarts": 1, "device": "cpu"}
LONGEST = 12.0
"""Seconds after which a Ctrl-C comes at the latest: beyond the end of the fit on an idle machine."""


def interrupted(folder: Path, rng: np.random.Generator) -> str | None:
    """A Ctrl-C at any moment of ``softsurv fit``; what went wrong, or None."""
    rows = folder / "interrupted.csv"
    n = 2000
    frame = pd.DataFrame(rng.standard_normal((n, 8)), columns=[f"v{k}" for k in range(8)])
    frame.assign(t=rng.exponential(size=n) + 0.1, e=rng.integers(0, 2, n)).to_csv(rows, index=False)
    model = str(rng.choice(["soft", "optimal"]))
    out = folder / f"interrupted-{rng.integers(1 << 40)}"
    command = [sys.executable, "-m", "softsurv", "fit", str(rows), "--time", "t", "--event", "e", "--model", model]
    started = subprocess.Popen([*command, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(float(rng.uniform(0.0, LONGEST)))
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=60)
    if started.returncode not in (0, 130, -signal.SIGINT) or "Traceback" in err:
        return f"{model} ended with {started.returncode}: {err.strip()[-300:]}"
    if out.exists():
        load_model(out)
    return None


def full_disk(save: SoftSurvivalTree, folder: Path, known: np.ndarray, rows: pd.DataFrame) -> str | None:
    """A save for which there is no room over a model that is there: one sentence, and the old model stays."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
        code = 3
        try:
            save.save(folder)
            code = 1
        except OSError as error:
            code = 0 if error.filename and str(folder) in str(error.filename) else 2
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        what = {1: "said nothing", 2: "did not name the file"}.get(code, f"ended with {code}")
        return f"a save without room {what}"
    return None if np.array_equal(load_model(folder).predict(rows), known) else "the old model is gone"


def changing_table(folder: Path, rng: np.random.Generator) -> str | None:
    """One byte of a csv file changes between two readings, size and time of the file kept."""
    path = folder / "changing.csv"
    n = int(rng.integers(50, 400))
    frame = pd.DataFrame({"u": rng.standard_normal(n), "v": rng.standard_normal(n)})
    frame.assign(t=rng.exponential(size=n) + 0.1, e=rng.random(n) < 0.7).to_csv(path, index=False, float_format="%.6f")
    learn = stream.fit_preprocessor

    def between(*arguments: object) -> object:
        encoder, facts, content = learn(*arguments), path.stat(), bytearray(path.read_bytes())
        digits = [k for k, byte in enumerate(content) if byte in b"12345678"]
        content[digits[int(rng.integers(len(digits)))]] += 1
        with path.open("r+b") as file:
            file.write(content)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        return encoder

    stream.fit_preprocessor = between
    try:
        fit_stream(SoftSurvivalTree(**STREAMED), Table(path, "t", "e", chunk_rows=64), max_sweeps=1)
    except InvalidSurvivalDataError as error:
        return None if "while it is read twice" in str(error) else f"another refusal: {error}"
    finally:
        stream.fit_preprocessor = learn
    return "a table changed between two readings in silence"
