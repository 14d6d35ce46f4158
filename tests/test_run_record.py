"""Run records: what is written is read back, and what cannot be is refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, ModelFileError
from softsurv.run_record import differences, read_run, write_run


@pytest.fixture
def data():
    return SurvivalData(pd.DataFrame({"x": [1.0, 2.0, 3.0]}), time=[1.0, 2.0, 3.0], event=[1, 0, 1])


def test_a_record_is_read_back(data, tmp_path):
    config = {"depth": 2, "leaf": "weibull", "l2": 0.1, "grid": np.array([1.0, 2.0]), "out": tmp_path}
    file = write_run(tmp_path, "fit", config, data=data, seed=3, metrics={"ibs": np.float64(0.2)}, seconds=1.5)
    assert file == tmp_path / "run.json"
    for place in (tmp_path, file):
        record = read_run(place, "fit")
        assert record["config"] == {"depth": 2, "leaf": "weibull", "l2": 0.1, "grid": [1.0, 2.0], "out": str(tmp_path)}
        assert record["seed"] == 3
        assert record["metrics"] == {"ibs": 0.2}
        assert record["data"]["fingerprint"] == data.fingerprint()
        assert record["data"]["n"] == 3
        assert {"torch", "numpy", "python", "softsurv"} <= set(record["versions"])
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_differences_are_told(data, tmp_path):
    record = read_run(write_run(tmp_path / "a.json", "fit", {}, data=data))
    assert differences(record, data) == []
    record["versions"]["numpy"] = "0.1"
    (told,) = differences(record, data)
    assert told.startswith("numpy was 0.1, is ")
    (_, *told) = reversed(differences(record, data.take([0, 2])))
    assert told == ["the data differ from the recorded ones (3 rows then, 2 now)"]


def test_a_fingerprint_alone_is_enough(data, tmp_path):
    record = read_run(write_run(tmp_path, "fit", {}, data=data.fingerprint()))
    assert differences(record, data) == []


def test_what_json_does_not_hold_is_refused(tmp_path):
    with pytest.raises(InvalidParameterError, match="plain values"):
        write_run(tmp_path, "fit", {"model": object()})
    assert list(tmp_path.iterdir()) == []


def test_damaged_records_are_one_sentence(tmp_path):
    with pytest.raises(ModelFileError, match="existing run record"):
        read_run(tmp_path / "no.json")
    file = tmp_path / "run.json"
    for text in ("{", "[]", "{}", '{"config": 3}'):
        file.write_text(text)
        with pytest.raises(ModelFileError, match="no run record"):
            read_run(tmp_path)
    file.write_text(json.dumps({"config": {}, "format": 99, "softsurv": "9.9"}))
    with pytest.raises(ModelFileError, match=r"softsurv 9\.9; update"):
        read_run(tmp_path)
    file.write_text(json.dumps({"config": {}, "format": 1, "command": "tune"}))
    with pytest.raises(ModelFileError, match="'tune', not of 'fit'"):
        read_run(tmp_path, "fit")
