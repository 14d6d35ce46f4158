"""Saved models: the same predictions come back, damage is refused, no code runs, no row is kept."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError

from softsurv import OptimalSurvivalTree, SoftSurvivalTree, load_model
from softsurv.errors import InvalidParameterError, ModelFileError
from softsurv.hazards import family_names, get_family
from softsurv.persistence import META, TENSORS

QUICK = {"depth": 2, "l2": 1.0, "shrinkage": 1.0, "routing_l2": 0.1, "n_restarts": 2, "device": "cpu"}
GRID = np.array([0.0, 0.5, 3.0, 40.0])


def make_rows(n: int = 90, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.normal(60.0, 9.0, n),
            "dose": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(2.0, 3.0, n)),
            "arm": rng.choice(["control", "new", "both"], n),
        }
    )
    time = 10 * rng.weibull(1.5, n) * np.exp(-(X["age"] - 60) / 20) + 0.01
    return X, (rng.random(n) < 0.7, time)


def fitted(**changes) -> SoftSurvivalTree:
    X, y = make_rows()
    return SoftSurvivalTree(**(QUICK | changes)).fit(X, y)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved model's files: read, never written."""
    folder = tmp_path_factory.mktemp("model")
    fitted().save(folder)
    return {name: (folder / name).read_bytes() for name in (META, TENSORS)}


@pytest.fixture
def folder(saved, tmp_path):
    """A copy of the saved model, free to be damaged."""
    for name, content in saved.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def edit(folder, **changes) -> None:
    """Change the JSON as a forger would, checksum and all; dotted names reach inside."""
    meta = json.loads((folder / META).read_text())
    meta.pop("checksum")
    for path, value in changes.items():
        *parents, last = path.split("__")
        at = meta
        for parent in parents:
            at = at[parent]
        at[last] = value
    meta["checksum"] = hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()
    (folder / META).write_text(json.dumps(meta))


# -- round trips ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("family", family_names())
def test_every_family_comes_back_bit_by_bit(family, tmp_path):
    model = fitted(leaf=family)
    model.save(tmp_path)
    again = load_model(tmp_path)
    X, y = make_rows(seed=1)
    assert np.array_equal(again.predict_survival_function(X, GRID), model.predict_survival_function(X, GRID))
    assert np.array_equal(again.predict_hazard_function(X, GRID[1:]), model.predict_hazard_function(X, GRID[1:]))
    assert np.array_equal(again.predict_median(X), model.predict_median(X))
    assert np.array_equal(again.predict(X, path="soft"), model.predict(X, path="soft"))
    assert np.array_equal(again.apply(X), model.apply(X))
    assert again.evaluate(X, y) == model.evaluate(X, y)


def test_everything_readable_comes_back(tmp_path):
    model = fitted(random_state=3)
    model.save(tmp_path)
    again = load_model(tmp_path)
    assert again.export_text() == model.export_text()
    assert again.export_dot() == model.export_dot()
    assert again.report_ == model.report_
    assert again.candidate_ == model.candidate_
    assert again.get_params() == model.get_params() | {"device": "auto"}
    assert list(again.feature_names_in_) == list(model.feature_names_in_)
    assert again.n_features_in_ == 3
    assert np.array_equal(again.unique_times_, model.unique_times_)


def test_the_table_of_a_selection_comes_back(tmp_path):
    model = fitted(shrinkage=None, depth=1)
    model.save(tmp_path)
    pd.testing.assert_frame_equal(load_model(tmp_path).selection_, model.selection_)


def test_a_loaded_model_can_be_fitted_again(folder):
    model = load_model(folder)
    X, y = make_rows()
    curves = model.predict_survival_function(X, GRID)
    assert np.allclose(model.fit(X, y).predict_survival_function(X, GRID), curves, atol=1e-8)


@pytest.mark.parametrize(
    "changes",
    [
        {"depth": 0},
        {"dtype": "float32"},
        {"leaf": "spline_ph", "n_knots": 4},
        {"leaf": get_family("spline_po", n_knots=1)},
        {"depth": 3},
    ],
    ids=["single leaf", "float32", "more knots", "a family of one's own settings", "depth 3"],
)
def test_other_shapes_and_types_come_back(changes, tmp_path):
    model = fitted(**changes)
    model.save(tmp_path)
    again = load_model(tmp_path)
    X, _ = make_rows(seed=1)
    assert again.tree_.leaves.dtype == model.tree_.leaves.dtype
    assert np.array_equal(again.predict_survival_function(X, GRID), model.predict_survival_function(X, GRID))


