"""Saved models: the same predictions come back, damage is refused, no code runs, no row is kept."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import save as save_tensors
from sklearn.exceptions import NotFittedError

from softsurv import OptimalSurvivalTree, SoftSurvivalTree, load_model
from softsurv.errors import InvalidParameterError, ModelFileError, NumericalError
from softsurv.files import replace_file, seal, unseal
from softsurv.hazards import family_names, get_family
from softsurv.persistence import MAX_BYTES, MODEL, OLD_META, OLD_TENSORS

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
    """A saved model's file: read, never written."""
    folder = tmp_path_factory.mktemp("model")
    fitted().save(folder)
    return (folder / MODEL).read_bytes()


@pytest.fixture
def folder(saved, tmp_path):
    """A copy of the saved model, free to be damaged."""
    (tmp_path / MODEL).write_bytes(saved)
    return tmp_path


@pytest.fixture
def old(folder):
    """The same model as the pair of files of format 1."""
    arrays, meta = content(folder)
    data = save_tensors({name: np.ascontiguousarray(value) for name, value in arrays.items()})
    meta |= {"format": 1, "tensors_sha256": hashlib.sha256(data).hexdigest()}
    meta["checksum"] = hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()
    (folder / OLD_META).write_text(json.dumps(meta))
    (folder / OLD_TENSORS).write_bytes(data)
    (folder / MODEL).unlink()
    return folder


def content(folder):
    """Arrays and JSON values of a saved model."""
    arrays, note = unseal(folder / MODEL, MAX_BYTES)
    return arrays, json.loads(note)


def edit(folder, **changes) -> None:
    """Change the JSON as a forger would, checksum and all; double underscores reach inside."""
    arrays, meta = content(folder)
    for path, value in changes.items():
        *parents, last = path.split("__")
        at = meta
        for parent in parents:
            at = at[parent]
        at[last] = value
    replace_file(folder / MODEL, seal(arrays, json.dumps(meta)))


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


def test_the_only_column_may_be_called_pairs(tmp_path):
    X, y = make_rows()
    model = SoftSurvivalTree(**QUICK).fit(X[["age"]].set_axis(["pairs"], axis=1), y)
    model.save(tmp_path)
    assert load_model(tmp_path).ranges_ == model.ranges_ == {"pairs": (X["age"].min(), X["age"].max())}


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
    assert (tmp_path / "optimal" / MODEL).stat().st_size < 30_000


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
    assert [p.name for p in folder.iterdir()] == [MODEL]


def test_folders_are_made_and_others_may_read(tmp_path):
    old = os.umask(0o022)
    try:
        fitted(depth=0).save(tmp_path / "a" / "b")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a" / "b" / MODEL).stat().st_mode) == 0o644


# -- what is refused ------------------------------------------------------------------------------------------------
def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        SoftSurvivalTree().save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "model").write_text("")
    with pytest.raises(InvalidParameterError, match="path must be a folder"):
        fitted(depth=0).save(tmp_path / "model")


@pytest.mark.parametrize("path", [None, 3, b"model", ["model"]])
def test_what_names_no_folder_is_refused(path):
    with pytest.raises(InvalidParameterError, match="path must be the folder of a model, got"):
        load_model(path)


def test_a_missing_folder(tmp_path):
    with pytest.raises(ModelFileError, match=r"holds no model: there is no model\.safetensors in it; check the path"):
        load_model(tmp_path / "nowhere")


def test_a_file_given_for_the_folder(folder):
    with pytest.raises(ModelFileError, match=r"must be the folder that holds model\.safetensors, got a file; pass it"):
        load_model(folder / MODEL)


@pytest.mark.parametrize("place", [0, 9, 0.1, 0.3, 0.5, 0.7, 0.9, -1])
def test_one_damaged_byte(folder, place):
    data = bytearray((folder / MODEL).read_bytes())
    data[int(place * len(data)) if isinstance(place, float) else place] ^= 1
    (folder / MODEL).write_bytes(data)
    with pytest.raises(ModelFileError, match="is damaged"):
        load_model(folder)


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.01, 0.5, 0.99])
def test_a_file_cut_short(folder, share):
    data = (folder / MODEL).read_bytes()
    (folder / MODEL).write_bytes(data[: int(share * len(data))])
    with pytest.raises(ModelFileError, match="is damaged"):
        load_model(folder)


@pytest.mark.parametrize("note", ["[]", "1", "{}", '{"format": "1"}', '{"format": true}', '{"format": 0}'])
def test_json_of_something_else(folder, note):
    replace_file(folder / MODEL, seal(content(folder)[0], note))
    with pytest.raises(ModelFileError, match="is not a softsurv model"):
        load_model(folder)


def test_a_newer_format(folder):
    edit(folder, format=7, softsurv="9.1")
    with pytest.raises(ModelFileError, match=r"written by softsurv 9\.1 in format 7, .* up to 2; update softsurv"):
        load_model(folder)


@pytest.mark.parametrize("note", ["", "[" * 100_000, "{"], ids=["empty", "endless nesting", "cut"])
def test_json_that_is_none(folder, note):
    replace_file(folder / MODEL, seal(content(folder)[0], note))
    with pytest.raises(ModelFileError, match="is damaged"):
        load_model(folder)


def test_json_nested_deeper_than_python_calls(folder):
    edit(folder, state=json.loads("[" * 600 + "]" * 600))
    with pytest.raises(ModelFileError, match="is incomplete"):
        load_model(folder)


