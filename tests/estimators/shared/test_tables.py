"""Tables of predictions: blocks of rows, and what is refused before memory is taken."""

import math

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree, SoftSurvivalTree, load_dataset
from softsurv.cli import main
from softsurv.errors import NotEnoughMemoryError
from softsurv.estimators.shared import tables

TREES = {
    "soft": lambda: SoftSurvivalTree(depth=1, leaf="weibull", l2=0.1, shrinkage=0.1, routing_l2=0.1),
    "optimal": lambda: OptimalSurvivalTree(max_depth=1),
    "km": lambda: OptimalSurvivalTree(max_depth=1, leaf="km", shrinkage=0),
}
CURVES = ["survival_function", "cumulative_hazard_function", "hazard_function"]


@pytest.fixture(scope="module")
def data():
    return load_dataset("veterans")


@pytest.fixture(scope="module", params=["soft", "optimal"])
def tree(request, data):
    return TREES[request.param]().fit(data)


@pytest.mark.parametrize("name", CURVES)
def test_blocks_of_rows_change_no_prediction(name, tree, data, monkeypatch):
    predict, times = getattr(tree, f"predict_{name}"), [1.0, 30.0, 100.0]
    whole = predict(data.X, times=times)
    monkeypatch.setattr(tables, "CELLS", 30)  # ten rows, and the last block shorter
    np.testing.assert_allclose(predict(data.X, times=times), whole, rtol=1e-13)


@pytest.mark.parametrize("when", ["times", "ahead"])
@pytest.mark.parametrize("same", [True, False], ids=["one age", "ages of rows"])
def test_blocks_of_rows_change_no_conditional_survival(when, same, tree, data, monkeypatch):
    after = 20.0 if same else np.linspace(0, 80, len(data.X))
    whole = tree.predict_conditional_survival(data.X, after, **{when: [10.0, 40.0]})
    monkeypatch.setattr(tables, "CELLS", 20)
    np.testing.assert_allclose(
        tree.predict_conditional_survival(data.X, after, **{when: [10.0, 40.0]}), whole, rtol=1e-13
    )


@pytest.mark.parametrize("name", CURVES)
def test_a_table_beyond_memory_is_refused_with_a_remedy(name, tree, data):
    """The system ended the process, or numpy told bytes alone; an array of so many times is small."""
    times = np.linspace(1.0, 100.0, 2_000_000)
    rows = data.X.iloc[np.zeros(200_000, dtype=int)]
    sentence = (
        r"of 200000 rows at 2000000 times take 3.2e\+03 GB of memory, and .* is free; give fewer times, or predict"
    )
    with pytest.raises(NotEnoughMemoryError, match=sentence):
        getattr(tree, f"predict_{name}")(rows, times=times)
    with pytest.raises(MemoryError, match=sentence):
        tree.predict_conditional_survival(rows, 3.0, times=times)


@pytest.mark.parametrize("name", ["soft", "km"])
def test_limits_take_two_tables(name, data, monkeypatch):
    monkeypatch.setattr(tables, "SMALL", 0)
    fitted, times = TREES[name]().fit(data), np.arange(1, 21)
    monkeypatch.setattr(tables, "free_memory", lambda: 8.0 * len(data.X) * len(times))
    assert fitted.predict_survival_function(data.X, times).shape == (len(data.X), len(times))
    with pytest.raises(NotEnoughMemoryError, match="at 20 times take"):
        fitted.predict_survival_interval(data.X, times)


def test_blocks_of_rows_change_no_limits(data, monkeypatch):
    fitted, times = TREES["soft"]().fit(data), [0, 30, 10]
    whole = fitted.predict_survival_interval(data.X, times)
    monkeypatch.setattr(tables, "CELLS", 30)
    np.testing.assert_allclose(fitted.predict_survival_interval(data.X, times), whole, rtol=1e-12)