@pytest.mark.parametrize(
    "arguments",
    [
        {"max_depth": 2},
        {"max_depth": 2, "leaf": "km"},
        {"max_depth": 2, "tune": "cv"},
        {"objective": "ibs", "max_depth": 2, "complexity": 0.01},
        {"objective": "ibs", "max_depth": 1, "leaf": "ipcw"},
        {"max_depth": 0},
    ],
    ids=str,
)
def test_optimal_trees_come_back(arguments, tmp_path):
    X, y = make_rows()
    model = OptimalSurvivalTree(**arguments, min_samples_leaf=5, thresholds=4).fit(X, y)
    model.save(tmp_path)
    again = load_model(tmp_path)
    new, outcome = make_rows(seed=1)
    assert np.array_equal(again.predict_survival_function(new, GRID), model.predict_survival_function(new, GRID))
    assert np.array_equal(again.predict_median(new), model.predict_median(new))
    assert np.array_equal(again.apply(new), model.apply(new))
    assert again.evaluate(new, outcome) == model.evaluate(new, outcome)
    assert again.export_text() == model.export_text()
    assert (again.status_, again.objective_, again.gap_) == (model.status_, model.objective_, model.gap_)
    assert again.get_params() == model.get_params()


def test_what_only_training_needed_is_not_saved(tmp_path):
    X, y = make_rows()
    optimal = OptimalSurvivalTree(max_depth=1).fit(X, y)
    model = fitted(init=optimal, depth=1)
    model.save(tmp_path / "soft")
    assert load_model(tmp_path / "soft").init == "auto"
    assert np.array_equal(load_model(tmp_path / "soft").predict(X), model.predict(X))
    guess = fitted(depth=0).predict_survival_function(X, np.unique(y[1]))
    guided = OptimalSurvivalTree("ibs", max_depth=1, reference=guess).fit(X, y)
    guided.save(tmp_path / "optimal")
    assert load_model(tmp_path / "optimal").reference is None
    assert (tmp_path / "optimal" / META).stat().st_size < 20_000


def test_numeric_features_without_preprocessing_or_names(tmp_path):
    X, y = make_rows()
    x = X[["age"]].to_numpy()
    model = SoftSurvivalTree(**QUICK, preprocess=False).fit(x / 100, y)
    model.save(tmp_path)
    again = load_model(tmp_path)
    assert not hasattr(again, "feature_names_in_")
    assert np.array_equal(again.predict(x / 100), model.predict(x / 100))


def test_saving_again_replaces_the_model(folder):
    model = fitted(depth=0)
    model.save(folder)
    assert load_model(folder).depth_ == 0
    assert sorted(p.name for p in folder.iterdir()) == [META, TENSORS]


def test_folders_are_made_and_others_may_read(tmp_path):
    old = os.umask(0o022)
    try:
        fitted(depth=0).save(tmp_path / "a" / "b")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a" / "b" / META).stat().st_mode) == 0o644


# -- what is refused ------------------------------------------------------------------------------------------------
def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        SoftSurvivalTree().save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "model").write_text("")
    with pytest.raises(InvalidParameterError, match="path must be a folder"):
        fitted(depth=0).save(tmp_path / "model")


def test_a_missing_folder(tmp_path):
    with pytest.raises(ModelFileError, match=r"holds no model: there is no model\.json in it; check the path"):
        load_model(tmp_path / "nowhere")


def test_a_file_given_for_the_folder(folder):
    with pytest.raises(ModelFileError, match="holds no model"):
        load_model(folder / META)


def test_missing_tensors(folder):
    (folder / TENSORS).unlink()
    with pytest.raises(ModelFileError, match=r"lacks tensors\.safetensors; copy the whole model folder"):
        load_model(folder)


@pytest.mark.parametrize("place", [0, 9, 0.5, -1])
def test_one_damaged_byte_of_the_tensors(folder, place):
    data = bytearray((folder / TENSORS).read_bytes())
    data[int(place * len(data)) if isinstance(place, float) else place] ^= 1
    (folder / TENSORS).write_bytes(data)
    with pytest.raises(ModelFileError, match="is damaged or of another model; save the model again"):
        load_model(folder)


def test_tensors_cut_short_under_a_forged_checksum(folder):
    data = (folder / TENSORS).read_bytes()[:-8]
    (folder / TENSORS).write_bytes(data)
    edit(folder, tensors_sha256=hashlib.sha256(data).hexdigest())
    with pytest.raises(ModelFileError, match="is incomplete"):
        load_model(folder)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_json_cut_short(folder, share):
    text = (folder / META).read_text()
    (folder / META).write_text(text[: int(share * len(text))])
    with pytest.raises(ModelFileError, match=r"model\.json in .* is damaged"):
        load_model(folder)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"[" * 100_000], ids=["not UTF-8", "endless nesting"])
def test_json_that_is_none(folder, content):
    (folder / META).write_bytes(content)
    with pytest.raises(ModelFileError, match="is damaged"):
        load_model(folder)


@pytest.mark.parametrize("content", ["[]", "1", "{}", '{"format": "1"}', '{"format": true}', '{"format": 0}'])
def test_json_of_something_else(folder, content):
    (folder / META).write_text(content)
    with pytest.raises(ModelFileError, match="is not a softsurv model"):
        load_model(folder)


