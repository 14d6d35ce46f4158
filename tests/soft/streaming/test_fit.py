"""A soft tree from streamed rows."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.streamed import tree
from sklearn.exceptions import ConvergenceWarning

from softsurv import load_model
from softsurv.data.chunks import Table
from softsurv.data.readers import survival_data
from softsurv.estimators.stream import fit_stream


@pytest.mark.parametrize("memory", ["1GB", 0])
def test_a_streamed_fit_equals_one_in_memory(frame, parquet, memory, tmp_path):
    data = survival_data(frame, time="t", event="died")
    inside = tree(max_iter=400).fit(data)
    model = fit_stream(tree(max_iter=400), Table(parquet, "t", "died", chunk_rows=64), memory=memory, max_sweeps=10)
    assert model.report_.objective == pytest.approx(inside.report_.objective, abs=1e-4)
    assert model.report_.details["rows"] == len(frame)
    assert model.preprocessor_.get_feature_names_out().tolist() == inside.preprocessor_.get_feature_names_out().tolist()
    assert model.censoring_.values == pytest.approx(inside.censoring_.values)
    assert model.unique_times_.tolist() == inside.unique_times_.tolist()
    assert model.spread_ == pytest.approx(inside.spread_)
    assert model.leaf_table_.n.sum() == len(frame)
    assert model.leaf_table_.n.tolist() == np.bincount(model.apply(data.X)).tolist()
    assert model.evaluate(data)["harrell_c"] == pytest.approx(inside.evaluate(data)["harrell_c"], abs=0.02)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.predict(data.X) == pytest.approx(model.predict(data.X))
    assert loaded.export_text() == model.export_text()


def test_a_small_sample_starts_a_full_fit(parquet, frame):
    table = Table(parquet, "t", "died", chunk_rows=64)
    model = fit_stream(tree(), table, sample_rows=120)
    assert model.report_.status == "converged"  # as by default nearly every fit does
    assert list(model.report_.trace) == sorted(model.report_.trace, reverse=True)
    assert model.leaf_table_.n.sum() == len(frame)


def test_a_spent_budget_ends_after_the_sweep(parquet):
    with pytest.warns(ConvergenceWarning, match="ended at its time limit"):
        model = fit_stream(tree(time_limit=0.0), Table(parquet, "t", "died"), max_sweeps=5)
    assert model.report_.status == "time_limit"
    assert len(model.report_.trace) == 1


def test_the_last_sweep_is_told_where_it_ended_the_training(parquet):
    """It was in the report alone, while other fits that reach a limit warn."""
    table = Table(parquet, "t", "died")
    with pytest.warns(ConvergenceWarning, match=r"took all its 1 sweeps without converging; raise max_sweeps"):
        model = fit_stream(tree(), table, max_sweeps=1)
    assert model.report_.status == "iteration_limit"


def test_what_a_streamed_fit_calls_is_made_ready_before_its_clock_starts(parquet, monkeypatch):
    made = []
    monkeypatch.setattr("softsurv.estimators.stream.ready", made.append)
    fit_stream(tree(), Table(parquet, "t", "died"))
    assert [one.depth for one in made] == [tree().depth]