def test_incidences_take_a_table_for_each_cause(data, monkeypatch):
    cause = np.where(data.y["event"], 1 + np.arange(len(data.X)) % 2, 0)
    fitted = OptimalSurvivalTree(max_depth=1).fit(data.X, time=data.y["time"], cause=cause)
    monkeypatch.setattr(tables, "SMALL", 0)
    monkeypatch.setattr(tables, "free_memory", lambda: 8.0 * len(data.X) * 4)
    assert fitted.predict_cumulative_incidence(data.X, [1, 2]).shape == (len(data.X), 2, 2)
    with pytest.raises(NotEnoughMemoryError, match="at 4 times take"):
        fitted.predict_cumulative_incidence(data.X, [1, 2, 3, 4], cause=1)


def test_time_lost_takes_no_table_of_times(data, monkeypatch):
    """It was refused where rows by all training times did not fit, which it never made."""
    cause = np.where(data.y["event"], 1 + np.arange(len(data.X)) % 2, 0)
    fitted = OptimalSurvivalTree(max_depth=1).fit(data.X, time=data.y["time"], cause=cause)
    monkeypatch.setattr(tables, "SMALL", 0)
    monkeypatch.setattr(tables, "free_memory", lambda: 8.0 * len(data.X) * 4)
    assert len(fitted.unique_times_) > 4
    assert fitted.predict_restricted_time_lost(data.X).shape == (len(data.X), 2)


def test_numpys_own_refusal_is_the_same_sentence(monkeypatch):
    monkeypatch.setattr(tables, "free_memory", lambda: math.inf)  # as where the system does not tell
    with pytest.raises(
        NotEnoughMemoryError, match=r"of 1000000 rows at 100000000 times take 8e\+05 GB of memory, and less"
    ):
        tables.new_table(10**6, 10**8)


def test_encoded_rows_beyond_memory_are_refused_with_a_remedy(monkeypatch):
    """A category of many levels is many columns: numpy told bytes alone, or the system ended the process."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"site": rng.choice([f"s{k}" for k in range(9)], 60), "x": rng.normal(size=60)})
    tree = SoftSurvivalTree(depth=0, leaf="weibull", l2=1.0).fit(X, (np.ones(60, dtype=bool), rng.exponential(size=60)))
    monkeypatch.setattr(tables, "SMALL", 0)
    monkeypatch.setattr(tables, "free_memory", lambda: 8.0 * 2 * 10 * 40)
    assert tree.predict(X[:40]).shape == (40,)
    for predict in (tree.predict, tree.apply, tree.predict_median):
        with pytest.raises(NotEnoughMemoryError, match=r"60 rows in 10 encoded columns take .* is free; predict"):
            predict(X)


def test_the_command_says_it_too(data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    TREES["optimal"]().fit(data).save("m")
    data.X.to_csv("x.csv", index=False)
    monkeypatch.setattr(tables, "SMALL", 0)
    monkeypatch.setattr(tables, "free_memory", lambda: 10.0)
    assert main(["predict", "m", "x.csv", "--times", "10"]) == 1
    assert "give fewer times, or predict some of the rows at a time" in capsys.readouterr().err


@pytest.mark.parametrize(("files", "free"), [
    ({"meminfo": "MemTotal: 9 kB\nMemAvailable:    3 kB\nSwapFree:  1 kB\n"}, 4096.0),
    ({"meminfo": "MemTotal: 9 kB\nMemFree: 3 kB\n"}, math.inf),  # an old kernel
    ({"meminfo": "MemAvailable: 3 kB\n", "memory.max": "max\n", "memory.stat": "anon 5\n"}, 3072.0),
    ({"meminfo": "MemAvailable: 3 kB\n", "memory.max": "1000\n", "memory.stat": "anon 100\nfile 900\n"}, 900.0),
    ({"memory.max": "", "memory.stat": "anon 5\n"}, math.inf),
    ({"memory.max": "1000\n", "memory.stat": ""}, math.inf),
    ({}, math.inf),
])  # fmt: skip
def test_free_memory_is_the_least_of_machine_and_container(files, free, tmp_path, monkeypatch):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(tables, "MACHINE", tmp_path / "meminfo")
    monkeypatch.setattr(tables, "CONTAINER", tmp_path)
    assert tables.free_memory() == free