def test_a_number_changed_in_the_json(folder):
    text = (folder / META).read_text()
    fill = json.loads(text)["state"]["preprocessor"]["sources"][0]["fill"]
    (folder / META).write_text(text.replace(repr(fill), repr(fill + 1)))
    with pytest.raises(ModelFileError, match="was changed after it was saved"):
        load_model(folder)


def test_a_newer_format(folder):
    text = (folder / META).read_text().replace('"format": 1', '"format": 7', 1)
    (folder / META).write_text(text.replace('"softsurv": "', '"softsurv": "9.', 1))
    with pytest.raises(ModelFileError, match=r"written by softsurv 9\..* in format 7, .* up to 1; update softsurv"):
        load_model(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"parameters": {"depht": 1}},
        {"parameters": None},
        {"state": {}},
        {"state__depth": 1},
        {"state__report__status": "splendid"},
        {"state__candidate": {"family": "weibull"}},
        {"state__family": ["weibull"]},
        {"horizon": {"float": "soon"}},
        {"estimator": ["SoftSurvivalTree"]},
    ],
    ids=str,
)
def test_json_that_does_not_fit_the_tensors(folder, changes):
    edit(folder, **changes)
    with pytest.raises(ModelFileError, match=r"is incomplete|incomplete or damaged"):
        load_model(folder)


def test_the_device_must_exist(folder):
    with pytest.raises(InvalidParameterError, match='device must be "auto", "cpu" or "cuda"'):
        load_model(folder, device="abacus")
    if not torch.cuda.is_available():
        with pytest.raises(InvalidParameterError, match="torch sees no CUDA device"):
            load_model(folder, device="cuda")


def test_the_device_is_chosen_at_loading(folder):
    model = load_model(folder, device="cpu")
    assert model.get_params()["device"] == "cpu"
    assert model.tree_.leaves.device.type == "cpu"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_model_moves_between_devices(folder):
    X, _ = make_rows(seed=1)
    on_cpu, on_gpu = load_model(folder, device="cpu"), load_model(folder, device="cuda")
    assert on_gpu.tree_.leaves.device.type == "cuda"
    assert np.allclose(on_gpu.predict_survival_function(X, GRID), on_cpu.predict_survival_function(X, GRID), atol=1e-9)


# -- no code, no rows -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["os.system", "softsurv.cli", "subprocess.Popen", "__import__"])
def test_names_of_code_are_refused(folder, name):
    edit(folder, estimator=name)
    with pytest.raises(ModelFileError, match=f"names the unknown estimator '{name}'; update softsurv"):
        load_model(folder)


@pytest.mark.parametrize("place", ["state__family", "parameters__leaf"])
def test_a_family_is_looked_up_never_imported(folder, place):
    edit(folder, **{place: "os.system"})
    if place == "state__family":
        with pytest.raises(InvalidParameterError, match=r"leaf must be one of exponential, .*, got 'os.system'"):
            load_model(folder)
    else:  # the argument of a later fit: text, checked there
        assert load_model(folder).leaf == "os.system"


def test_loading_runs_nothing_outside_the_package(folder, monkeypatch):
    load_model(folder)  # the imports are done
    marks = []

    def note(event, args):
        if active and event in {
            "os.system",
            "os.exec",
            "subprocess.Popen",
            "exec",
            "pickle.find_class",
            "socket.connect",
        }:
            marks.append(event)

    active = False
    sys.addaudithook(note)
    active = True
    try:
        load_model(folder)
    finally:
        active = False
    assert marks == []


def test_there_is_no_pickle_in_the_files(saved):
    assert set(saved) == {META, TENSORS}
    json.loads(saved[META])
    header = int.from_bytes(saved[TENSORS][:8], "little")
    names = json.loads(saved[TENSORS][8 : 8 + header])
    assert all(set(entry) == {"dtype", "shape", "data_offsets"} for entry in names.values())
    assert 8 + header + max(entry["data_offsets"][1] for entry in names.values()) == len(saved[TENSORS])


def test_no_training_row_is_in_the_files(saved):
    """Neither a raw nor an encoded value of a continuous feature occurs, save what summarises the column."""
    X, _ = make_rows()
    model = fitted()
    encoded = model.preprocessor_.transform(X)
    text, data = saved[META].decode(), saved[TENSORS]
    for column in ("age", "dose"):
        raw = X[column].dropna()
        inner = raw[(raw > raw.min()) & (raw < raw.max())]
        for row, value in inner.items():
            scaled = encoded.loc[row, column]
            assert repr(float(value)) not in text
            assert repr(float(scaled)) not in text
            for number in (value, scaled):
                assert np.float64(number).tobytes() not in data
                assert np.float32(number).tobytes() not in data
    assert "control" in text  # levels are kept: they name columns
