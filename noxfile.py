"""The suite on other Pythons, and on the lowest versions that pyproject.toml allows: ``nox -s tests-3.12``.

``nox`` alone runs each Python that is there with the newest versions. ``.ci/run`` runs the pinned versions of
constraints.txt.
"""

import os
import sys

import nox

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]

nox.options.sessions = ["tests"]
nox.options.error_on_missing_interpreters = False
nox.options.default_venv_backend = "uv|virtualenv"


def run_suite(session: nox.Session) -> None:
    """All tests; the slow ones where the arguments ask for them."""
    env = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    workers = "0" if sys.platform == "win32" else "2"
    session.run("pytest", "-n", workers, *(session.posargs or ["-m", "not slow"]), env=env)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The newest versions."""
    session.install(".[test]")
    run_suite(session)


@nox.session(python="3.11", venv_backend="uv")
def lowest(session: nox.Session) -> None:
    """The lowest versions of the declared ranges."""
    session.install("--resolution", "lowest-direct", ".[test]")
    run_suite(session)


@nox.session(python=PYTHONS)
def wheel(session: nox.Session) -> None:
    """Wheel and source distribution: checked, then the wheel used in an empty environment."""
    folder = session.create_tmp()
    session.install("build", "twine")
    session.run("python", "-m", "build", "--outdir", folder, ".")
    files = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    session.run("twine", "check", "--strict", *(name for name in files if name.endswith((".whl", ".tar.gz"))))
    session.install("--force-reinstall", *(name for name in files if name.endswith(".whl")))
    session.chdir(folder)
    session.run("softsurv", "datasets", "veterans", "--out", "veterans.csv")
    outcome = ("--time", "time", "--event", "event")
    session.run("softsurv", "fit", "veterans.csv", *outcome, "--depth", "1", "--leaf", "weibull", "--out", "model")
    session.run("softsurv", "evaluate", "model", "veterans.csv")
