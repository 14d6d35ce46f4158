"""Importing the package is light: heavy libraries load on first use."""

import subprocess
import sys

import pytest

import softsurv
from softsurv import explore

HEAVY = ("torch", "pandas", "sklearn", "sksurv", "scipy", "numba", "lifelines", "matplotlib", "optuna")


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_import_loads_nothing_heavy():
    loaded = run("import softsurv, sys; print(*sys.modules)")
    assert "softsurv" in loaded
    assert sorted(set(HEAVY) & set(loaded)) == []


def test_public_names_load_on_first_use():
    loaded = run("import softsurv, sys; softsurv.SurvivalData; print(*sys.modules)")
    assert "softsurv.data.survival_data" in loaded
    assert sorted({"torch", "sksurv", "numba", "matplotlib", "optuna"} & set(loaded)) == []


@pytest.mark.parametrize(
    ("name", "late"),
    [("SoftSurvivalTree", {"torch", "numba"}), ("OptimalSurvivalTree", {"torch"}), ("compare", {"torch", "numba"})],
)
def test_naming_a_class_leaves_the_slow_libraries_to_the_fit(name, late):
    """These take a second each; `scripts/bench_start.py` measures what is left."""
    loaded = run(f"import softsurv, sys; softsurv.{name}; print(*sys.modules)")
    assert sorted((late | {"sksurv", "lifelines", "matplotlib", "optuna"}) & set(loaded)) == []


def test_every_public_name_is_there():
    assert set(softsurv.__all__) == set(dir(softsurv))
    assert set(explore.__all__) == set(dir(explore))
    for name in softsurv.__all__:
        assert getattr(softsurv, name) is not None


def test_other_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'softsurv' has no attribute 'SoftTreee'"):
        _ = softsurv.SoftTreee
