"""Faults of the world around softsurv: Ctrl-C, a full disk, a table that changes, a browser, missing rights, a spoiled
kernel cache, a server that restarts."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import string
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _attack_cases import WEAPONS

from softsurv import SoftSurvivalTree, load_model
from softsurv.data.chunks import Table
from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators import stream
from softsurv.estimators.stream import fit_stream
from softsurv.explore import explorer, report_html

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


# -- pages in a browser ---------------------------------------------------------------------------------------------
PAYLOAD = "<img src=x onerror=\"document.title='taken'\">"
"""Changes the title where a page takes it for markup."""


def hostile_page(rng: np.random.Generator) -> str | None:
    """Explorer or report of a tree with hostile names and levels, in headless Chromium: whole, quiet, not taken."""
    program = shutil.which("chromium")
    if program is None:
        return "chromium is not installed (Debian package chromium)"
    weapons = [*WEAPONS, PAYLOAD, f"</script><script>{PAYLOAD}</script>", "');document.title='taken';('"]
    words = [str(rng.choice(weapons)) + "".join(rng.choice(list(string.printable), 3)) for _ in range(3)]
    n = 80
    rows = pd.DataFrame({f"a{words[0]}": rng.standard_normal(n), f"b{words[1]}": rng.choice([words[2], "other"], n)})
    outcome = (rng.random(n) < 0.8, rng.exponential(np.exp(-rows.iloc[:, 0])) + 0.1)
    tree = SoftSurvivalTree(**STREAMED).fit(rows, outcome)
    interactive = bool(rng.random() < 0.5)
    page = explorer(tree, (rows, outcome)).page if interactive else report_html(tree, (rows, outcome), n_boot=20)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "page.html")
        file.write_text(page, encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
        options += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        options += ["--enable-logging=stderr", f"--user-data-dir={folder}/profile", "--dump-dom"]
        done = subprocess.run([program, *options, f"file://{file}"], capture_output=True, text=True, timeout=60)
    if "CONSOLE" in done.stderr:
        return f"the page complains: {next(line for line in done.stderr.splitlines() if 'CONSOLE' in line)[-300:]}"
    if re.search(r"<title>[^<]*taken", done.stdout):
        return f"the names {words} took the page over"
    whole = ("<svg" in done.stdout or "<img" in done.stdout) and done.stdout.rstrip().endswith("</html>")
    return None if whole else "the page is not whole"


# -- rights, caches, servers ----------------------------------------------------------------------------------------
def no_rights(world: Any, rng: np.random.Generator) -> str | None:
    """A process that may write nowhere saves over a model, or compiles without a place for what it compiled."""
    saving = bool(rng.random() < 0.5)
    folder = world.folder / "locked"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    world.models[0].save(folder / "model")
    (folder / "shared.py").write_text(KERNEL)
    code = ["import shared"]
    if saving:
        code = ["from softsurv import load_model", f"model = load_model({str(folder / 'model')!r})", "try:"]
        code += [f"    model.save({str(folder / 'model')!r})", "except PermissionError as error:"]
        code += ["    raise SystemExit(0 if 'locked' in str(error.filename) else 2)", "raise SystemExit(1)"]
    for path in (folder / "model", folder):
        path.chmod(0o555)
    rights = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"] if os.geteuid() == 0 else []
    paths = os.pathsep.join([str(folder), os.environ["PYTHONPATH"]])
    done = subprocess.run(
        [*rights, sys.executable, "-B", "-c", "\n".join(code)], capture_output=True, text=True, timeout=120,
        cwd=folder, env=os.environ | {"HOME": str(folder), "XDG_CACHE_HOME": str(folder), "PYTHONPATH": paths},
    )  # fmt: skip
    for path in (folder, folder / "model"):
        path.chmod(0o755)
    if done.returncode or "Traceback" in done.stderr:
        return f"{'saving' if saving else 'compiling'} ended with {done.returncode}: {done.stderr.strip()[-300:]}"
    if not saving and "NUMBA_CACHE_DIR" not in done.stderr:
        return "nothing is said of a kernel cache that cannot be written"
    return None if np.array_equal(load_model(folder / "model").predict(world.rows), world.risks[0]) else "lost"


KERNEL = """
from softsurv.kernel_cache import njit

@njit(cache=True)
def double(x):
    return 2 * x

assert double(3) == 6
"""


def shared_cache(rng: np.random.Generator) -> str | None:
    """Three processes compile and read one function while a fourth hand flips, cuts and removes the cached files."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "shared.py").write_text(KERNEL)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([folder, os.environ["PYTHONPATH"]])}
        start = [sys.executable, "-c", "import shared"]
        running = [
            subprocess.Popen(start, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(3)
        ]
        while any(process.poll() is None for process in running):
            time.sleep(0.02)
            for file in Path(folder, "__pycache__").glob("shared.double*"):
                with contextlib.suppress(OSError):
                    spoil(file, rng)
        for process in running:
            _, said = process.communicate()
            if process.returncode:
                return f"a process ended with {process.returncode}: {said.strip()[-300:]}"
    return None


def spoil(file: Path, rng: np.random.Generator) -> None:
    """Flip a byte, cut the end off, or remove the file."""
    data = bytearray(file.read_bytes())
    if not data or rng.random() < 0.3:
        file.unlink()
    elif rng.random() < 0.5:
        file.write_bytes(data[: int(rng.integers(len(data)))])
    else:
        data[int(rng.integers(len(data)))] ^= 255
        file.write_bytes(data)


def restarted_server() -> str | None:
    """The suite's study of two workers whose database is restarted twice; it needs PostgreSQL and its driver."""
    root = Path(__file__).parents[1]
    test = f"{root}/tests/tune/test_lost_workers.py::test_workers_outlast_a_restart_of_postgresql"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    return None if "1 passed" in done.stdout else f"the study did not outlast them: {done.stdout.strip()[-300:]}"