@pytest.mark.parametrize("name", ["tree.leaves", "tree.routing", "spread", "censoring.values"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite(folder, name, value):
    arrays, meta = content(folder)
    arrays[name] = np.full_like(arrays[name], value)
    replace_file(folder / MODEL, seal(arrays, json.dumps(meta)))
    with pytest.raises(ModelFileError, match=f"holds values in '{name}' that are not finite"):
        load_model(folder)


def test_a_tree_whose_leaf_never_reaches_its_median_is_saved(tmp_path):
    """Few events: the leaf's predicted median is infinite, which is a value and no damage."""
    X, (event, time) = make_rows()
    rare = event & (np.arange(len(X)) % 5 == 0)
    model = fitted(depth=1).fit(X, (rare, time))
    assert np.isinf(model.leaf_table_.predicted).any()
    model.save(tmp_path)
    np.testing.assert_array_equal(load_model(tmp_path).leaf_table_.predicted, model.leaf_table_.predicted)


def test_a_tree_with_infinite_weights_is_not_saved(tmp_path):
    model = fitted()
    with torch.no_grad():
        model.tree_.leaves[0, 0] = torch.inf
    with pytest.raises(NumericalError, match=r"'tree\.leaves' holds values that are not finite; fit the model again"):
        model.save(tmp_path)
    assert not list(tmp_path.iterdir())


def pipe(path):
    os.mkfifo(path)


def loop(path):
    path.symlink_to(path)


def sparse(path):
    with open(path, "wb") as file:
        file.truncate(1 << 40)


@pytest.mark.skipif(sys.platform == "win32", reason="kinds of files that Windows lacks")
@pytest.mark.parametrize("make", [pipe, loop, sparse, Path.mkdir])
@pytest.mark.parametrize("name", [MODEL, OLD_META, OLD_TENSORS])
def test_what_is_no_file(old, name, make):
    (old / name).unlink(missing_ok=True)
    make(old / name)
    with pytest.raises(ModelFileError, match=r"is damaged|cannot be read|holds no model"):
        load_model(old)


# -- models of format 1 ---------------------------------------------------------------------------------------------
def test_an_old_pair_of_files_is_read_and_replaced(old):
    X, _ = make_rows(seed=1)
    model = load_model(old)
    assert np.array_equal(model.predict(X), fitted().predict(X))
    model.save(old)
    assert [p.name for p in old.iterdir()] == [MODEL]
    assert np.array_equal(load_model(old).predict(X), model.predict(X))


def test_files_of_other_programs_stay(tmp_path):
    for name in (OLD_META, OLD_TENSORS):
        (tmp_path / name).write_text('{"learner": "of another library"}')
    fitted(depth=0).save(tmp_path)
    assert load_model(tmp_path).depth_ == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([MODEL, OLD_META, OLD_TENSORS])


def test_an_old_pair_damaged(old):
    text = (old / OLD_META).read_text()
    (old / OLD_META).write_text(text.replace('"depth": 2', '"depth": 1', 1))
    with pytest.raises(ModelFileError, match="was changed after it was saved"):
        load_model(old)
    (old / OLD_META).write_text(text)
    data = (old / OLD_TENSORS).read_bytes()
    (old / OLD_TENSORS).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(ModelFileError, match="is damaged or of another model"):
        load_model(old)
    (old / OLD_TENSORS).unlink()
    with pytest.raises(ModelFileError, match=r"lacks tensors\.safetensors; copy the whole model folder"):
        load_model(old)


# -- one step -------------------------------------------------------------------------------------------------------
SAVE_AGAIN = """
import os, sys
from softsurv import load_model
model = load_model(sys.argv[1])
for line in sys.stdin:
    child = os.fork()
    while child == 0:
        model.save(sys.argv[1])
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_process_killed_while_saving_leaves_a_model(folder):
    """A process imports once and forks for each."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", SAVE_AGAIN, folder], text=True, **pipes) as parent:
        for k in range(5):
            parent.stdin.write("save\n")
            parent.stdin.flush()
            writer = int(parent.stdout.readline())
            time.sleep(0.02 + 0.013 * k)
            os.kill(writer, signal.SIGKILL)
            assert int(parent.stdout.readline()) == -signal.SIGKILL
            assert load_model(folder).depth_ == 2


def test_readers_beside_writers_see_whole_models(folder):
    models = [fitted(depth=0), load_model(folder)]
    stop = threading.Event()

    def write(model):
        while not stop.is_set():
            model.save(folder)

    with ThreadPoolExecutor() as pool:
        writers = [pool.submit(write, model) for model in models]
        try:
            seen = {load_model(folder).depth_ for _ in range(150)}
        finally:
            stop.set()
        for writer in writers:
            writer.result()
    assert seen <= {0, 2}


def test_a_full_disk_leaves_the_old_model(folder, monkeypatch):
    def full(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*model\.safetensors"):
        fitted(depth=0).save(folder)
    assert [p.name for p in folder.iterdir()] == [MODEL]
    assert load_model(folder).depth_ == 2


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
    with pytest.raises(ModelFileError, match=f"is of the unknown estimator '{name}'; update softsurv"):
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


def test_there_is_no_pickle_in_the_file(saved):
    header = int.from_bytes(saved[:8], "little")
    names = json.loads(saved[8 : 8 + header])
    note = names.pop("__metadata__")
    json.loads(note["softsurv"])
    assert set(note) == {"softsurv", "sha256"}
    assert all(set(entry) == {"dtype", "shape", "data_offsets"} for entry in names.values())
    assert 8 + header + max(entry["data_offsets"][1] for entry in names.values()) == len(saved)


def test_no_training_row_is_in_the_files(saved):
    """Neither a raw nor an encoded value of a continuous feature occurs, save what summarises the column."""
    X, _ = make_rows()
    model = fitted()
    encoded = model.preprocessor_.transform(X)
    text, data = saved.decode(errors="replace"), saved
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
